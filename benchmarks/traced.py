"""Runs dragoman with traceml-ai attached, as its documentation describes for custom training loops.

    python traced.py [HINDRANCE ...] train CONFIG ...

traceml.py runs this program; hindrances are those of hindered.py. It is attached so that it sees as much as
possible:

- its step is the whole body of our loop, so it includes evaluations and checkpoints, as "residual" time;
- it counts reading as input only before a step, so a step's microbatches are read before the step begins;
- the steps that we repeat without the exchange, for our own report, are left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import hindered
import numpy as np
import traceml_ai as traceml
from traceml_ai.runtime.lifecycle import get_active_runtime_handle

from dragoman.data.batches import Batches, Microbatch, Position, StepBatch
from dragoman.sync.world import World
from dragoman.train import loop, run

START_SECONDS = 60.0  # until its aggregator, which starts together with us, is reachable


class ReadAhead:
    """Reads this rank's microbatches of a step before the step begins."""

    def __init__(self, batches: Batches, world: World):
        self._after, self._load, self._world = batches.after, batches.load, world
        self._read: dict[bytes, Microbatch] = {}

    def after(self, position: Position) -> Iterator[StepBatch]:
        for batch in self._after(position):
            mine = [batch.microbatches[number] for number in batch.share(self._world.rank, self._world.size)]
            self._read = {rows.tobytes(): self._load(rows) for rows in mine}
            yield batch

    def load(self, rows: np.ndarray) -> Microbatch:
        return self._read.get(rows.tobytes()) or self._load(rows)


def traced(train: Callable[..., Any], aggregator: subprocess.Popen[bytes] | None) -> Callable[..., Any]:
    def train_traced(state: Any, run: Any) -> Any:
        ahead, model = ReadAhead(run.batches, run.stepper._world), run.stepper._exchange.model

        def after(position: Position) -> Iterator[StepBatch]:
            for batch in traceml.wrap_dataloader_fetch(ahead.after(position)):
                with traceml.trace_step(model):
                    yield batch  # the loop's body runs before this continues

        run.batches.after, run.batches.load = after, ahead.load
        run.counterfactual.before_step = lambda batch: None
        try:
            return train(state, run)
        finally:
            stop(aggregator)

    return train_traced


def serve() -> subprocess.Popen[bytes]:
    """Start the process that gathers from all ranks; torchrun starts our ranks, not `traceml run`."""
    world, local = (os.environ[name] for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    command = [sys.executable, "-m", "traceml_ai.launcher.cli", "serve", "--mode=summary"]
    command += [f"--nnodes={int(world) // int(local)}", f"--nproc-per-node={local}"]
    command += [f"--run-name={os.environ['TRACEML_SESSION_ID']}", "--aggregator-bind-host=0.0.0.0"]
    return subprocess.Popen(command)


def stop(aggregator: subprocess.Popen[bytes] | None) -> None:
    """Stop tracing now, because a rank of dragoman exits without Python's exit handlers."""
    if handle := get_active_runtime_handle():
        handle.stop()
    if aggregator:
        aggregator.terminate()  # it then waits for the other ranks and writes its summary
        aggregator.wait()


def main() -> None:
    aggregator = serve() if os.environ["RANK"] == "0" else None
    traceml.init(
        aggregator_host=os.environ["MASTER_ADDR"],
        connect_timeout_sec=START_SECONDS,
        on_missing_aggregator="raise",
    )
    run.train = traced(loop.train, aggregator)
    hindered.main()


if __name__ == "__main__":
    main()
