"""What each fault cost: how long training stood still because of it, and which steps had to be made twice."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dragoman.measure.records import Attempt, Fault, Records

SIDE_KINDS = ("checkpoint_damaged",)  # end an attempt only if nothing else did
HARMLESS_KINDS = ("clock_jump",)  # never end one
OWN_ENDS = ("finished", "no improvement", "stopped", "diverged")  # reasons of attempts that no fault ended
WORKED = ("evaluation", "checkpoint")  # events after a step that are no time lost


@dataclass(frozen=True)
class Outage:
    """A fault with its cost. Of several faults that ended one attempt, the first carries the cost."""

    fault: Fault
    still_seconds: float = 0.0  # from the last step before until the first step afterwards began
    steps_repeated: int = 0
    repeated_seconds: float = 0.0  # that the repeated steps had taken the first time
    ended_run: bool = False  # no attempt followed
    start: float = float("nan")  # when training began to stand still

    @property
    def seconds(self) -> float:
        return self.still_seconds + self.repeated_seconds


@dataclass(frozen=True)
class _Work:
    """What one attempt made, including steps that were made again later."""

    began: float  # of its first step
    ended: float  # of its last step, or of what followed that step
    last_began: float
    last_step: float


def outages(records: Records) -> list[Outage]:
    """Returns every fault with its cost, in the order of the faults. No second is counted twice."""
    if not records.faults:
        return []
    work = _work(records)
    ending = _ending(records, work)
    spans = _spans(records.attempts, work, ending)
    made_again, usual = repeated_steps(records), _usual_seconds(records)
    lost: dict[int, int] = {}
    for fault in records.faults:
        lost[fault.attempt] = max(lost.get(fault.attempt, 0), fault.steps_lost)
    found = []
    for fault in records.faults:
        if ending.get(fault.attempt) is not fault:
            found.append(Outage(fault))
            continue
        start, end = spans.get(fault.attempt, (fault.time, None))
        count, seconds = made_again.get(fault.attempt, (0, 0.0))
        # Rows that rank 0 had not written yet are gone, but the fault still tells their number.
        steps = max(count, lost[fault.attempt] if end is not None else 0)
        found.append(
            Outage(
                fault,
                still_seconds=0.0 if end is None else max(0.0, end - start),
                steps_repeated=steps,
                repeated_seconds=seconds + (steps - count) * usual,
                ended_run=end is None,
                start=start,
            )
        )
    return found


def repeated_steps(records: Records) -> dict[int, tuple[int, float]]:
    """Returns, by the attempt whose end made them necessary, the number and seconds of repeated steps."""
    numbers = np.array([attempt.number for attempt in records.attempts])
    first_steps = np.array([attempt.first_step for attempt in records.attempts], dtype=float)
    counts, totals = np.zeros(len(numbers), dtype=int), np.zeros(len(numbers))
    table = records.repeated
    for attempt in np.unique(table["attempt"][np.isfinite(table["attempt"])]):
        place = int(np.searchsorted(numbers, attempt, side="right"))  # of the attempt that came next
        mine = table["attempt"] == attempt
        least = np.minimum.accumulate(first_steps[place:])
        again = place + np.searchsorted(-least, -table["step"][mine])  # the attempt that made each again
        is_known = (again < len(numbers)) & (again > 0)
        np.add.at(counts, again[is_known] - 1, 1)
        np.add.at(totals, again[is_known] - 1, np.nan_to_num(table["seconds"][mine][is_known]))
    found = zip(numbers.tolist(), counts.tolist(), totals.tolist(), strict=True)
    return {number: (count, seconds) for number, count, seconds in found if count}


def pauses(records: Records) -> dict[int, float]:
    """Returns how long training stood still before each attempt's first step, if no fault was the reason.

    Only for attempts that follow another one directly, as when hosts come back.
    """
    work = _work(records)
    ending = _ending(records, work)
    found = {}
    for before, attempt in pairwise(records.attempts):
        if before.number in work and attempt.number in work and before.number not in ending:
            found[attempt.number] = max(0.0, work[attempt.number].began - work[before.number].ended)
    return found


def outside_outages(records: Records) -> Records:
    """Returns the records without the meters' rows of the time in which training stood still."""
    spans = [(one.start, one.start + one.still_seconds) for one in outages(records) if one.still_seconds > 0]
    if not spans:
        return records
    starts, ends = np.array(sorted(spans)).T
    without = Records(**vars(records))
    for name in ("hosts", "programs"):
        table = getattr(records, name)
        places = np.searchsorted(starts, table["time"], side="right") - 1
        idle = (places >= 0) & (table["time"] + np.nan_to_num(table["span"]) <= ends[places])
        setattr(without, name, {column: values[~idle] for column, values in table.items()})
    return without


