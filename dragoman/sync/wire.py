"""A sum over ranks, with fp32 or bf16 on the wire."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

Finish = Callable[[], None]


def begin(values: Tensor, group: dist.ProcessGroup | None, size: int, wire: str) -> Finish:
    """Starts the sum of a flat fp32 tensor over a group of so many ranks, in place. Collective.

    The function that comes back waits for the sum. Every rank ends with the same bits.
    """
    if wire == "fp32":
        return _waiting(dist.all_reduce(values, group=group, async_op=True))
    rounded = values.to(torch.bfloat16)
    if size == 2:
        return _both(values, rounded, group)
    work = _waiting(dist.all_reduce(rounded, group=group, async_op=True))

    def finish() -> None:
        work()
        values.copy_(rounded)

    return finish


def _both(values: Tensor, rounded: Tensor, group: dist.ProcessGroup | None) -> Finish:
    """Two ranks send each other all they have, as many bytes as a ring does: the sum itself is in fp32."""
    gathered = rounded.new_empty(2, len(rounded))
    work = _waiting(dist.all_gather(list(gathered), rounded, group=group, async_op=True))

    def finish() -> None:
        work()
        values.copy_(gathered[0]).add_(gathered[1])

    return finish


def _waiting(work: dist.Work | None) -> Finish:
    assert work, "this rank is not in the group"

    def finish() -> None:
        work.wait()

    return finish
