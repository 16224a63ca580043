"""Real steps on the pretended GPU; prints what they left and what they cost. Run by test_steps.py."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any, get_args

import torch
from torch import Tensor

from dragoman.config import Data, Model, Train, Training
from dragoman.cost.size import OptimizerName
from dragoman.train import optimizer as optimizers
from tests.fake_cuda import card
from tests.fake_cuda.parts import Steps

PRECISIONS = ("fp32", "bf16", "fp16")
OPTIMIZERS = get_args(OptimizerName)
CLIPS = (0.0, 1.0)
SMALL = Model(width=64, heads=2, encoder_layers=1, decoder_layers=1, feedforward=128)
T4, A100 = (7, 5), (8, 0)  # compute capabilities
_CARDS = {"fp32": A100, "bf16": A100, "fp16": T4}
# The other kernels of attention; the T4's for bf16 needs a padded grid.
OTHER_CARDS = {"fp32 on a T4": ("fp32", T4), "bf16 on a T4": ("bf16", T4), "fp16 on an A100": ("fp16", A100)}


def left_by(
    precision: str,
    optimizer: str = "adam",
    clip_norm: float = 1.0,
    recompute: bool = False,
    capability: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Two steps of a small model, the second resumed: what they left, and the waits of the second."""
    settings = Training(
        model=SMALL,
        train=Train(precision=precision, optimizer=optimizer, clip_norm=clip_norm, recompute=recompute),
        data=Data(),
    )
    with card.pretended(capability or _CARDS[precision]) as counts:
        steps = Steps(settings, vocabulary=500, pairs=8)
        steps.step()
        moments = optimizers.state(steps.state.optimizer, steps.model)
        optimizers.restore(steps.state.optimizer, steps.model, moments)
        counts.waits.clear()
        outcome = steps.step(microbatches=2)
        return {
            "waits": dict(counts.waits),
            "is_bad": outcome.is_bad,
            "gradients": kinds(weight.grad for weight in steps.model.parameters()),
            "weights": kinds(steps.model.parameters()),
            "state": kinds(each for kept in steps.state.optimizer.state.values() for each in kept.values()),
            "without_state": sum(not steps.state.optimizer.state.get(p) for p in steps.model.parameters()),
        }


def skipped() -> list[dict[str, Any]]:
    """Two steps in fp16 whose gradients are not finite: the second finds the scale at its lowest."""
    scales = iter((32_768.0, 0.5))
    settings = Training(model=SMALL, train=Train(precision="fp16"), data=Data())
    found = []
    with card.pretended(T4, lambda ones: torch.tensor([math.inf, 1.0, next(scales)])) as counts:
        steps = Steps(settings, vocabulary=500, pairs=8)
        for _ in range(2):
            counts.clear()
            outcome = steps.step()
            found.append(
                {
                    "is_rescaled": outcome.is_rescaled,
                    "is_bad": outcome.is_bad,
                    "waits": counts.waits.total(),
                    "updates": counts.operators["_fused_adam_"],
                }
            )
    return found


def cost(precision: str, optimizer: str = "adam") -> dict[str, dict[str, int]]:
    """What a microbatch of transformer-base costs, and the rest of a step."""
    counted = []
    settings = Training(train=Train(precision=precision, optimizer=optimizer, clip_norm=1.0), data=Data())
    with card.pretended(_CARDS[precision]) as counts:
        steps = Steps(settings)
        steps.step()
        for microbatches in (1, 2):
            counts.clear()
            steps.step(microbatches)
            counted.append({"launches": counts.launches, "casts": counts.casts})
    one, two = counted
    each = {name: two[name] - one[name] for name in one}
    return {"microbatch": each, "rest of a step": {name: one[name] - each[name] for name in one}}


def kinds(tensors) -> list[str]:  # noqa: ANN001
    """Where these tensors are and what they hold, each kind once."""
    return sorted({_kind(tensor) for tensor in tensors})


def _kind(tensor: Tensor | None) -> str:
    return "none" if tensor is None else f"{tensor.device} {tensor.dtype}".replace("torch.", "")


if __name__ == "__main__":
    left = {
        f"{precision} {optimizer} clip {clip}": left_by(precision, optimizer, clip)
        for precision, optimizer, clip in product(PRECISIONS, OPTIMIZERS, CLIPS)
    }
    left |= {f"{precision} recompute": left_by(precision, recompute=True) for precision in PRECISIONS}
    left |= {way: left_by(precision, capability=own) for way, (precision, own) in OTHER_CARDS.items()}
    costs = {precision: cost(precision) for precision in PRECISIONS}
    costs |= {"bf16 muon": cost("bf16", "muon")}
    print(json.dumps({"left": left, "skipped": skipped(), "cost": costs}))
