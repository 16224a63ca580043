"""What the readers gather from files, before `assemble` turns it into records.

Readers only write down what a file says. Each fact has an origin, so that an answer can say whether it was
found in a file (`measured`), given by the user (`given`), a usual value or one of similar runs (`assumed`),
or worked out (`estimated`).
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from dragoman.measure.records import EvaluationRow, Event

MEASURED, GIVEN, ASSUMED, ESTIMATED = "measured", "given", "assumed", "estimated"
NAN = float("nan")

# A step line of a log covers the steps since the previous one. The columns are arrays, because a long log has
# millions of lines.
INTERVAL_COLUMNS = (
    "step",  # the last step of the interval
    "steps",  # number of steps in the interval
    "attempt",
    "seconds",  # per step, mean over the interval
    "ended",
    "loss",
    "learning_rate",
    "gradient_norm",
    "target_tokens",
    "pairs",
)


# Limits that no real run exceeds. Values beyond them are left out, and a note counts them.
MOST_NUMBER = 1e27  # a hundred times the FLOPs of the largest trainings
MOST_STEPS = 10**12
MOST_RANKS = 100_000
MOST_STEP_SECONDS = 7 * 86_400.0
YEAR = 366 * 86_400.0
MOST_HOURS = 10 * YEAR / 3600
DATES = (946_684_800.0, 4_102_444_800.0)  # 2000 to 2100
MOST_LOSS = 1e9
MOST_STARTS = 1_000
MOST_EVENTS = 100_000
_MOST_DIGITS = 18


def number(value: Any) -> float:
    """A value from a log as a number; NaN if it is not a number, or too large for any run."""
    parsed = _float(value)
    return parsed if abs(parsed) <= MOST_NUMBER else NAN


def printed_loss(value: Any) -> float:
    """A printed loss: inf if it is not finite (training broke down), NaN if no number was printed."""
    parsed = _float(value, nothing=None)
    return NAN if parsed is None else parsed if abs(parsed) <= MOST_LOSS else math.inf


def count(value: Any, most: int = MOST_STEPS) -> int | None:
    """A setting as a count from 1 to `most`; None if it is not one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 1 <= value <= most else None


def _float(value: Any, nothing: Any = NAN) -> Any:
    try:
        parsed = float(value)
        # Tiny numbers become 0, because dividing by them would overflow.
        return parsed if abs(parsed) >= 1 / MOST_NUMBER or parsed != parsed else 0.0
    except (TypeError, ValueError):
        return nothing
    except OverflowError:  # integers in JSON may have any size
        return math.inf


def bleu_scale(scores: Iterable[float]) -> int:
    """100 if a run's BLEU scores are fractions, 1 if they are percent.

    It takes all scores of the run, because the first one may be below 1 percent.
    """
    return 100 if max(scores, default=0.0) <= 1 else 1


@dataclass
class LoggedStart:
    """One start of the run. Times are NaN if the log holds none."""

    number: int
    started: float = NAN
    ended: float = NAN
    first_step: int | None = None  # None: it made no step
    last_step: int | None = None
    reason: str | None = None  # why it ended
    faults: list[str] = field(default_factory=list)  # kinds, in order of appearance
    is_over: bool = False  # mpirun has reported its end


@dataclass(frozen=True)
class Remark:
    """A sentence to add to an answer."""

    id: str  # the id of the finding
    text: str
    advice: str = ""


