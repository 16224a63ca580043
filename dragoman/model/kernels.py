"""Which of torch's kernels compute: switches of this process, set before its first product.

The GPU's side has not run on hardware.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


def avoid_cudnn_attention() -> None:
    """Never uses cuDNN's attention, which torch prefers on an H100: it builds a plan for each new shape.

    Shapes hardly repeat: in training, 320 microbatches had 317 different ones.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


def use_tf32() -> None:
    """Rounds the factors of fp32 products to TF32 on GPUs that have it: about eight times faster there.

    Not by `torch.backends.cuda.matmul.fp32_precision`: after that, torch.compile's look at the setting raises
    (torch 2.13).
    """
    torch.set_float32_matmul_precision("high")


@contextmanager
def deterministic(is_wanted: bool) -> Iterator[None]:
    """Kernels that give the same bits each time, if wanted. On a CPU all of them do.

    On GPUs the backward pass of fused attention and the sums over rows otherwise add in any order.
    """
    if not is_wanted:
        yield
        return
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    memory.fill_uninitialized_memory = False  # a debugging aid: no result depends on it
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        memory.fill_uninitialized_memory = filled
