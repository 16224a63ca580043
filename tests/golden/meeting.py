"""What ranks say that cannot have a device each, or that lose one another."""

from __future__ import annotations

from collections.abc import Iterator

import torch.distributed as dist

from dragoman.errors import DragomanError
from dragoman.sync.failures import explained
from tests.sync import test_failures as failures
from tests.sync.test_device import error, has, has_none


def page() -> str:
    return "".join(f"== {title}\nerror: {said}\n\n" for title, said in (*refused(), *failed()))


def refused() -> Iterator[tuple[str, DragomanError]]:
    one = has("h0", "GPU-5f3c", gpus=1)
    yield "a host without GPUs", error(one, has_none("h1", "torch was built without CUDA"))
    yield "one GPU for two ranks", error(one, one)
    few = has_none("h0", "torch can use 2 there, for ranks 0 to 1 of the host", gpus=2, local_rank=2)
    yield "more ranks than GPUs", error(has("h0", "GPU-5f3c"), has("h0", "GPU-81aa", number=1), few)
    yield "a GPU that fails", error(one, has_none("h1", "CUDA error: device busy", gpus=1))


def failed() -> Iterator[tuple[str, DragomanError]]:
    for title, lost in (
        ("a lost rank, by gloo", RuntimeError(failures.GLOO)),
        ("a lost rank, by NCCL", dist.DistBackendError(failures.REMOTE)),
        ("NCCL lacks shared memory", dist.DistBackendError(failures.SHARED_MEMORY)),
        ("NCCL lacks memory", dist.DistBackendError(failures.MEMORY)),
        ("NCCL lacks something else", dist.DistBackendError(failures.WITHOUT_LAST_WORDS)),
    ):
        try:
            with explained():
                raise lost
        except DragomanError as said:
            yield title, said
