"""Real steps on the pretended GPU; prints what they left and what they cost. Run by test_steps.py."""

from __future__ import annotations

import json
from itertools import product
from typing import Any, get_args

from torch import Tensor

from dragoman.config import Data, Model, Train, Training
from dragoman.cost.size import OptimizerName
from tests.fake_cuda import card
from tests.fake_cuda.parts import Steps

PRECISIONS = ("fp32", "bf16", "fp16")
OPTIMIZERS = get_args(OptimizerName)
CLIPS = (0.0, 1.0)
SMALL = Model(width=64, heads=2, encoder_layers=1, decoder_layers=1, feedforward=128)
_CARDS = {"fp32": (8, 0), "bf16": (8, 0), "fp16": (7, 5)}  # an A100, and a T4


def left_by(precision: str, optimizer: str, clip_norm: float, recompute: bool = False) -> dict[str, Any]:
    """Two steps of a small model: the kinds of tensors that they left, and the waits of the second."""
    settings = Training(
        model=SMALL,
        train=Train(precision=precision, optimizer=optimizer, clip_norm=clip_norm, recompute=recompute),
        data=Data(),
    )
    with card.pretended(_CARDS[precision]) as counts:
        steps = Steps(settings, vocabulary=500, pairs=8)
        steps.step()
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
    left |= {f"{precision} recompute": left_by(precision, "adam", 1.0, True) for precision in PRECISIONS}
    costs = {precision: cost(precision) for precision in PRECISIONS}
    print(json.dumps({"left": left, "cost": costs | {"bf16 muon": cost("bf16", "muon")}}))
