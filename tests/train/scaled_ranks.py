"""Ranks that compute in fp16, with a scaled loss: `python -m tests.train.scaled_ranks DATA CONFIG MODE`.

In the second of three steps, rank 1 alone has a gradient that is not finite. Each rank prints what it saw.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch.distributed.tensor import DTensor

from dragoman.model.number_format import NumberFormat
from dragoman.sync import world as worlds
from dragoman.sync.shards import whole
from dragoman.train.loss_scale import LossScale
from tests.train.steps import COMPARABLE, Bench

_unscale = LossScale.unscale_
_OVERFLOWS_AT = 1


def main(data: Path, settings: Path, mode: str) -> None:
    half = NumberFormat("cpu", torch.float16)
    NumberFormat.of = lambda *_: half  # type: ignore[method-assign,assignment]
    with worlds.join(60) as world:
        bench = Bench(data, settings, world, *COMPARABLE, f"sync.mode={mode}", "train.rate=0.00003")

        def overflow(scale: LossScale, optimizer: torch.optim.Optimizer) -> None:
            if bench.state.step == _OVERFLOWS_AT and (world.rank == 1 or mode != "sharded"):
                gradient = bench.model.embedding.weight.grad
                (gradient.to_local() if isinstance(gradient, DTensor) else gradient)[0] = torch.inf
            _unscale(scale, optimizer)

        LossScale.unscale_ = overflow  # type: ignore[method-assign]
        for _ in range(3):
            outcome = bench.step()
            bench.stepper.note_loss_scale()
            weights = torch.cat([whole(p.detach()).flatten() for p in bench.model.parameters()])
            answer = {
                "is_rescaled": outcome.is_rescaled,
                "is_bad": outcome.is_bad,
                "loss": outcome.loss,
                "scale": bench.state.loss_scale["scale"],
                "weights": float(weights.double().square().sum()),
            }
            print(f"{json.dumps(answer)}\n", end="", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
