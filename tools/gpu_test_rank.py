"""A rank of `dragoman train` in trouble, for tools/gpu_test.py.

    python -m dragoman.launch.ranks 2 tools/gpu_test_rank.py TROUBLE NOTES train CONFIG ...

`fails`: the last rank raises in its third step, and notes the time. `memory`: from the second step on, a rank
has less memory than a whole microbatch needs. On a GPU the limit is real, on a CPU it is pretended.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dragoman.cli.program import main
from dragoman.train.step import Stepper
from tools.gpu_test import FAILURE

_LESS = 0.6  # of the memory that a step's activations need


def fail(stepper: Any, notes: Path) -> None:
    if stepper._world.rank == stepper._world.size - 1:
        notes.write_text(str(time.time()))
        raise RuntimeError(FAILURE)


def limit_memory(stepper: Any, notes: Path) -> None:
    notes.write_text("limited")
    (_limit_gpu if stepper._world.device.type == "cuda" else _pretend)(stepper)


def _limit_gpu(stepper: Any) -> None:
    device = stepper._world.device
    between_steps, most = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    limit = between_steps + _LESS * (most - between_steps)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(limit / total, device)


def _pretend(stepper: Any) -> None:
    model = stepper._state.model
    forward, rows = model.forward, max(1, len(stepper._parts(stepper.gpu_test_batch)[0].rows) // 2)

    def limited(source: torch.Tensor, lengths: Any, *rest: Any) -> torch.Tensor:
        if model.training and len(lengths) > rows:
            raise torch.OutOfMemoryError("pretended by gpu_test")
        return forward(source, lengths, *rest)

    model.forward = limited


TROUBLES: dict[str, tuple[int, Callable[[Any, Path], None]]] = {
    "fails": (3, fail),
    "memory": (2, limit_memory),
}


def with_trouble(name: str, notes: Path) -> None:
    """Gives every Stepper of this process that trouble, at the beginning of its step."""
    at, trouble = TROUBLES[name]
    update = Stepper.update

    def troubled(stepper: Any, batch: Any, *rest: Any, **named: Any) -> Any:
        stepper.gpu_test_batch = batch
        if stepper._state.step + 1 == at:
            trouble(stepper, notes)
        return update(stepper, batch, *rest, **named)

    Stepper.update = troubled  # type: ignore[method-assign]


if __name__ == "__main__":
    assert "RANK" in os.environ, "start it with python -m dragoman.launch.ranks"
    with_trouble(sys.argv[1], Path(sys.argv[2]))
    sys.argv[:3] = ["dragoman"]
    main()
