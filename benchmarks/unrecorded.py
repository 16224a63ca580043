"""Runs dragoman with steps timed from outside, while recording is switched on and off in turns.

    python unrecorded.py TIMES.txt STEPS train CONFIG ...

For STEPS steps everything is recorded, for the next STEPS nothing: no phase clocks, no DDP clocks, no rows,
no gathering, no meter readings; and so on. TIMES.txt gets a line per spell of STEPS: 1 if recorded, else 0,
and its seconds. STEPS must be a multiple of measure.every, so that every recorded spell includes its share of
gathering.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from dragoman import cli
from dragoman.measure.meters import HostMeter
from dragoman.measure.phases import Phases
from dragoman.measure.recorder import Recorder
from dragoman.sync.allreduce import AllReduce
from dragoman.train import loop

SKIPPED_SPELLS = 2  # start-up, probes and the counterfactual steps


class Switch:
    is_on = True


def when_on(owner: type, name: str, otherwise: Any = None) -> None:
    """Make a method work only while recording is on."""
    method = getattr(owner, name)

    def switched(*arguments: Any, **named: Any) -> Any:
        return method(*arguments, **named) if Switch.is_on else otherwise

    setattr(owner, name, switched)


def timed(train: Callable[..., Any], path: str, spell_steps: int) -> Callable[..., Any]:
    def train_timed(state: Any, run: Any) -> Any:
        update, began, steps, spell = run.stepper.update, 0.0, 0, 0

        def step(*arguments: Any, **named: Any) -> Any:
            nonlocal began, steps, spell
            if steps % spell_steps == 0:  # the previous step and its recording are over
                now = time.perf_counter()
                if spell > SKIPPED_SPELLS and run.recorder._world.is_main:
                    with open(path, "a") as file:
                        file.write(f"{int(Switch.is_on)} {now - began:.6f}\n")
                spell += 1
                Switch.is_on = spell % 2 == 1
                ddp: DistributedDataParallel = run.stepper._exchange.model
                # At this low a rate the clocks never run again: the nearest to off.
                ddp._set_ddp_runtime_logging_sample_rate(1 if Switch.is_on else 1_000_000_000)
                began = time.perf_counter()
            steps += 1
            return update(*arguments, **named)

        run.stepper.update = step
        return train(state, run)

    return train_timed


def main() -> None:
    path, spell_steps = sys.argv.pop(1), int(sys.argv.pop(1))
    for name in ("begin", "move", "pause"):
        when_on(Phases, name)
    for name in ("step", "flush"):
        when_on(Recorder, name)
    for name in ("_second", "_sample_burst"):
        when_on(HostMeter, name)
    when_on(AllReduce, "exposed_seconds", 0.0)
    from dragoman.train import run

    run.train = timed(loop.train, path, spell_steps)
    cli.main()


if __name__ == "__main__":
    main()
