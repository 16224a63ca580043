"""Turns what the readers gathered into records: one row per step, one clock, derived facts filled in."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Any

import numpy as np

from dragoman.foreign.gpumeters import metered
from dragoman.foreign.log_facts import NAN, YEAR, Gathered, LoggedStart, number
from dragoman.foreign.runfacts import run_facts
from dragoman.measure.records import FIRST_DATE, Attempt, Event, Records, Table

_LONGEST_SETTING = 200  # characters of a setting that is neither a number nor text
MOST_ROWS = 1_000_000  # rows of steps in memory; in a longer run, one row stands for several steps


def assemble(run: Gathered, name: str) -> Records:
    """The gathered facts and rows of one run as records."""
    _keep_newest(run)
    _mend_clocks(run)
    run.settings = {
        name: plain for name, value in run.settings.items() if (plain := _plain(value)) is not None
    }
    run.note_what_was_left_out()
    attempts = _attempts(run)
    superseded_from = _superseded_from(run)
    intervals = {key: np.array(values) for key, values in run.intervals.items()}
    intervals = _without_superseded(intervals, superseded_from)
    intervals = _on_one_clock(intervals, attempts)
    given_seconds = run.value("given_step_seconds")
    is_given = bool(given_seconds) and not np.isfinite(intervals["seconds"]).any()
    if is_given:
        run.fact("one_mean", "the given time per step")
        intervals["seconds"] = np.full(len(intervals["step"]), float(given_seconds))
    steps, per_row = _expanded(intervals)
    events = _events(run, attempts, intervals)
    if is_given and not len(intervals["step"]):
        steps, per_row = _given_steps(run)
        attempts = _given_attempt(run)
    gpus = metered(run)
    facts = run_facts(run, name, intervals, per_row)
    evaluations = [
        row.model_copy(update={"time": _absolute(row.time, attempts, row.attempt)}) for row in run.evaluations
    ]
    return Records(
        facts,
        attempts,
        steps=steps,
        evaluations=[row for row in evaluations if row.step < superseded_from[row.attempt]],
        events=events,
        nics=_table(run.nics, facts.hosts, ("time", "span", "sent_bytes", "received_bytes")),
        hosts=_table(
            run.hosts, facts.hosts, ("time", "span", "cpu_share", "disk_read_bytes", "disk_written_bytes")
        ),
        gpus=_table(gpus, facts.hosts, _GPU_COLUMNS),
    )


_GPU_COLUMNS = (
    "time",
    "span",
    "gpu",
    "utilisation",
    "power_watts",
    "power_limit_watts",
    "memory_bytes",
    "temperature_celsius",
)


# --- runs -------------------------------------------------------------------------------------------------


def _keep_newest(run: Gathered) -> None:
    """Drops runs that finished before the newest run began: nohup appends to its file."""
    before = max(
        (
            start.number
            for start, following in pairwise(run.starts)
            if start.reason == "finished" and _begins_anew(start, following)
        ),
        default=0,
    )
    if not before:
        return
    steps = ", ".join(f"{start.last_step:,} steps" for start in run.starts[:before] if start.last_step)
    run.remark("duration", f"The log also holds an earlier run that finished ({steps}), not counted here")
    kept = np.array(run.intervals["attempt"]) > before
    for name, values in run.intervals.items():
        run.intervals[name] = array("d", np.array(values)[kept] - (before if name == "attempt" else 0))
    run.evaluations = [
        row.model_copy(update={"attempt": row.attempt - before})
        for row in run.evaluations
        if row.attempt > before
    ]
    run.events = [
        event.model_copy(update={"attempt": event.attempt - before})
        for event in run.events
        if event.attempt > before
    ]
    run.starts = run.starts[before:]
    for start in run.starts:
        start.number -= before


def _begins_anew(start: LoggedStart, following: LoggedStart) -> bool:
    last, first = start.last_step, following.first_step
    return last is not None and first is not None and first < last


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it; None for an impossible number. A log may print any Python literal."""
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, int | float):
        return value if number(value) == value else None
    return repr(value)[:_LONGEST_SETTING]


# --- time -------------------------------------------------------------------------------------------------


