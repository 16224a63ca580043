"""Muon for the weight matrices of layers, AdamW for everything else.

Muon (Jordan et al. 2024) makes the momentum of a matrix orthogonal and uses it as the direction: all
directions of a gradient count equally, even rare ones. Scaled as in Liu et al. 2025 (arXiv 2502.16982), an
update is about as large as Adam's, so one learning rate serves both. torch.optim.Muon computes in bf16
everywhere, which most CPUs emulate; here only GPUs with bf16 use it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from dragoman.model import Transformer
from dragoman.model.attention import CrossAttention, SelfAttention
from dragoman.model.transformer import FeedForward

MOMENTUM = 0.95
_LIKE_ADAMS = 0.2  # root mean square of an update divided by the learning rate
_ITERATIONS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)  # Jordan's: lifts small singular values fast; all end near 1, not at it


class Muon(Optimizer):
    """The Muon optimizer. Every rank computes all of it, as with Adam; docs/train.md gives the cost.

    Operators for lists (`foreach`) take one launch on a GPU where one per matrix would take a hundred.
    """

    def __init__(self, rows: dict[Tensor, int], rest: AdamW, weight_decay: float):
        """`rows` comes from `matrices`; `rest` updates all other parameters."""
        # foreach: also for setting gradients to 0
        super().__init__(list(rows), {"lr": 0.0, "weight_decay": weight_decay, "foreach": True})
        self._rows, self._rest = rows, rest
        self.param_groups += rest.param_groups  # a learning rate set here is set for both
        rest.state = self.state  # one place for everything a checkpoint keeps

    def has(self, parameter: Tensor) -> bool:
        """Does Muon update this parameter, rather than AdamW?"""
        return parameter in self._rows

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        self._rest.step()
        group = self.param_groups[0]
        together: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)  # by shape
        for (parameter, rows), direction in zip(self._rows.items(), self._directions(), strict=True):
            for piece, along in zip(parameter.split(rows), direction.split(rows), strict=True):
                together[piece.shape].append((piece, along))
        torch._foreach_mul_(list(self._rows), 1 - group["lr"] * group["weight_decay"])
        for shape, pieces in together.items():
            updates = orthogonal(torch.stack([along for _, along in pieces]))
            scale = group["lr"] * _LIKE_ADAMS * max(shape) ** 0.5
            torch._foreach_sub_([piece for piece, _ in pieces], list(updates), alpha=scale)

    def _directions(self) -> Sequence[Tensor]:
        """The direction of each matrix' update: Nesterov's momentum."""
        for parameter in self._rows.keys() - self.state.keys():
            self.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
            }
        states = [self.state[parameter] for parameter in self._rows]
        gradients = [parameter.grad for parameter in self._rows if parameter.grad is not None]
        momenta = [state["exp_avg"] for state in states]
        torch._foreach_add_([state["step"] for state in states], 1)
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        return torch._foreach_lerp(gradients, momenta, MOMENTUM)


def matrices(model: Transformer) -> Iterator[tuple[Tensor, int]]:
    """The layers' weights, each with the rows of one matrix: attention keeps two or three in one weight."""
    for module in model.modules():
        if isinstance(module, SelfAttention | CrossAttention):
            yield from ((weight, model.config.width) for weight in module.parameters())
        elif isinstance(module, FeedForward):
            yield from ((linear.weight, len(linear.weight)) for linear in (module.inner, module.outer))


def orthogonal(stacked: Tensor) -> Tensor:
    """Roughly the nearest orthogonal matrix to each matrix."""
    if stacked.shape[-2] > stacked.shape[-1]:
        return orthogonal(stacked.mT).mT
    a, b, c = _QUINTIC
    x = stacked / (stacked.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    if x.is_cuda and torch.cuda.is_bf16_supported(including_emulation=False):
        x = x.bfloat16()  # as accurate as five iterations are
    for _ in range(_ITERATIONS):
        squared = x @ x.mT
        x = a * x + torch.baddbmm(squared, squared, squared, beta=b, alpha=c) @ x
    return x.to(stacked.dtype)
