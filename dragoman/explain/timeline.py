"""What happened during a run, in order: its starts and ends, faults, and hosts that came back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from dragoman import format_units
from dragoman.explain import fault_words
from dragoman.explain.finding import known
from dragoman.explain.outages import Outage, outages, pauses
from dragoman.faults import WORDS, FaultKind
from dragoman.measure.records import FIRST_DATE, Attempt, Records


@dataclass(frozen=True, kw_only=True)
class Happening:
    kind: Literal["start", "fault", "joined", "stop", "clock"]
    what: str  # in words
    attempt: int
    time: float | None = None  # on the run's time line; None if only the attempt is known
    clock_time: float | None = None  # by the wall clock as it was set then; None in a log without dates
    seconds: float | None = None  # since the run started
    step: int | None = None  # completed by then
    fault: FaultKind | None = None
    where: str = ""  # rank and host
    noticed_seconds: float | None = None
    still_seconds: float | None = None  # for which training stood still
    steps_repeated: int | None = None
    stacks: str = ""  # a file in the run folder

    @property
    def document(self) -> dict[str, Any]:
        """The row for findings.json, without what is not known."""
        return {name: value for name, value in known(**vars(self)).items() if value != ""}


def timeline(records: Records) -> list[Happening]:
    """Returns what happened, in the order of time; a clock that was set stands with its attempt's start."""
    found = outages(records)
    rows = [*_starts_and_stops(records), *_jumps(records), *_faults(records, found), *_events(records)]
    begins = {attempt.number: attempt.started for attempt in records.attempts}
    order = {"stop": 0, "start": 1, "clock": 2, "joined": 3, "fault": 4}  # of what has the same time

    def place(row: Happening) -> tuple[float, int, int]:
        time = begins.get(row.attempt, 0.0) if row.time is None else row.time
        return time, row.attempt, order[row.kind]

    return sorted(rows, key=place)


def is_eventful(rows: list[Happening]) -> bool:
    """Whether more happened than one start and one end."""
    return len(rows) > 2 or any(row.kind not in ("start", "stop") for row in rows)


class _Dates:
    """Times since the start of the run, and by the wall clock as it was set at that time."""

    def __init__(self, records: Records):
        self._start = records.attempts[0].started if records.attempts else None
        self._ahead: dict[int, float] = {}
        ahead = 0.0
        for attempt in records.attempts:
            self._ahead[attempt.number] = ahead + attempt.jump_before
            ahead += sum(attempt.jumps)

    def of(self, time: float, attempt: int) -> dict[str, Any]:
        if not math.isfinite(time):
            return {}
        since = None if self._start is None else max(0.0, time - self._start)
        wall = time + self._ahead.get(attempt, 0.0)
        return {"time": time, "seconds": since, "clock_time": wall if wall > FIRST_DATE else None}


def _starts_and_stops(records: Records) -> Iterator[Happening]:
    dates = _Dates(records)
    told = {fault.attempt for fault in records.faults}
    told |= {event.attempt for event in records.events if event.kind == "fault"}
    told |= {event.attempt - 1 for event in records.events if event.kind == "joined"}
    for place, attempt in enumerate(records.attempts):
        what = f"{'continued' if place else 'started'} with {_machines(attempt)}"
        number = attempt.number
        step = max(0, attempt.first_step - 1)
        yield Happening(
            kind="start", what=what, attempt=number, step=step, **dates.of(attempt.started, number)
        )
        is_last = place == len(records.attempts) - 1
        if attempt.ended is not None and (is_last or number not in told):
            reason = attempt.reason or "no reason recorded"
            yield Happening(
                kind="stop", what=f"ended: {reason}", attempt=number, **dates.of(attempt.ended, number)
            )


def _machines(attempt: Attempt) -> str:
    hosts = attempt.placement.get("hosts")
    ranks = format_units.counted(attempt.ranks, "rank")
    return f"{ranks} on {format_units.hosts(hosts)}" if isinstance(hosts, list) and hosts else ranks


def _jumps(records: Records) -> Iterator[Happening]:
    dates = _Dates(records)
    told = {fault.attempt for fault in records.faults if fault.kind == "clock_jump"}
    for attempt in records.attempts:
        number = attempt.number
        if attempt.jump_before:
            what = _set(attempt.jump_before)
            yield Happening(kind="clock", what=what, attempt=number, **dates.of(attempt.started, number))
        for jump in attempt.jumps_during if number not in told else ():
            yield Happening(kind="clock", what=_set(jump), attempt=number)


def _set(jump: float) -> str:
    return f"wall clock set {format_units.seconds(abs(jump))} {'forward' if jump > 0 else 'back'}"


def _faults(records: Records, found: list[Outage]) -> Iterator[Happening]:
    dates = _Dates(records)
    for outage in found:
        fault = outage.fault
        what = WORDS[fault.kind] + (f" ({fault.detail})" if fault.detail else "")
        what += f", in {fault.phase}" if fault.phase else ""
        yield Happening(
            kind="fault",
            what=what,
            attempt=fault.attempt,
            step=fault.step,
            fault=fault.kind,
            where=fault_words.where(fault),
            noticed_seconds=fault.noticed_seconds,
            still_seconds=outage.still_seconds or None,
            steps_repeated=outage.steps_repeated or None,
            stacks=fault.stacks,
            **dates.of(fault.time, fault.attempt),
        )


def _events(records: Records) -> Iterator[Happening]:
    """Hosts that came back and, in other programs' logs, errors."""
    dates = _Dates(records)
    paused = pauses(records) if any(event.kind == "joined" for event in records.events) else {}
    for event in records.events:
        date = dates.of(event.time, event.attempt)
        if event.kind == "joined":
            yield Happening(
                kind="joined",
                what="joined",
                where=event.detail,
                attempt=event.attempt,
                step=event.step,
                still_seconds=paused.pop(event.attempt, None),
                **date,
            )
        elif event.kind == "fault":
            yield Happening(
                kind="fault",
                what=event.detail or "fault",
                attempt=event.attempt,
                step=event.step,
                **date,
            )
