"""Where a step's seconds go: its phases over all ranks, separated by cause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.measure.records import PHASES, Records

# The first steps of an attempt allocate memory, lay out buckets and fill caches. They are left out if enough
# others remain.
SETTLING_STEPS = 3
ENOUGH_STEPS = 20


@dataclass(frozen=True)
class StepParts:
    """Mean seconds of a step and its phases, over steps and ranks; None where a phase was not recorded."""

    steps: int
    seconds: float
    data: float | None
    forward: float | None
    backward: float | None
    exchange: float | None  # exposed: link and straggler together
    optimizer: float | None
    link: float | None  # the exposed exchange of the rank that waits least
    straggler: float | None  # how long the other ranks wait for the slowest, mean over all ranks
    excess: float | None  # how much later the slowest rank is than the mean of the others

    @property
    def computing(self) -> float | None:
        """Seconds in forward, backward and optimizer, in which the device works for the model."""
        known = [part for part in (self.forward, self.backward, self.optimizer) if part is not None]
        return sum(known) if known else None

    def share(self, seconds: float | None) -> float | None:
        return None if seconds is None else seconds / self.seconds


def settled(records: Records) -> np.ndarray:
    """Returns which steps represent the run: timed ones, without the first few of each attempt."""
    timed = np.isfinite(records.steps["seconds"]) & (records.steps["seconds"] > 0)
    late = timed.copy()
    rows = np.flatnonzero(timed & np.isfinite(records.steps["attempt"]))
    rows = rows[np.argsort(records.steps["attempt"][rows], kind="stable")]
    attempts = records.steps["attempt"][rows]
    if len(rows):
        firsts = np.concatenate(([0], np.flatnonzero(np.diff(attempts)) + 1))
        lengths = np.diff(np.append(firsts, len(rows)))
        late[rows[np.arange(len(rows)) - np.repeat(firsts, lengths) < SETTLING_STEPS]] = False
    return late if late.sum() >= ENOUGH_STEPS else timed


def step_parts(records: Records) -> StepParts | None:
    """Returns the parts of the mean step, together never longer than it; None if no step was timed."""
    chosen = settled(records)
    if not chosen.any():
        return None
    chosen = _whole(records, chosen)
    seconds = records.steps["seconds"][chosen]
    waited = (records.phase("exchange") - records.phase("exchange", "least"))[chosen]
    phases = _within(seconds, {name: records.phase(name)[chosen] for name in PHASES}, waited)
    computing = ("forward", "backward", "optimizer")
    least = {name: np.minimum(records.phase(name, "least")[chosen], phases[name]) for name in PHASES}
    exchange, link = mean(phases["exchange"]), mean(least["exchange"])
    straggler = None if exchange is None or link is None else max(0.0, exchange - link)
    ranks = records.facts.ranks or len(records.facts.rank_hosts)
    if ranks == 1:
        straggler = 0.0
    total = float(seconds.mean())
    excess = straggler
    if straggler is not None and ranks > 1:
        left = total - (link or 0.0) - sum(mean(least[name]) or 0.0 for name in computing)
        excess = min(straggler * ranks / (ranks - 1), max(straggler, left))
    return StepParts(
        steps=int(chosen.sum()),
        seconds=total,
        data=mean(phases["data"]),
        forward=mean(phases["forward"]),
        backward=mean(phases["backward"]),
        exchange=exchange,
        optimizer=mean(phases["optimizer"]),
        link=link,
        straggler=straggler,
        excess=excess,
    )


def phases_within(records: Records) -> dict[str, np.ndarray]:
    """Returns each phase's seconds in every step, mean over ranks; they fit within each timed step."""
    timed = np.isfinite(records.steps["seconds"]) & (records.steps["seconds"] > 0)
    phases = {name: records.phase(name).copy() for name in PHASES}
    waited = (records.phase("exchange") - records.phase("exchange", "least"))[timed]
    within = {name: values[timed] for name, values in phases.items()}
    for name, values in _within(records.steps["seconds"][timed], within, waited).items():
        phases[name][timed] = values
    return phases


def _whole(records: Records, chosen: np.ndarray) -> np.ndarray:
    """Returns the steps with every phase that any step has, as means over different steps do not add up."""
    columns = [records.phase(name) for name in PHASES] + [records.phase("exchange", "least")]
    known = [np.isfinite(column) for column in columns if np.isfinite(column[chosen]).any()]
    whole = chosen & np.logical_and.reduce([chosen, *known])
    return whole if whole.any() else chosen


def _within(seconds: np.ndarray, phases: dict[str, np.ndarray], waited: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the phases of each step, shortened to fit within the step.

    `seconds` are rank 0's. In early records, the other ranks `waited` in the exchange while rank 0 was still
    writing a checkpoint; this is not part of the step and comes off the exchange. Any excess that remains is
    due to the clocks, and shortens all phases in proportion.
    """
    over = np.nansum(list(phases.values()), axis=0) - seconds
    beside = np.clip(over, 0.0, np.maximum(np.nan_to_num(waited), 0.0))
    phases = phases | {"exchange": phases["exchange"] - beside}
    total = np.nansum(list(phases.values()), axis=0)
    shorter = seconds / np.maximum(total, seconds)
    return {name: values * shorter for name, values in phases.items()}


def mean(values: np.ndarray) -> float | None:
    """Returns the mean of the finite values; None if there are none."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else None
