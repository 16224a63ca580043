"""Parts of a layer in 16 bits on a GPU, with less memory traffic than torch's operators one by one.

Between its matrix products a layer does little arithmetic, so its time on a GPU is that of reading and
writing memory. The sum that runs through the layers stays in float32; what enters a block is rounded at once,
and gradients are rounded or widened in the operator that uses them. In a small model the rounding error of a
gradient is 1.3 times that of autocast. Not run on hardware: checked against float64 on a CPU.

Shape letters: N rows, D width, F inner width of the feed-forward block.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dragoman.model.product import multiply_into


def dtype_for(x: Tensor) -> torch.dtype | None:
    """The 16-bit type in which a GPU computes here; None on a CPU and in float32."""
    is_half = x.is_cuda and torch.is_autocast_enabled("cuda")
    return torch.get_autocast_dtype("cuda") if is_half else None


def branch(x_ND: Tensor, norm: torch.nn.LayerNorm, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """x itself, and its layer norm in 16 bits; the gradients of the two meet in one operator."""
    return _Branch.apply(x_ND, norm.weight, norm.bias, norm.eps, dtype)


def add_dropped(residual_ND: Tensor, x_ND: Tensor, rate: float) -> Tensor:
    """residual + dropout(x), for a residual in float32 and x in 16 bits."""
    return _AddDropped.apply(residual_ND, x_ND, rate)


def feedforward(
    x_ND: Tensor, inner: torch.nn.Linear, outer: torch.nn.Linear, rate: float, dtype: torch.dtype
) -> Tensor:
    """outer(dropout(relu(inner(x)))), in 16 bits."""
    return _FeedForward.apply(x_ND, inner.weight, inner.bias, outer.weight, outer.bias, rate, dtype)


def _copies(tensors: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Copies in another type, made by one launch on a GPU."""
    copies = [torch.empty_like(tensor, dtype=dtype) for tensor in tensors]
    torch._foreach_copy_(copies, tensors)
    return copies


class _Branch(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_ND: Tensor, weight_D: Tensor, bias_D: Tensor, epsilon: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        with torch.autocast(x_ND.device.type, enabled=False):
            rounded_ND, (gain_D, shift_D) = x_ND.to(dtype), _copies([weight_D, bias_D], dtype)
            ctx.shape, ctx.type = list(weight_D.shape), x_ND.dtype
            normed_ND, *statistics = torch.native_layer_norm(rounded_ND, ctx.shape, gain_D, shift_D, epsilon)
        ctx.save_for_backward(rounded_ND, gain_D, shift_D, *statistics)
        ctx.set_materialize_grads(False)
        return x_ND, normed_ND

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor | None, grad_normed_ND: Tensor) -> tuple[Tensor | None, ...]:
        rounded_ND, gain_D, shift_D, *statistics = ctx.saved_tensors
        wanted = [True, True, True]
        through_ND, gain_grad_D, shift_grad_D = torch.ops.aten.native_layer_norm_backward(
            grad_normed_ND, rounded_ND, ctx.shape, *statistics, gain_D, shift_D, wanted
        )
        grad_x_ND = through_ND.to(ctx.type) if grad_ND is None else grad_ND + through_ND
        return grad_x_ND, *_copies([gain_grad_D, shift_grad_D], ctx.type), None, None


class _AddDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, residual_ND: Tensor, x_ND: Tensor, rate: float) -> Tensor:
        keep_ND = torch.empty_like(x_ND, dtype=torch.bool).bernoulli_(1 - rate)
        ctx.scale, ctx.dtype = 1 / (1 - rate), x_ND.dtype
        ctx.save_for_backward(keep_ND)
        with torch.autocast(x_ND.device.type, enabled=False):  # it would widen x first
            return torch.addcmul(residual_ND, x_ND, keep_ND, value=ctx.scale)

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor, Tensor, None]:
        (keep_ND,) = ctx.saved_tensors
        # 0 + grad * keep * scale, rounded as it is written.
        grad_x_ND = torch.empty_like(grad_ND, dtype=ctx.dtype)
        torch.addcmul(grad_ND.new_zeros(()), grad_ND, keep_ND, value=ctx.scale, out=grad_x_ND)
        return grad_ND, grad_x_ND, None


class _FeedForward(torch.autograd.Function):
    """The first product adds the bias and clips; backward finds in the result what relu and dropout kept."""

    @staticmethod
    def forward(
        ctx: Any,
        x_ND: Tensor,
        inner_FD: Tensor,
        inner_F: Tensor,
        outer_DF: Tensor,
        outer_D: Tensor,
        rate: float,
        dtype: torch.dtype,
    ) -> Tensor:
        ctx.types = x_ND.dtype, inner_FD.dtype
        with torch.autocast(x_ND.device.type, enabled=False):
            x_ND = x_ND.to(dtype)
            inner_FD, inner_F, outer_DF, outer_D = _copies([inner_FD, inner_F, outer_DF, outer_D], dtype)
            kept_NF = torch._addmm_activation(inner_F, x_ND, inner_FD.t())
            if rate:
                kept_NF, _ = torch.native_dropout(kept_NF, rate, True)
            ctx.scale = 1 / (1 - rate)
            ctx.save_for_backward(x_ND, inner_FD, inner_F, outer_DF, kept_NF)
            return torch.addmm(outer_D, kept_NF, outer_DF.t())

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor | None, ...]:
        x_ND, inner_FD, inner_F, outer_DF, kept_NF = ctx.saved_tensors
        of_input, of_weight = ctx.types
        # With beta 0 the bias is only a shape.
        grad_NF = torch.addmm(inner_F, grad_ND, outer_DF, beta=0, alpha=ctx.scale)
        grad_NF = torch.ops.aten.threshold_backward(grad_NF, kept_NF, 0)
        return (
            (grad_NF @ inner_FD).to(of_input),
            multiply_into(of_weight, grad_NF.t(), x_ND),
            grad_NF.sum(0, dtype=of_weight),
            multiply_into(of_weight, grad_ND.t(), kept_NF),
            grad_ND.sum(0, dtype=of_weight),
            None,
            None,
        )
