"""What happened during a run, as rows of a table and as lines for the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from dragoman import format_units
from dragoman.explain.details import Happening, is_eventful, timeline
from dragoman.measure.records import Records
from dragoman.report import units

TITLE = "What happened"
HEADER = (
    *("after", "time (UTC)", "what", "where", "steps done", "noticed after", "stood still", "repeated"),
    "stacks",
)
MOST_ROWS, FIRST_ROWS = 60, 20  # of a table; more are left out between the first and the last
MOST_LINES, FIRST_LINES = 20, 8  # on a terminal


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str


def table(records: Records) -> Table | None:
    """Returns the time line as a table without empty columns; None if the run only started and ended."""
    happened = timeline(records)
    if not is_eventful(happened):
        return None
    shown, left_out = _cut(happened, MOST_ROWS, FIRST_ROWS)
    rows = [_cells(row, before) for row, before in zip(shown, [None, *shown], strict=False)]
    kept = [place for place in range(len(HEADER)) if any(row[place] for row in rows)]
    note = "A fault's time is the last sign of life of what failed. Training stood still from the last step "
    note += "before it until the next step began."
    note = note if any(row.kind == "fault" for row in happened) else ""
    if left_out:
        note += f" {_left_out(left_out)} from the middle."
    header = tuple(HEADER[place] for place in kept)
    return Table(header, [tuple(row[place] for place in kept) for row in rows], note.strip())


def lines(records: Records) -> list[tuple[str, str]]:
    """Returns when and what for each line of the time line; none if the run only started and ended."""
    happened = timeline(records)
    if not is_eventful(happened):
        return []
    shown, left_out = _cut(happened, MOST_LINES, FIRST_LINES)
    told = [(_after(row), _sentence(row)) for row in shown]
    if left_out:
        told.insert(FIRST_LINES, ("", f"({_left_out(left_out)})"))
    return told


def _cut(rows: list[Happening], most: int, first: int) -> tuple[Sequence[Happening], int]:
    """Returns the first and the last rows, and how many between them are left out."""
    if len(rows) <= most:
        return rows, 0
    return [*rows[:first], *rows[first - most :]], len(rows) - most


def _left_out(count: int) -> str:
    return f"{format_units.counted(count, 'row')} left out, all are in findings.json"


def _cells(row: Happening, before: Happening | None) -> tuple[str, ...]:
    return (
        _after(row),
        _clock(row.clock_time, before.clock_time if before else None),
        row.what,
        row.where,
        "" if row.step is None else f"{row.step:,}",
        _seconds(row.noticed_seconds),
        _seconds(row.still_seconds),
        "" if row.steps_repeated is None else format_units.counted(row.steps_repeated, "step"),
        row.stacks,
    )


def _clock(seconds: float | None, before: float | None) -> str:
    """Returns a time of day, with the date unless the row before is of the same day."""
    if seconds is None:
        return ""
    is_same_day = before is not None and time.gmtime(before)[:3] == time.gmtime(seconds)[:3]
    return time.strftime("%H:%M:%S" if is_same_day else "%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def _after(row: Happening) -> str:
    if row.seconds is None:
        return f"during attempt {row.attempt}" if row.time is None else units.NOT_KNOWN
    return format_units.seconds(row.seconds) if row.seconds else "0 s"


def _seconds(value: float | None) -> str:
    return "" if value is None else format_units.seconds(value)


def _sentence(row: Happening) -> str:
    text = f"{row.where}: {row.what}" if row.kind == "fault" and row.where else row.what
    text = f"{row.where} {row.what}" if row.kind == "joined" and row.where else text
    if row.step is not None:
        at = "after" if row.kind == "start" else "at"
        text += f", {at} step {row.step:,}" if row.kind != "start" or row.step else ""
    parts = []
    if row.noticed_seconds is not None:
        parts.append(f"noticed after {format_units.seconds(row.noticed_seconds)}")
    if row.still_seconds is not None:
        parts.append(f"stood still {format_units.seconds(row.still_seconds)}")
    if row.steps_repeated is not None:
        parts.append(f"{format_units.counted(row.steps_repeated, 'step')} repeated")
    if row.stacks:
        parts.append(f"stacks in {row.stacks}")
    return f"{text}; {', '.join(parts)}" if parts else text