def _mend_clocks(run: Gathered) -> None:
    """Removes dates that are years away from the other dates of the same start."""
    for start in run.starts:
        first, end = _lines_of(run, start)
        times = [start.started, start.ended, *run.intervals["ended"][first:end]]
        start.started, start.ended, *ended = run.near(times)
        run.intervals["ended"][first:end] = array("d", ended)


def _lines_of(run: Gathered, start: LoggedStart) -> tuple[int, int]:
    """The range of a start's lines. Each start's lines are contiguous."""
    numbers = run.intervals["attempt"]
    return bisect_left(numbers, start.number), bisect_right(numbers, start.number)


def _attempts(run: Gathered) -> list[Attempt]:
    """The attempts of the run. Without dates in the log, each begins when the previous one ends."""
    ended, attempts = 0.0, []
    ends = np.array(run.intervals["ended"])
    for start in run.starts:
        mine = ends[slice(*_lines_of(run, start))]
        mine = mine[np.isfinite(mine)]
        last = float(mine.max()) if len(mine) else NAN
        if last >= FIRST_DATE:  # the lines have dates
            started = start.started if start.started == start.started else float(mine.min())
        else:
            # Not before the previous start has ended: two files may be given in any order.
            started = max(ended, start.started if start.started == start.started else _next_date(run, start))
            length = last if last == last or len(run.starts) > 1 else run.value("wall_seconds") or NAN
            last = started + length
        ended = start.ended if start.ended == start.ended else last if last == last else started
        attempts.append(
            Attempt(
                number=start.number,
                started=started,
                first_step=start.first_step or 0,
                ranks=run.value("ranks") or 0,
                ended=ended,
                reason=start.reason or _open_end(run, start),
            )
        )
    return attempts


def _next_date(run: Gathered, start: LoggedStart) -> float:
    """The date of the next start that has one, for a start without; 0 if none has. The gap is short."""
    dates = [later.started for later in run.starts[start.number :] if later.started == later.started]
    return dates[0] if dates else 0.0


def _open_end(run: Gathered, start: LoggedStart) -> str:
    """The reason for an end that the log does not explain: stopped, or copied while still running."""
    wanted = run.settings.get("train.steps")
    if start is not run.starts[-1]:
        return "started again"
    at = f"at step {start.last_step:,}" if start.last_step is not None else "before the first step"
    of = f" of {wanted:,}" if isinstance(wanted, int) and start.last_step is not None else ""
    return f"the log ends {at}{of}: stopped, or still running when it was copied"


def _absolute(time: float, attempts: list[Attempt], number: int) -> float:
    if not 1 <= number <= len(attempts):
        return time
    started = attempts[number - 1].started
    if time >= FIRST_DATE:
        return NAN if started >= FIRST_DATE and abs(time - started) > YEAR else time
    return started + time


def _on_one_clock(intervals: Table, attempts: list[Attempt]) -> Table:
    started = np.array([NAN, *(attempt.started for attempt in attempts)])
    ended = intervals["ended"]
    relative = np.isfinite(ended) & (ended < FIRST_DATE)
    ended = np.where(relative, ended + started[intervals["attempt"].astype(int)], ended)
    return {**intervals, "ended": ended}


# --- steps ------------------------------------------------------------------------------------------------


def _superseded_from(run: Gathered) -> list[float]:
    """The first step that a later start repeated, by the number of a start (the list begins at 0)."""
    limits = [np.inf]
    for start in reversed(run.starts):
        limits.append(limits[-1] if start.first_step is None else min(limits[-1], start.first_step))
    return [np.inf, *limits[-2::-1]]


def _without_superseded(intervals: Table, superseded_from: list[float]) -> Table:
    """The intervals without steps that a later start repeated."""
    kept = intervals["step"] < np.array(superseded_from)[intervals["attempt"].astype(int)]
    return {name: values[kept] for name, values in intervals.items()}