@dataclass
class Gathered:
    """Everything that the readers took from the files of one run."""

    source: str = ""  # the program that wrote the log
    facts: dict[str, tuple[Any, str]] = field(default_factory=dict)  # name -> value, origin
    settings: dict[str, Any] = field(default_factory=dict)
    starts: list[LoggedStart] = field(default_factory=list)
    intervals: dict[str, array[float]] = field(
        default_factory=lambda: {name: array("d") for name in INTERVAL_COLUMNS}
    )
    evaluations: list[EvaluationRow] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    nics: list[dict[str, Any]] = field(default_factory=list)  # table rows; `host` is a name
    hosts: list[dict[str, Any]] = field(default_factory=list)
    gpus: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    file_kinds: dict[str, str] = field(default_factory=dict)  # file -> the kind it was recognised as
    notes: list[str] = field(default_factory=list)  # problems with files
    left_out: Counter[str] = field(default_factory=Counter)  # counts of what was skipped in the current file

    def fact(self, name: str, value: Any, origin: str = MEASURED) -> None:
        """Sets a fact and its origin, replacing an earlier value. None changes nothing."""
        if value is not None:
            self.facts[name] = (value, origin)

    def value(self, name: str) -> Any:
        return self.facts.get(name, (None, ""))[0]

    def origin(self, name: str) -> str:
        return self.facts.get(name, (None, ""))[1]

    @property
    def start(self) -> LoggedStart:
        """The newest start; the first one is created on demand."""
        return self.starts[-1] if self.starts else self.begin()

    def begin(self) -> LoggedStart:
        if len(self.starts) == MOST_STARTS:
            self.left_out[f"starts after the first {MOST_STARTS:,}"] += 1
        else:
            self.starts.append(LoggedStart(len(self.starts) + 1))
        return self.starts[-1]

    def interval(self, step: int, steps: int, seconds: float, **values: float) -> None:
        """Adds a line that covers `steps` steps up to `step`. If `step` falls back, a new start begins."""
        if self.start.last_step is not None and step <= self.start.last_step:
            self.begin()
        start = self.start
        if start.first_step is None:
            start.first_step = max(0, step - steps + 1)
        start.last_step = step
        row = {"step": step, "steps": steps, "attempt": start.number, "seconds": self.lasting(seconds)}
        row |= values
        for name in INTERVAL_COLUMNS:
            self.intervals[name].append(row.get(name, NAN))

    def evaluation(self, row: EvaluationRow) -> None:
        if len(self.evaluations) == MOST_EVENTS:
            self.left_out[f"evaluations after the first {MOST_EVENTS:,}"] += 1
        else:
            self.evaluations.append(row)

    def event(self, event: Event) -> None:
        if len(self.events) == MOST_EVENTS:
            self.left_out[f"events after the first {MOST_EVENTS:,}"] += 1
        else:
            self.events.append(event)

    # --- values of a log; impossible ones are left out and counted

    def number(self, value: Any) -> float:
        """A number; NaN if it is not a number, not finite or too large."""
        parsed = _float(value)
        if abs(parsed) > MOST_NUMBER:
            self.left_out["numbers that are not finite or too large"] += 1
            return NAN
        return parsed

    def step(self, value: Any) -> int | None:
        """The number of a step; None if it is not a possible one."""
        parsed = self.number(value)
        if parsed != parsed or 0 <= parsed <= MOST_STEPS:
            return int(parsed) if parsed == parsed else None
        self.left_out["impossible step numbers"] += 1
        return None

    def whole(self, digits: str, most: int = MOST_STEPS) -> int | None:
        """A count, perhaps with commas; None if it is too large. Python cannot parse thousands of digits."""
        plain = digits.replace(",", "").lstrip("0")
        if len(plain) <= _MOST_DIGITS and (value := int(plain or "0")) <= most:
            return value
        self.left_out["numbers that are not finite or too large"] += 1
        return None

    def lasting(self, seconds: float, most: float = MOST_STEP_SECONDS) -> float:
        """A duration; NaN if it is negative or impossibly long."""
        if seconds == seconds and not 0 <= seconds <= most:
            self.left_out["durations that are negative or too long"] += 1
            return NAN
        return seconds

    def dated(self, time: float) -> float:
        """A Unix time; NaN if it is before 2000 or after 2100."""
        if time == time and not DATES[0] <= time <= DATES[1]:
            self.left_out["dates before 2000 or after 2100"] += 1
            return NAN
        return time

    def near(self, times: Sequence[float]) -> list[float]:
        """The Unix times of one start, with NaN for those over a year from their median (a wrong clock)."""
        dates = [time for time in times if time >= DATES[0]]
        middle = median(dates) if dates else NAN
        is_off = [time >= DATES[0] and abs(time - middle) > YEAR for time in times]
        if any(is_off):
            self.left_out["dates years away from the others"] += sum(is_off)
        return [NAN if off else time for time, off in zip(times, is_off, strict=True)]

    def note_what_was_left_out(self, path: Path | None = None) -> None:
        """Adds a note with what was left out of this file, or of all files, and resets the counts."""
        if self.left_out:
            where = f"{path}: " if path else ""
            parts = [f"{what} ({count:,})" for what, count in self.left_out.items()]
            self.notes.append(f"{where}left out: {', '.join(parts)}")
            self.left_out.clear()

    def remark(self, id: str, text: str, advice: str = "") -> None:
        remark = Remark(id, text, advice)
        if remark not in self.remarks:
            self.remarks.append(remark)
