"""What the readers found, made into records: steps one by one, times on one clock, facts filled in."""

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

_LONGEST_SETTING = 200  # characters of one that is no number or word
MOST_ROWS = 1_000_000  # of steps in memory; a longer run is thinned


def assemble(run: Gathered, name: str) -> Records:
    _keep_newest(run)
    _mend_clocks(run)
    run.settings = {
        name: plain for name, value in run.settings.items() if (plain := _plain(value)) is not None
    }
    run.say_what_was_left_out()
    attempts = _attempts(run)
    superseded_from = _superseded_from(run)
    intervals = _living({key: np.array(values) for key, values in run.intervals.items()}, superseded_from)
    intervals = _on_one_clock(intervals, attempts)
    given_seconds = run.value("given_step_seconds")
    is_given = bool(given_seconds) and not np.isfinite(intervals["seconds"]).any()
    if is_given:
        run.fact("one_mean", "as it was given")
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
    """nohup appends: a log may hold a run that finished, and after it another one, from its first step on."""
    before = max(
        (
            one.number
            for one, other in pairwise(run.starts)
            if one.reason == "finished" and _is_new(one, other)
        ),
        default=0,
    )
    if not before:
        return
    steps = ", ".join(f"{start.last_step:,} steps" for start in run.starts[:before] if start.last_step)
    run.remark("duration", f"The log also holds what was run before, to its end ({steps}): not counted here")
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


def _is_new(one: LoggedStart, other: LoggedStart) -> bool:
    return one.last_step is not None and other.first_step is not None and other.first_step < one.last_step


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it: a log may print any literal of Python. None for a number no run has."""
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, int | float):
        return value if number(value) == value else None
    return repr(value)[:_LONGEST_SETTING]


# --- time -------------------------------------------------------------------------------------------------


def _mend_clocks(run: Gathered) -> None:
    """Without dates that are years away from the other dates of their start."""
    for start in run.starts:
        first, end = _lines_of(run, start)
        times = [start.started, start.ended, *run.intervals["ended"][first:end]]
        start.started, start.ended, *ended = run.near(times)
        run.intervals["ended"][first:end] = array("d", ended)


def _lines_of(run: Gathered, start: LoggedStart) -> tuple[int, int]:
    """Where the lines of a start begin and end: starts follow each other."""
    numbers = run.intervals["attempt"]
    return bisect_left(numbers, start.number), bisect_right(numbers, start.number)


def _attempts(run: Gathered) -> list[Attempt]:
    """One after the other where the log holds no dates: a start begins when the one before has ended."""
    ended, found = 0.0, []
    ends = np.array(run.intervals["ended"])
    for start in run.starts:
        mine = ends[slice(*_lines_of(run, start))]
        mine = mine[np.isfinite(mine)]
        last = float(mine.max()) if len(mine) else NAN
        if last >= FIRST_DATE:  # dates in the lines themselves
            started = start.started if start.started == start.started else float(mine.min())
        else:
            # Never before the one before has ended: two files may be given in any order.
            started = max(ended, start.started if start.started == start.started else _next_date(run, start))
            length = last if last == last or len(run.starts) > 1 else run.value("wall_seconds") or NAN
            last = started + length
        ended = start.ended if start.ended == start.ended else last if last == last else started
        found.append(
            Attempt(
                number=start.number,
                started=started,
                first_step=start.first_step or 0,
                ranks=run.value("ranks") or 0,
                ended=ended,
                reason=start.reason or _open_end(run, start),
            )
        )
    return found


def _next_date(run: Gathered, start: LoggedStart) -> float:
    """A start without a date was not long before the next one that has one; 0 if none has."""
    dates = [later.started for later in run.starts[start.number :] if later.started == later.started]
    return dates[0] if dates else 0.0


def _open_end(run: Gathered, start: LoggedStart) -> str:
    """A log that simply ends: stopped, or copied while the run went on; finished it is not."""
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
    """By the number of a start, the first step that a later one made again."""
    limits = [np.inf]
    for start in reversed(run.starts):
        limits.append(limits[-1] if start.first_step is None else min(limits[-1], start.first_step))
    return [np.inf, *limits[-2::-1]]


def _living(intervals: Table, superseded_from: list[float]) -> Table:
    """Without the steps that a later start made again."""
    alive = intervals["step"] < np.array(superseded_from)[intervals["attempt"].astype(int)]
    return {name: values[alive] for name, values in intervals.items()}


def _expanded(intervals: Table) -> tuple[Table, int]:
    """A row for every step: all explainers count rows. What is printed once stands at the step it was of."""
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
    """As many rows as steps were named, all of the mean time; one where nobody said how many."""
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
        Attempt(number=1, started=0.0, ended=wall, first_step=1, ranks=ranks, reason="as it was written down")
    ]


# --- what happened beside steps ---------------------------------------------------------------------------


def _events(run: Gathered, attempts: list[Attempt], intervals: Table) -> list[Event]:
    events = [
        event.model_copy(update={"time": _absolute(event.time, attempts, event.attempt)})
        for event in run.events
    ]
    if run.value("seconds_include_evaluations") and not any(event.kind == "evaluation" for event in events):
        events += _evaluation_seconds(run, intervals)
    return events


def _evaluation_seconds(run: Gathered, intervals: Table) -> list[Event]:
    """An interval with an evaluation in it is longer than those without by the evaluation."""
    first, last = intervals["step"] - intervals["steps"] + 1, intervals["step"]
    with_one = np.zeros(len(last), dtype=bool)
    for row in run.evaluations:
        if row.step <= (run.starts[row.attempt - 1].first_step or 0):  # part of the start
            continue
        begin, end = np.searchsorted(intervals["attempt"], (row.attempt, row.attempt + 1))
        index = begin + np.searchsorted(last[begin:end], row.step + 1)
        if index < end and first[index] <= row.step + 1:
            with_one[index] = True
    timed = np.isfinite(intervals["seconds"])
    if not (with_one & timed).any() or not (timed & ~with_one).any():
        return []
    usual = float(np.median(intervals["seconds"][timed & ~with_one]))
    found = []
    for index in np.flatnonzero(with_one & timed):
        seconds = float((intervals["seconds"][index] - usual) * intervals["steps"][index])
        event = Event(
            time=float(intervals["ended"][index] - max(0.0, seconds)),
            attempt=int(intervals["attempt"][index]),
            step=int(last[index]),
            kind="evaluation",
            seconds=max(0.0, seconds),
            detail="by what its interval took longer than others",
        )
        found.append(event)
    return found


def _table(rows: list[dict[str, Any]], hosts: list[str], columns: tuple[str, ...]) -> Table | None:
    """Rows to columns. A host that no rank was seen on takes the next number."""
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