def _expanded(intervals: Table) -> tuple[Table, int]:
    """A row per step, because the explainers count rows, and the steps that a row stands for.

    A loss or rate that was printed for one step appears only in that step's row.
    """
    count = np.maximum(1, intervals["steps"]).astype(np.int64)
    total = int(count.sum())
    per_row = max(1, -(-total // MOST_ROWS))
    if per_row > 1:
        count = np.maximum(1, np.round(count / per_row).astype(np.int64))
    rows = np.repeat(np.arange(len(count)), count)
    last = np.cumsum(count)
    back = (last[rows] - 1 - np.arange(len(rows))) * per_row  # steps before the printed one
    seconds = intervals["seconds"][rows]
    steps: Table = {
        "step": intervals["step"][rows] - back,
        "attempt": intervals["attempt"][rows],
        "seconds": seconds,
        "ended": intervals["ended"][rows] - back * np.where(np.isfinite(seconds), seconds, 0.0),
    }
    for name in ("loss", "learning_rate", "gradient_norm"):
        if np.isfinite(intervals[name]).any():
            steps[name] = np.where(back == 0, intervals[name][rows], NAN)
    for name in ("target_tokens", "pairs"):  # means over the interval
        if np.isfinite(intervals[name]).any():
            steps[name] = intervals[name][rows]
    return steps, per_row


def _given_steps(run: Gathered) -> tuple[Table, int]:
    """Rows for the given number of steps, all with the given time; one row if the number is unknown."""
    count, seconds = run.value("given_steps"), run.value("given_step_seconds")
    per_row = max(1, -(-(count or 1) // MOST_ROWS))
    rows = max(1, (count or 1) // per_row)
    numbers = np.arange(1, rows + 1) * float(per_row) if count else np.array([NAN])
    return {"step": numbers, "attempt": np.ones(rows), "seconds": np.full(rows, float(seconds))}, per_row


def _given_attempt(run: Gathered) -> list[Attempt]:
    wall, ranks = run.value("wall_seconds"), run.value("ranks") or 0
    if not wall:
        return []
    return [
        Attempt(
            number=1, started=0.0, ended=wall, first_step=1, ranks=ranks, reason="as given, without a log"
        )
    ]


# --- events and meters ------------------------------------------------------------------------------------


def _events(run: Gathered, attempts: list[Attempt], intervals: Table) -> list[Event]:
    events = [
        event.model_copy(update={"time": _absolute(event.time, attempts, event.attempt)})
        for event in run.events
    ]
    if run.value("seconds_include_evaluations") and not any(event.kind == "evaluation" for event in events):
        events += _evaluation_seconds(run, intervals)
    return events


def _evaluation_seconds(run: Gathered, intervals: Table) -> list[Event]:
    """Evaluation times, estimated from how much longer the intervals with an evaluation took."""
    first, last = intervals["step"] - intervals["steps"] + 1, intervals["step"]
    with_one = np.zeros(len(last), dtype=bool)
    for row in run.evaluations:
        if row.step <= (run.starts[row.attempt - 1].first_step or 0):  # counted as start-up
            continue
        begin, end = np.searchsorted(intervals["attempt"], (row.attempt, row.attempt + 1))
        index = begin + np.searchsorted(last[begin:end], row.step + 1)
        if index < end and first[index] <= row.step + 1:
            with_one[index] = True
    timed = np.isfinite(intervals["seconds"])
    if not (with_one & timed).any() or not (timed & ~with_one).any():
        return []
    usual = float(np.median(intervals["seconds"][timed & ~with_one]))
    events = []
    for index in np.flatnonzero(with_one & timed):
        seconds = float((intervals["seconds"][index] - usual) * intervals["steps"][index])
        event = Event(
            time=float(intervals["ended"][index] - max(0.0, seconds)),
            attempt=int(intervals["attempt"][index]),
            step=int(last[index]),
            kind="evaluation",
            seconds=max(0.0, seconds),
            detail="the extra time of its interval",
        )
        events.append(event)
    return events


def _table(rows: list[dict[str, Any]], hosts: list[str], columns: tuple[str, ...]) -> Table | None:
    """The rows as columns. A host without ranks gets the next free number."""
    if not rows:
        return None
    numbers = {name: number for number, name in enumerate(hosts)}
    if not any(name.startswith("machine ") for name in hosts):
        for row in rows:
            if row["host"]:
                numbers.setdefault(row["host"], len(numbers))
    places = [numbers.get(row["host"], 0) for row in rows]
    table: Table = {"host": np.array(places, dtype=np.float64)}
    for name in columns:
        table[name] = np.array([row.get(name, NAN) for row in rows], dtype=np.float64)
    if "interface" in rows[0]:
        table["interface"] = np.array([row["interface"] for row in rows])
    return table
