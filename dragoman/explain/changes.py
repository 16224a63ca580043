"""Lasting changes of pace within a run: the step and time, the old and new pace, and the part that changed.

Rented machines and links slow down when a burst allowance ends or another tenant arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from dragoman import format_units
from dragoman.explain.finding import known
from dragoman.explain.step_breakdown import settled
from dragoman.measure.records import FIRST_DATE, Records

CHANGED = 1.2  # times slower or faster; smaller differences between steps have many causes
LEAST_STRETCH = (12, 0.05)  # steps, and share of all: a pace that lasts less is no lasting change
DEEPEST = 3  # stretches are split in two at most this often
MOST_TOLD = 3
MOSTLY = 0.5  # share of a change from which one part of the step counts as its cause
EXCHANGE = "the exchange"
CHANGES_EVIDENCE = "changes: where steps before and after differ most; medians of steps and their parts"
# The least over ranks is common to all; the rank that waits most shows what a slow rank costs.
PARTS: dict[str, Callable[[Records], np.ndarray]] = {
    EXCHANGE: lambda records: records.phase("exchange", "least"),
    "the wait for the slowest rank": lambda records: (
        records.phase("exchange", "most") - records.phase("exchange", "least")
    ),
    "the wait for data": lambda records: records.phase("data", "least"),
    "computing": lambda records: sum(
        (records.phase(name, "least") for name in ("forward", "backward", "optimizer")), np.zeros(())
    ),
}


@dataclass(frozen=True)
class Change:
    step: int  # the first at the new pace
    time: float  # when that step began; NaN if it is not known
    into_run: float  # seconds since the first step
    before: float  # median seconds of a step, or of a DiLoCo round's mean step
    after: float
    part: str | None = None  # the part of a step that changed, one of PARTS
    part_before: float = float("nan")
    part_after: float = float("nan")

    def __str__(self) -> str:
        when = f", {format_units.seconds(self.into_run)} into the run" if self.into_run > 0 else ""
        if self.time > FIRST_DATE:
            when += f" ({datetime.fromtimestamp(self.time, UTC):%H:%M:%S} UTC)"
        text = f"The pace changed at about step {self.step:,}{when}: "
        text += f"from {format_units.seconds(self.before)} to {format_units.seconds(self.after)} "
        text += "per step (medians)"
        if self.part:
            text += f"; {self.part} went from {format_units.seconds(self.part_before)}"
            text += f" to {format_units.seconds(self.part_after)}"
        return f"{text}."

    @property
    def numbers(self) -> dict[str, Any]:
        return known(
            step=self.step,
            time=self.time,
            seconds_into_run=self.into_run,
            step_seconds_before=self.before,
            step_seconds_after=self.after,
            part=self.part,
            part_seconds_before=self.part_before,
            part_seconds_after=self.part_after,
        )


def lasting_changes(records: Records) -> list[Change]:
    """Returns the largest few changes, in the order of the steps."""
    rows = _rows(records)
    seconds = records.steps["seconds"][rows].mean(1)
    number = records.steps["step"][rows[:, 0]] if len(rows) else np.array([])
    if not np.isfinite(number).all():
        return []
    stretches = _stretches(seconds)
    pairs = zip(stretches, stretches[1:], strict=False)
    changes = [_change(records, rows, before, after) for before, after in pairs]
    largest = sorted(changes, key=lambda change: -abs(np.log(change.after / change.before)))[:MOST_TOLD]
    return sorted(largest, key=lambda change: change.step)


def exchange_slowed(records: Records) -> bool:
    """Whether the exchange ended the run slower than it began it, when its link was measured."""
    changes = [change for change in lasting_changes(records) if change.part == EXCHANGE]
    return bool(changes) and changes[-1].part_after > CHANGED * changes[0].part_before


def _rows(records: Records) -> np.ndarray:
    """Returns rows of the table of steps in comparable groups: single steps, or DiLoCo's rounds."""
    way = records.facts.way
    every = way.steps_per_round
    rows = np.flatnonzero(settled(records))
    if every > 1:
        # Rounds are shorter at the beginning of a run, which is no change of pace.
        rows = rows[records.steps["step"][rows] > way.growing_steps]
        begins = np.flatnonzero((records.steps["step"][rows] - 1) % every == 0)
        rows = rows[begins[0] :] if len(begins) else rows[:0]
    return rows[: len(rows) // every * every].reshape(-1, every)


def _stretches(seconds: np.ndarray) -> list[slice]:
    """Splits the run into stretches of different pace."""
    least = max(LEAST_STRETCH[0], int(LEAST_STRETCH[1] * len(seconds)))
    borders = [0, *_borders(np.log(seconds), 0, least, DEEPEST), len(seconds)]
    while len(borders) > 2:
        medians = [np.median(seconds[first:last]) for first, last in zip(borders, borders[1:], strict=False)]
        steps = np.abs(np.diff(np.log(medians)))
        if steps.min() >= np.log(CHANGED):
            break
        del borders[int(steps.argmin()) + 1]  # joins the two that differ least
    return [slice(first, last) for first, last in zip(borders, borders[1:], strict=False)]


def _borders(logs: np.ndarray, offset: int, least: int, depth: int) -> list[int]:
    """Returns where the two sides differ most, and the same within each side."""
    if depth == 0 or len(logs) < 2 * least:
        return []
    total, count = np.cumsum(logs), len(logs)
    places = np.arange(least, count - least + 1)
    before, after = total[places - 1] / places, (total[-1] - total[places - 1]) / (count - places)
    place = int(places[np.argmax((after - before) ** 2 * places * (count - places))])
    left = _borders(logs[:place], offset, least, depth - 1)
    right = _borders(logs[place:], offset + place, least, depth - 1)
    return [*left, offset + place, *right]


def _change(records: Records, rows: np.ndarray, before: slice, after: slice) -> Change:
    def medians(values: np.ndarray) -> tuple[float, float]:
        groups = np.broadcast_to(values, records.steps["step"].shape)[rows].mean(1)
        return float(np.median(groups[before])), float(np.median(groups[after]))

    first, begin = rows[after.start, 0], rows[0, 0]
    seconds, ended = records.steps["seconds"], records.steps["ended"]
    slower = medians(seconds)
    parts = {name: medians(part(records)) for name, part in PARTS.items()}
    # NaN: the parts of a step were not recorded, and none of them counts as the cause.
    grown = {
        name: (now - was) / (slower[1] - slower[0])
        for name, (was, now) in parts.items()
        if np.isfinite(now - was)
    }
    part = max(grown, key=lambda name: grown[name], default=None)
    part = part if part and grown[part] >= MOSTLY else None
    time = float(ended[first] - seconds[first])
    return Change(
        int(records.steps["step"][first]),
        time,
        float(time - (ended[begin] - seconds[begin])),
        *slower,
        part,
        *(parts[part] if part else ()),
    )