def _work(records: Records) -> dict[int, _Work]:
    """Returns what each attempt made; attempts without a step are left out."""
    tables = (records.steps, records.repeated)
    attempt, step, ended, seconds = (
        np.concatenate([table[name] for table in tables]) for name in ("attempt", "step", "ended", "seconds")
    )
    known = np.isfinite(attempt) & np.isfinite(ended) & np.isfinite(step)
    order = np.argsort(attempt[known], kind="stable")
    attempt, step, ended = attempt[known][order], step[known][order], ended[known][order]
    began = ended - np.nan_to_num(seconds[known][order])
    if not len(attempt):
        return {}
    firsts = np.concatenate(([0], np.flatnonzero(np.diff(attempt)) + 1))
    columns = (
        attempt[firsts],
        np.minimum.reduceat(began, firsts),
        np.maximum.reduceat(ended, firsts),
        np.maximum.reduceat(began, firsts),
        np.maximum.reduceat(step, firsts),
    )
    worked: dict[int, float] = {}
    for event in records.events:
        if event.kind in WORKED:
            end = event.time + event.seconds
            worked[event.attempt] = max(end, worked.get(event.attempt, end))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        int(number): _Work(first, max(last, worked.get(int(number), last)), last_began, last_step)
        for number, first, last, last_began, last_step in rows
    }


def _ending(records: Records, work: dict[int, _Work]) -> dict[int, Fault]:
    """Returns the fault that ended each attempt, where one did."""
    ending: dict[int, Fault] = {}
    own = {attempt.number for attempt in records.attempts if attempt.reason in OWN_ENDS}
    for fault in records.faults:  # in the order of time
        is_past = fault.attempt in own or _outlived(fault, work.get(fault.attempt))
        if is_past or fault.kind in HARMLESS_KINDS:
            continue
        other = ending.get(fault.attempt)
        if other is None or other.kind in SIDE_KINDS and fault.kind not in SIDE_KINDS:
            ending[fault.attempt] = fault
    return ending


def _outlived(fault: Fault, work: _Work | None) -> bool:
    """Whether the attempt made further steps after the fault was noticed."""
    if work is None:
        return False
    noticed = fault.time + (fault.noticed_seconds or 0.0)
    return work.last_step > fault.step + fault.steps_lost and work.last_began > noticed


def _spans(
    attempts: list[Attempt], work: dict[int, _Work], ending: dict[int, Fault]
) -> dict[int, tuple[float, float | None]]:
    """Returns when training stood still after each attempt that a fault ended.

    An attempt that failed before its first step ends the span before it and begins its own.
    """
    spans: dict[int, tuple[float, float | None]] = {}
    until = -np.inf
    for attempt, end in zip(attempts, _next(attempts, work, ending), strict=True):
        fault = ending.get(attempt.number)
        if fault is None:
            continue
        mine = work.get(attempt.number)
        start = max(until, mine.ended if mine else max(fault.time, attempt.started))
        spans[attempt.number] = (start, end)
        until = max(until, start if end is None else end)
    return spans


def _next(attempts: list[Attempt], work: dict[int, _Work], ending: dict[int, Fault]) -> list[float | None]:
    """Returns when, after each attempt, another one made a step, failed or was ended; None for the last."""
    times: list[float | None] = [None]
    for attempt in reversed(attempts[1:]):
        if attempt.number in work:
            time: float | None = work[attempt.number].began
        elif attempt.number in ending:
            time = max(attempt.started, ending[attempt.number].time)
        elif attempt.ended is not None:
            time = attempt.ended
        else:
            time = attempt.started if times[-1] is None else times[-1]
        times.append(time)
    return times[::-1][: len(attempts)]


def _usual_seconds(records: Records) -> float:
    seconds = records.steps["seconds"]
    seconds = seconds[np.isfinite(seconds) & (seconds > 0)]
    return float(np.median(seconds)) if len(seconds) else 0.0
