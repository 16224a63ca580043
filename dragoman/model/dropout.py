"""Dropout with masks made of random bytes.

On a CPU a Bernoulli draw per element costs more than the layers around it: 8 ns, so 18 ms for 4,096 rows of
512. Here 7 random bits decide each element, and one 64-bit word decides eight: 2.5 ms, multiplication
included. The rate is therefore rounded to a 128th (0.1 becomes 13/128 = 0.1016), and the scale follows the
rounded rate, which keeps the expected value. Masks come from torch's default generator, so the seed set
before a microbatch decides them all. Other devices use torch's own dropout.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.model import half

_EACH_BYTE = 0x0101010101010101  # a byte times this is that byte in all eight places of a word


def dropout(x: Tensor, rate: float) -> Tensor:
    """x with each element zeroed at the given rate, the rest scaled up to keep the expected value."""
    if rate == 0 or x.device.type != "cpu":
        return F.dropout(x, rate)
    return _Dropout.apply(x, rate)


def add_dropped(residual: Tensor, x: Tensor, rate: float) -> Tensor:
    """residual + dropout(x), in one pass over memory."""
    if rate and half.dtype_for(x):
        return half.add_dropped(residual, x, rate)
    if rate == 0 or x.device.type != "cpu":
        return residual + F.dropout(x, rate)
    return _AddDropped.apply(residual, x, rate)


def relu_dropped(x: Tensor, rate: float) -> Tensor:
    """dropout(relu(x)), written over x. The result tells backward() what was kept, so no mask is stored."""
    if rate == 0 or x.device.type != "cpu":
        return F.dropout(F.relu(x, inplace=True), rate)
    return _ReluDropped.apply(x, rate)


def _keep(x: Tensor, rate: float) -> tuple[Tensor, float]:
    """A mask of 0 and 1 in x's shape, and the scale for the elements kept.

    The mask is int8, because multiplying floats by a bool tensor takes four times as long.
    """
    dropped = min(max(round(rate * 128), 1), 127)
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    # In each byte, 7 random bits plus (128 - dropped) carry into the top bit if the draw reaches `dropped`.
    words.bitwise_and_(0x7F * _EACH_BYTE).add_((128 - dropped) * _EACH_BYTE)
    words.bitwise_right_shift_(7).bitwise_and_(_EACH_BYTE)
    return words.view(torch.int8)[: x.numel()].view(x.shape), 128 / (128 - dropped)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        mask, ctx.scale = _keep(x, rate)
        ctx.save_for_backward(mask)
        return (x * mask).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return (grad * mask).mul_(ctx.scale), None


class _AddDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, residual: Tensor, x: Tensor, rate: float) -> Tensor:
        mask, ctx.scale = _keep(x, rate)
        ctx.save_for_backward(mask)
        return torch.addcmul(residual, x, mask, value=ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (mask,) = ctx.saved_tensors
        return grad, (grad * mask).mul_(ctx.scale), None


class _ReluDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        mask, ctx.scale = _keep(x, rate)
        x.relu_().mul_(mask).mul_(ctx.scale)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grad, kept, 0).mul_(ctx.scale), None
