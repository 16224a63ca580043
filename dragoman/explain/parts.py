"""Where a step's seconds go: the phases over ranks, taken apart by cause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.measure.records import Records

# The first steps of an attempt allocate memory, lay out buckets and fill caches. They are left out where
# enough others are left to speak.
SETTLING_STEPS = 3
ENOUGH_STEPS = 20


@dataclass(frozen=True)
class StepParts:
    """Mean seconds of a step, phases as the mean over ranks. None where a phase was not recorded."""

    steps: int
    seconds: float
    data: float | None
    forward: float | None
    backward: float | None
    exchange: float | None  # exposed: link and straggler together
    optimizer: float | None
    link: float | None  # what even the rank that waits least waits for
    straggler: float | None  # what the other ranks wait for the slowest, mean over all ranks
    excess: float | None  # by how much the slowest rank is later than the mean of the others

    @property
    def computing(self) -> float | None:
        """Forward, backward and the optimizer: the device works for the model."""
        known = [part for part in (self.forward, self.backward, self.optimizer) if part is not None]
        return sum(known) if known else None

    def share(self, seconds: float | None) -> float | None:
        return None if seconds is None else seconds / self.seconds


def settled(records: Records) -> np.ndarray:
    """Which steps speak for the run: timed, and past the first ones of their attempt."""
    timed = np.isfinite(records.steps["seconds"]) & (records.steps["seconds"] > 0)
    late = timed.copy()
    attempts = records.steps["attempt"]
    for attempt in np.unique(attempts[np.isfinite(attempts)]):
        late[np.flatnonzero(timed & (attempts == attempt))[:SETTLING_STEPS]] = False
    return late if late.sum() >= ENOUGH_STEPS else timed


def step_parts(records: Records) -> StepParts | None:
    """None where no step was timed."""
    chosen = settled(records)
    if not chosen.any():
        return None

    def phase(name: str, statistic: str = "mean") -> float | None:
        return mean(records.phase(name, statistic)[chosen])

    exchange, link = phase("exchange"), phase("exchange", "least")
    straggler = None if exchange is None or link is None else max(0.0, exchange - link)
    ranks = records.facts.ranks or len(records.facts.rank_hosts)
    if ranks == 1:
        straggler = 0.0
    return StepParts(
        steps=int(chosen.sum()),
        seconds=float(records.steps["seconds"][chosen].mean()),
        data=phase("data"),
        forward=phase("forward"),
        backward=phase("backward"),
        exchange=exchange,
        optimizer=phase("optimizer"),
        link=link,
        straggler=straggler,
        excess=straggler * ranks / (ranks - 1) if straggler is not None and ranks > 1 else straggler,
    )


def mean(values: np.ndarray) -> float | None:
    """Over what was recorded; None if nothing was."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else None
