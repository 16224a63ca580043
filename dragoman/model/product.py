"""Matrix products for training, by oneDNN on a CPU. Evaluation and search leave their layers to torch.

torch.mm hands float32 to MKL, which reaches 115 GFLOP/s on a core of an AMD EPYC (Zen 5), the limit of AVX2.
oneDNN, which torch includes as well, uses AVX-512 there and reaches 250. The operator called here is the one
that torch.compile uses for a linear layer. Not measured on Intel processors.

oneDNN compiles a kernel for each new shape, which takes 0.3 to 8 ms and keeps 0.8 MB. It caches about 1,000
kernels. So on a CPU the model rounds the number of rows up (`rounded_rows`): a run then has about 200 kernels
if microbatches are counted in tokens, some 900 if in pairs. In a search the number of rows keeps changing, so
oneDNN is not used there.

Shape letters: M x K times K x N; N rows, I inputs and O outputs of a layer.
"""

from __future__ import annotations

import platform
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_HAS_ONEDNN = torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")


_CAN_WIDEN = hasattr(torch.ops.aten.mm, "dtype")  # since torch 2.8
_WIDER = {(torch.bfloat16, torch.float32), (torch.float16, torch.float32)}


def rounded_rows(rows: int, device: torch.device) -> int:
    """The number of rows; on a CPU rounded up by at most 6 %, to one of 16 sizes per power of two."""
    if device.type != "cpu":
        return rows
    quantum = 1 << max(0, rows.bit_length() - 5)
    return -(-rows // quantum) * quantum


def multiply(left_MK: Tensor, right_KN: Tensor) -> Tensor:
    """left @ right, without a gradient. The factors are dense tensors or transposed views of dense ones."""
    return _onednn(left_MK, right_KN) if _suits_onednn(left_MK) else left_MK @ right_KN


def multiply_into(dtype: torch.dtype, left_MK: Tensor, right_KN: Tensor) -> Tensor:
    """left @ right in this type, without a gradient. A GPU sums in float32 and need not round first."""
    if _CAN_WIDEN and left_MK.is_cuda and (left_MK.dtype, dtype) in _WIDER:
        return torch.mm(left_MK, right_KN, out_dtype=dtype)
    return multiply(left_MK, right_KN).to(dtype)


def add_product_(total_MN: Tensor, left_MK: Tensor, right_KN: Tensor) -> None:
    """total += left @ right. The total stays float32 even if the factors are bf16."""
    if left_MK.dtype == total_MN.dtype and not _suits_onednn(left_MK):
        total_MN.addmm_(left_MK, right_KN)
    else:
        total_MN += multiply(left_MK, right_KN)


class Linear(nn.Linear):
    """torch's linear layer, with oneDNN for its product and its gradients' products."""

    def forward(self, x_NI: Tensor) -> Tensor:
        if torch.is_grad_enabled() and _suits_onednn(x_NI) and not torch.is_autocast_enabled("cpu"):
            return _Linear.apply(x_NI, self.weight, self.bias)
        if x_NI.is_cuda and torch.is_autocast_enabled("cuda") and self.bias is None:
            return HalfLinear.apply(x_NI, self.weight, torch.get_autocast_dtype("cuda"))
        return F.linear(x_NI, self.weight, self.bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        ctx.save_for_backward(x_NI, weight_OI)
        ctx.has_bias = bias_O is not None
        return _onednn(x_NI, weight_OI.t(), bias_O)

    @staticmethod
    def backward(ctx: Any, grad_NO: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        x_NI, weight_OI = ctx.saved_tensors
        grad_bias_O = grad_NO.sum(0) if ctx.has_bias else None
        return _onednn(grad_NO, weight_OI), _onednn(grad_NO.t(), x_NI), grad_bias_O


class HalfLinear(torch.autograd.Function):
    """As under autocast, but the gradient of the weight stays as it is summed, in float32."""

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, weight_OI: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.types = x_NI.dtype, weight_OI.dtype
        x_NI, weight_OI = x_NI.to(dtype), weight_OI.to(dtype)
        ctx.save_for_backward(x_NI, weight_OI)
        return x_NI @ weight_OI.t()

    @staticmethod
    def backward(ctx: Any, grad_NO: Tensor) -> tuple[Tensor, Tensor, None]:
        x_NI, weight_OI = ctx.saved_tensors
        of_input, of_weight = ctx.types
        return (grad_NO @ weight_OI).to(of_input), multiply_into(of_weight, grad_NO.t(), x_NI), None


def _suits_onednn(x: Tensor) -> bool:
    return _HAS_ONEDNN and x.device.type == "cpu" and x.dtype == torch.float32


def _onednn(left_MK: Tensor, right_KN: Tensor, bias_N: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(left_MK, right_KN.t(), bias_N, "none", [], "")
