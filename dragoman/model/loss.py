"""Cross entropy of the output projection, in chunks of rows, so that a batch's logits never exist at once.

Shape letters: N rows, of which the first T have a target, K rows of a chunk (in the last chunk fewer may have
a target), V vocabulary, D width.

The loss of a row with logits z, target t and label smoothing e is

    (1 - e) * -log p[t]  +  e * mean over the vocabulary of -log p[v]
    = logsumexp(z) - (1 - e) * z[t] - e * mean(z)

as in torch.nn.functional.cross_entropy. mean(z) is the row times the mean embedding, so smoothing needs no
pass over the vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dragoman.model.product import add_product_, multiply

# 256 rows of 32,768 logits are 34 MB. On a CPU, with 10,000 pieces, chunks of 128 rows make a step 3 % slower
# (the weight's gradient is read and written once per chunk), chunks of 512 rows 1 %.
CPU_CHUNK_ROWS = 256
# On a GPU each chunk is some fifteen launches. 2**28 logits in bf16 are 512 MiB, or 8,192 rows of 32,768.
GPU_CHUNK_LOGITS = 2**28


def cross_entropy_sum(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    target_T: Tensor,
    label_smoothing: float = 0.0,
    chunk_rows: int | None = None,
) -> Tensor:
    """The sum of the loss above over the rows with a target; divide it by the tokens of the whole step.

    If gradients are enabled, they are computed together with the loss, because a chunk's probabilities exist
    only once. So backward() may be called only once. This saves memory: the logits of a microbatch never
    exist at once. F.linear_cross_entropy (torch 2.13) cannot chunk with smoothing.
    """
    if chunk_rows is None:
        on_gpu = max(1, GPU_CHUNK_LOGITS // len(weight_VD))
        chunk_rows = CPU_CHUNK_ROWS if hidden_ND.device.type == "cpu" else on_gpu
    wants_gradient = torch.is_grad_enabled()
    return _CrossEntropySum.apply(hidden_ND, weight_VD, target_T, label_smoothing, chunk_rows, wants_gradient)


class _CrossEntropySum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        target_T: Tensor,
        smoothing: float,
        chunk_rows: int,
        wants_gradient: bool,
    ) -> Tensor:
        device = hidden_ND.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight_VD.dtype
        with torch.autocast(device, enabled=False):  # cast once here, not once per chunk
            hidden_ND, weight_VD = hidden_ND.to(dtype), weight_VD.to(dtype)
            mean_D = weight_VD.float().mean(0)
            hidden_sum_D = hidden_ND[: len(target_T)].float().sum(0)
            loss = -smoothing * (hidden_sum_D @ mean_D)
            if wants_gradient:
                # Smoothing adds the same to every row of a gradient, so the gradients start with it.
                grad_hidden_ND = (-smoothing * mean_D).repeat(len(hidden_ND), 1)
                grad_hidden_ND[len(target_T) :] = 0
                grad_mean_D1 = -smoothing / len(weight_VD) * hidden_sum_D[:, None]
                # [D, V], because oneDNN copies a transposed left factor: so it copies the hidden rows and not
                # the logits.
                grad_weight_DV = grad_mean_D1.repeat(1, len(weight_VD))
            chunk = cpu_chunk if device == "cpu" else gpu_chunk
            for start in range(0, len(hidden_ND), chunk_rows):
                rows = slice(start, start + chunk_rows)
                hidden_KD, target_K1 = hidden_ND[rows], target_T[rows, None]
                z_KV = multiply(hidden_KD, weight_VD.t())
                chunk_loss, grad_z_KV = chunk(z_KV, target_K1, smoothing, wants_gradient)
                loss += chunk_loss
                if wants_gradient:
                    grad_z_KV[len(target_K1) :] = 0
                    add_product_(grad_hidden_ND[rows], grad_z_KV, weight_VD)
                    add_product_(grad_weight_DV, hidden_KD.t(), grad_z_KV)
        if wants_gradient:
            ctx.save_for_backward(grad_hidden_ND, grad_weight_DV)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # In place, so that a second backward() fails on torch's version check instead of scaling twice.
        grad_hidden_ND, grad_weight_DV = ctx.saved_tensors
        # Transposed once here: autograd adds gradients of two layouts at less than half the speed.
        grad_weight_VD = torch.empty_like(grad_weight_DV.t(), memory_format=torch.contiguous_format)
        torch.mul(grad_weight_DV.t(), grad, out=grad_weight_VD)
        return grad_hidden_ND.mul_(grad), grad_weight_VD, None, None, None, None


def cpu_chunk(
    z_KV: Tensor, target_K1: Tensor, smoothing: float, wants_gradient: bool
) -> tuple[Tensor, Tensor]:
    """The sum of logsumexp(z) - (1 - e) * z[t] over the rows with a target; its gradient, written over z."""
    dtype, z_KV = z_KV.dtype, z_KV.float()  # in float32 that is z itself
    loss = (smoothing - 1) * z_KV.gather(1, target_K1).sum()
    loss += _softmax_(z_KV)[: len(target_K1)].sum()
    if wants_gradient:
        z_KV.scatter_add_(1, target_K1, z_KV.new_full(target_K1.shape, smoothing - 1))
    return loss, z_KV.to(dtype)


def gpu_chunk(
    z_KV: Tensor, target_K1: Tensor, smoothing: float, wants_gradient: bool
) -> tuple[Tensor, Tensor]:
    """As `cpu_chunk`, in 4 bytes of memory traffic per logit instead of 28 with bf16. Not run on hardware.

    A GPU's softmax sums in float32, whatever it reads and writes. So bf16 need not be widened, and the loss
    follows from the rounded p[t]: an error of up to 0.004 for a token, either way, so none for a step. fp16
    cannot hold a small p[t]: with it log-probabilities are in float32, for 12 bytes.
    """
    z_target_K1 = z_KV.gather(1, target_K1).float()
    if wants_gradient and z_KV.dtype == torch.bfloat16:
        p_KV = torch.softmax(z_KV, 1, out=z_KV)
        p_target_K1 = p_KV.gather(1, target_K1).float()
        log_p_K1 = p_target_K1.clamp(min=torch.finfo(torch.bfloat16).tiny).log()
    else:
        log_p_KV = torch.log_softmax(z_KV, 1, dtype=torch.float32)
        log_p_K1 = log_p_KV.gather(1, target_K1)
        p_target_K1 = log_p_K1.exp()
        p_KV = torch.exp(log_p_KV, out=z_KV) if wants_gradient else z_KV
    loss = torch.add(log_p_K1, z_target_K1, alpha=-smoothing).sum().neg()  # logsumexp(z) is z[t] - log p[t]
    if wants_gradient:
        p_KV.scatter_(1, target_K1, p_target_K1.sub_(1 - smoothing).to(p_KV.dtype))
    return loss, p_KV


def _softmax_(z_KV: Tensor) -> Tensor:
    """Replaces each row by its softmax; returns the logsumexp of each row."""
    most_K = z_KV.amax(1)
    torch.softmax(z_KV, 1, out=z_KV)
    return most_K - z_KV.amax(1).log()  # the largest probability is exp(most - logsumexp), never 0
