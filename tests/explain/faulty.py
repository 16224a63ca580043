"""Runs of build.py in which something went wrong: each fault ends an attempt, and the next one continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.faults import FaultKind
from dragoman.measure.records import Attempt, Event, Fault, Records, Table

NOTICED_SECONDS = 0.25
STARTUP_SECONDS = 1.0  # of each further attempt; part of the time that training stands still


@dataclass(frozen=True)
class Lost:
    """After `step`, training stands still for so many seconds, and the last few steps are made again."""

    step: int
    still_seconds: float = 5.0  # more than STARTUP_SECONDS
    repeated: int = 0
    kind: FaultKind = "killed"
    host: str = "host1"
    rank: int | None = 2
    detail: str = ""
    placement: dict[str, Any] | None = None  # of the attempt that continues, where it differs
    stacks: str = ""
    joins: str = ""  # hosts that come back: no fault, but a new attempt


def with_faults(records: Records, *losses: Lost) -> Records:
    """The run of one attempt with these faults, in the order of their steps."""
    (first,) = records.attempts
    steps = records.steps
    number, ended, seconds = steps["step"], steps["ended"], steps["seconds"]
    delay = np.zeros(len(number))  # by how much each step is later than in the run without faults
    attempt = np.ones(len(number))
    repeated: list[Table] = []
    attempts, faults, events = [first], [], []
    for place, loss in enumerate(losses):
        begins = loss.step - loss.repeated + 1  # the next attempt's first step
        again, later = (number >= begins) & (number <= loss.step), number >= begins
        assert not np.any(attempt[again] != place + 1), (
            "a step that is made again belongs to the last attempt"
        )
        if again.any():
            repeated.append(
                {name: values[again] for name, values in steps.items()}
                | {"ended": (ended + delay)[again], "attempt": attempt[again]}
            )
        died = float((ended + delay)[number == loss.step][0])
        # What follows a step that is made again is told of the second time.
        stood = (
            0.0 if loss.repeated else _busy_until(records, loss.step) - float(ended[number == loss.step][0])
        )
        resumed = died + stood + loss.still_seconds
        delay[later] += resumed - float((ended - seconds + delay)[number == begins][0])
        attempt[later] = place + 2
        if loss.joins:
            joined = Event(time=died, attempt=place + 2, step=loss.step, kind="joined", detail=loss.joins)
            events.append(joined)
        else:
            faults.append(
                Fault(
                    time=died,
                    attempt=place + 1,
                    step=loss.step,
                    kind=loss.kind,
                    host=loss.host,
                    rank=loss.rank,
                    detail=loss.detail,
                    noticed_seconds=NOTICED_SECONDS,
                    steps_lost=loss.repeated,
                    stacks=loss.stacks,
                )
            )
        attempts[-1] = attempts[-1].model_copy(
            update={
                "ended": died + stood + NOTICED_SECONDS,
                "reason": "a host joined" if loss.joins else "a rank was lost",
            }
        )
        started = resumed - STARTUP_SECONDS
        placement = attempts[-1].placement | (loss.placement or {})
        attempts.append(
            Attempt(
                number=place + 2,
                started=started,
                first_step=begins,
                ranks=placement.get("ranks", first.ranks),
                placement=placement,
            )
        )
        startup = Event(
            time=started, attempt=place + 2, step=begins - 1, kind="startup", seconds=STARTUP_SECONDS
        )
        events.append(startup)
    if first.ended is not None:
        attempts[-1] = attempts[-1].model_copy(
            update={"ended": first.ended + float(delay[-1]), "reason": first.reason}
        )
    return _moved(records, attempts, faults, events, repeated, attempt, delay)


def _busy_until(records: Records, step: int) -> float:
    """When the evaluation or checkpoint after a step was over."""
    ends = [event.time + event.seconds for event in records.events if event.step == step]
    return max([float(records.steps["ended"][records.steps["step"] == step][0]), *ends])


def _moved(
    records: Records,
    attempts: Sequence[Attempt],
    faults: Sequence[Fault],
    events: Sequence[Event],
    repeated: Sequence[Table],
    attempt: np.ndarray,
    delay: np.ndarray,
) -> Records:
    steps = records.steps
    began = steps["ended"] - steps["seconds"]

    def places(times: np.ndarray) -> np.ndarray:
        return np.searchsorted(began, times, side="right") - 1

    def later(table: Table) -> Table:
        at = places(table["time"])
        return {**table, "time": table["time"] + np.where(at >= 0, delay[np.maximum(at, 0)], 0.0)}

    def row_later(row: Any) -> Any:
        at = int(places(np.array([row.time]))[0])
        if at < 0:
            return row
        return row.model_copy(update={"time": row.time + float(delay[at]), "attempt": int(attempt[at])})

    windows = records.windows
    first = np.clip(np.searchsorted(steps["step"], windows["last_step"]), 0, len(attempt) - 1)
    together = {
        name: np.concatenate([table[name] for table in repeated])
        for name in (repeated[0] if repeated else {})
    }
    return Records(
        records.facts,
        attempts,
        steps={**steps, "ended": steps["ended"] + delay, "attempt": attempt},
        windows={**windows, "attempt": attempt[first]},
        evaluations=[row_later(row) for row in records.evaluations],
        events=[*map(row_later, records.events), *events],
        probes=[row_later(row) for row in records.probes],
        nics=later(records.nics),
        hosts=later(records.hosts),
        gpus=later(records.gpus),
        lens=later(records.lens),
        programs=records.programs,
        faults=faults,
        repeated=together,
    )
