"""Attention on packed rows by CUDA kernels that are told where sentences begin: no grid, no padding, no mask.

Not run on hardware: checked on fake tensors, and with a plain emulation of the kernels on a CPU.

torch has two such kernels, as private operators with gradients. Its public `varlen_attn` has no dropout.

Shape letters: N rows of the queries, S rows of the keys, P projections side by side in a row, H heads,
C channels of a head, D = H x C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.model.packing import Packing

# Computes [N, H, C] from queries, keys, values, the packing of queries and of keys, the dropout rate, causal.
Kernel = Callable[[Tensor, Tensor, Tensor, Packing, Packing, float, bool], Tensor]
_AMPERE = (8, 0)  # compute capability of an A100
_MOST_CHANNELS = 128  # beyond it, some cards lack a backward pass with dropout
_FROM_TOP_LEFT = 1  # the efficient kernel's number for a causal mask


class Varlen(NamedTuple):
    kernel: Kernel

    def split(self, x_ND: Tensor, packing: Packing, projections: int, heads: int) -> tuple[Tensor, ...]:
        """Rows of P x H x C as P views of [N, H, C]."""
        return x_ND.view(len(x_ND), projections, heads, -1).unbind(1)

    def mix(
        self,
        query_NHC: Tensor,
        key_SHC: Tensor,
        value_SHC: Tensor,
        queries: Packing,
        keys: Packing,
        *,
        causal: bool = False,
        rate: float = 0.0,
    ) -> Tensor:
        """Attention's output for each row of the queries, [N, D]."""
        return self.kernel(query_NHC, key_SHC, value_SHC, queries, keys, rate, causal).flatten(1)


def way_for(x_ND: Tensor, heads: int) -> Varlen | None:
    """With the kernel for rows of D = H x C in this tensor's format on its device; None if there is none."""
    kernel = kernel_for(x_ND.device, x_ND.dtype, x_ND.shape[1] // heads)
    return Varlen(kernel) if kernel else None


def kernel_for(device: torch.device, dtype: torch.dtype, channels: int) -> Kernel | None:
    """The kernel for heads of this many channels; None if there is none."""
    if device.type != "cuda" or torch.version.hip or channels % 8 or channels > _MOST_CHANNELS:
        return None
    is_ampere = torch.cuda.get_device_capability(device) >= _AMPERE
    # Not all builds of torch have the flash kernel: those for Windows did not.
    if is_ampere and dtype != torch.float32 and torch.backends.cuda.is_flash_attention_available():
        return flash
    return efficient if is_ampere or dtype != torch.bfloat16 else None


def flash(
    query_NHC: Tensor,
    key_SHC: Tensor,
    value_SHC: Tensor,
    queries: Packing,
    keys: Packing,
    rate: float,
    causal: bool,
) -> Tensor:
    """FlashAttention: fp16 and bf16, from compute capability 8.0 on."""
    bounds = (queries.bounds, keys.bounds, queries.longest, keys.longest)
    mixed_NHC: Tensor = torch.ops.aten._flash_attention_forward(
        query_NHC, key_SHC, value_SHC, *bounds, rate, causal, False
    )[0]
    return mixed_NHC


def efficient(
    query_NHC: Tensor,
    key_SHC: Tensor,
    value_SHC: Tensor,
    queries: Packing,
    keys: Packing,
    rate: float,
    causal: bool,
) -> Tensor:
    """Memory-efficient attention: fp32 and fp16 on all cards, bf16 from compute capability 8.0 on."""
    bounds = (queries.bounds, keys.bounds, queries.longest, keys.longest)
    mask = _FROM_TOP_LEFT if causal else 0
    wants_gradient = torch.is_grad_enabled()
    mixed_1NHC: Tensor = torch.ops.aten._efficient_attention_forward(
        query_NHC[None], key_SHC[None], value_SHC[None], None, *bounds, rate, mask, wants_gradient
    )[0]
    return mixed_1NHC[0]
