"""The environment ranks are started in, whoever starts them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.data.parallel import cores

# After Ctrl-C or SIGTERM: time to finish a step or an evaluation and to save, before ranks are killed.
SAVE_SECONDS = 300
_TYPED = "DRAGOMAN_COMMAND"
_UNDER_WAY = "DRAGOMAN_UNDER_WAY"  # a folder with a file for each rank that has begun and not ended well
# What a user sets for the whole run and means for every host. Addresses and interfaces differ by host.
_FOR_EVERY_HOST = ("NCCL_", "TORCH_")


def for_ranks(workers: int) -> dict[str, str]:
    """What so many ranks on this machine need beside what the user has set."""
    wanted = {
        "OMP_NUM_THREADS": str(max(1, cores() // workers)),
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(SAVE_SECONDS),
        "TORCH_CPP_LOG_LEVEL": "ERROR",  # else it warns of every address that has no name
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}


def for_every_host() -> dict[str, str]:
    """What is sent along to other machines, as they have their own environment."""
    return {name: value for name, value in os.environ.items() if name.startswith(_FOR_EVERY_HOST)}


@contextmanager
def ranks_under_way() -> Iterator[Path]:
    """A folder in which each rank started meanwhile has a file, from its beginning until it ends well.

    torchrun keeps the exit codes of ranks to itself when it is told to stop.
    """
    with tempfile.TemporaryDirectory(prefix="dragoman-", ignore_cleanup_errors=True) as folder:
        os.environ[_UNDER_WAY] = folder
        try:
            yield Path(folder)
        finally:
            del os.environ[_UNDER_WAY]


@contextmanager
def under_way() -> Iterator[None]:
    """Marks this rank as one that has something to end well. A mark that cannot be made must not stop it."""
    folder = os.environ.get(_UNDER_WAY)
    mark = Path(folder, os.environ["RANK"]) if folder else None
    if mark:
        with suppress(OSError):
            mark.touch()
    yield
    if mark:
        with suppress(OSError):
            mark.unlink()


def with_command(command: str) -> dict[str, str]:
    """Tells ranks on other hosts what the user typed: their own command line holds a copied config."""
    return {_TYPED: command}


def command(own: str) -> str:
    """What the user typed to start this rank."""
    return os.environ.get(_TYPED, own)
