"""Errors of collectives in words: another rank is gone or silent, or NCCL lacks something on this host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist

from dragoman.errors import DragomanError

_MOST_CHARACTERS = 200  # of another library's message
# How gloo says that a rank is gone or silent, and how NCCL does.
_GLOO = ("Connection closed by peer", "Timed out", "Connection reset", "Broken pipe", "Connection refused")
_NCCL = ("ncclRemoteError", "losed by remote peer", "Connection reset", "Connection refused")


class LostRank(DragomanError):
    """Another rank is gone, or no longer reachable: this world is over, through no fault of this rank."""


@contextmanager
def explained() -> Iterator[None]:
    """Turns a failed collective into an error that says why it failed."""
    try:
        yield
    except dist.DistError as error:
        raise _in_words(str(error)) from None
    except RuntimeError as error:
        if any(sign in str(error) for sign in _GLOO):  # an error of gloo's is known only by its text
            raise _in_words(str(error)) from None
        raise


def _in_words(text: str) -> DragomanError:
    if not text.startswith("NCCL error"):
        return _lost(_cause_by_gloo(text))
    cause = _cause_by_nccl(text)
    return _lost(cause) if any(sign in text for sign in _NCCL) else _lacking(cause)


def _cause_by_gloo(text: str) -> str:
    """The cause alone: gloo begins with the line in its own source and ends with advice."""
    first = text.splitlines()[0] if text else ""
    return first.rpartition(".cc:")[2].partition("] ")[2].partition(". ")[0] or text


def _cause_by_nccl(text: str) -> str:
    """NCCL's last words, else its kind of error; torch begins with its own source and NCCL's version."""
    lines = [line.strip() for line in text.splitlines()]
    if "Last error:" in lines[:-1]:
        return lines[lines.index("Last error:") + 1] or lines[0]
    return next((line for line in lines if line.startswith("nccl")), lines[0])


def _lost(cause: str) -> LostRank:
    return LostRank(
        f"another rank is gone or silent ({cause[:_MOST_CHARACTERS]})",
        hint="read that rank's own error; then the same command continues from the last checkpoint",
    )


def _lacking(cause: str) -> DragomanError:
    hint = "run it again with NCCL_DEBUG=INFO in the environment: NCCL then says what it lacks"
    if "shared memory" in cause or "/dev/shm" in cause:
        hint = "give the container more shared memory (docker run --shm-size=1g), or set NCCL_SHM_DISABLE=1"
    if "out of memory" in cause:
        hint = "end other programs that use the GPU (nvidia-smi shows them), or set data.split=2"
    return DragomanError(f"NCCL cannot connect the GPUs ({cause[:_MOST_CHARACTERS]})", hint=hint)
