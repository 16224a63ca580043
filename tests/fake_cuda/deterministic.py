"""Steps on the pretended GPU with `train.deterministic`; prints their operators for test_deterministic.py."""

from __future__ import annotations

import json

import torch

from dragoman.config import Data, Train, Training
from dragoman.model import kernels
from tests.fake_cuda import card
from tests.fake_cuda.parts import Steps
from tests.fake_cuda.steps import SMALL

CARDS = {"fp32": (8, 0), "bf16": (8, 0), "fp16": (7, 5)}  # an A100, and a T4

if __name__ == "__main__":
    operators: dict[str, list[str]] = {}
    for precision, capability in CARDS.items():
        for optimizer in ("adam", "muon"):
            train = Train(precision=precision, optimizer=optimizer, clip_norm=1.0)
            with card.pretended(capability) as counts, kernels.deterministic(True):
                Steps(Training(model=SMALL, train=train, data=Data()), vocabulary=500, pairs=8).step()
                assert torch.are_deterministic_algorithms_enabled()
                operators[f"{precision} {optimizer}"] = sorted(counts.operators)
    print(json.dumps(operators))
