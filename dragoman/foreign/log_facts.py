"""What the readers find, as they find it: a heap that `assemble` makes records of.

Readers only write down what a file says. A fact carries its origin, so that an answer can say whether it was
in a file (`measured`), told by the user (`given`), taken over from like runs (`assumed`) or worked out.
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

# A line of a log speaks for the steps since the line before. Arrays: a long log has millions of lines.
INTERVAL_COLUMNS = (
    "step",  # the last of the interval
    "steps",  # how many it speaks for
    "attempt",
    "seconds",  # of a step, mean over the interval
    "ended",
    "loss",
    "learning_rate",
    "gradient_norm",
    "target_tokens",
    "pairs",
)


# What no run has. Whatever a log holds beyond these is left out, and said.
MOST_NUMBER = 1e27  # FLOPs of the largest trainings, and a hundred times more
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
    """A cell of a log as a number; NaN where it is none, and where no run has such a number."""
    found = _float(value)
    return found if abs(found) <= MOST_NUMBER else NAN


def printed_loss(value: Any) -> float:
    """inf where the log says that it is no finite number: training broke down. NaN where it says nothing."""
    found = _float(value, nothing=None)
    return NAN if found is None else found if abs(found) <= MOST_LOSS else math.inf


def count(value: Any, most: int = MOST_STEPS) -> int | None:
    """A setting that counts something; None where it does not."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 1 <= value <= most else None


def _float(value: Any, nothing: Any = NAN) -> Any:
    try:
        found = float(value)
        return found if abs(found) >= 1 / MOST_NUMBER or found != found else 0.0  # nothing to divide by
    except (TypeError, ValueError):
        return nothing
    except OverflowError:  # a whole number of JSON may have any size
        return math.inf


def bleu_scale(scores: Iterable[float]) -> int:
    """100 if a run's BLEU was written as fractions. Of all of them: in percent a first one may be below 1."""
    return 100 if max(scores, default=0.0) <= 1 else 1


@dataclass
class LoggedStart:
    """One start of the run. Times are NaN where the log holds none."""

    number: int
    started: float = NAN
    ended: float = NAN
    first_step: int | None = None  # None: it never made a step
    last_step: int | None = None
    reason: str | None = None  # why it ended
    faults: list[str] = field(default_factory=list)  # kinds, in order of appearance
    is_over: bool = False  # the launcher has said its last words


@dataclass(frozen=True)
class Remark:
    """Something that an answer should say besides."""

    id: str  # of the finding
    text: str
    advice: str = ""


@dataclass
class Gathered:
    source: str = ""  # the program whose log it is
    facts: dict[str, tuple[Any, str]] = field(default_factory=dict)  # name -> value, origin
    settings: dict[str, Any] = field(default_factory=dict)
    starts: list[LoggedStart] = field(default_factory=list)
    intervals: dict[str, array[float]] = field(
        default_factory=lambda: {name: array("d") for name in INTERVAL_COLUMNS}
    )
    evaluations: list[EvaluationRow] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    nics: list[dict[str, Any]] = field(default_factory=list)  # rows of the tables, host as a name
    hosts: list[dict[str, Any]] = field(default_factory=list)
    gpus: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)  # file -> what it turned out to be
    notes: list[str] = field(default_factory=list)  # what was wrong with a file
    left_out: Counter[str] = field(default_factory=Counter)  # what of the file being read, and how often

    def fact(self, name: str, value: Any, origin: str = MEASURED) -> None:
        """Later files and the user's own words replace what was known."""
        if value is not None:
            self.facts[name] = (value, origin)

    def value(self, name: str) -> Any:
        return self.facts.get(name, (None, ""))[0]

    def origin(self, name: str) -> str:
        return self.facts.get(name, (None, ""))[1]

    @property
    def start(self) -> LoggedStart:
        """The newest; the first one is made when something happens in it."""
        return self.starts[-1] if self.starts else self.begin()

    def begin(self) -> LoggedStart:
        if len(self.starts) == MOST_STARTS:
            self.left_out[f"starts after the first {MOST_STARTS:,}"] += 1
        else:
            self.starts.append(LoggedStart(len(self.starts) + 1))
        return self.starts[-1]

    def interval(self, step: int, steps: int, seconds: float, **values: float) -> None:
        """The steps up to `step`. A step that falls back belongs to a new start."""
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

    # --- cells of a log, each left out and counted where it cannot be true

    def number(self, value: Any) -> float:
        found = _float(value)
        if abs(found) > MOST_NUMBER:
            self.left_out["numbers that are not finite or too large"] += 1
            return NAN
        return found

    def step(self, value: Any) -> int | None:
        """The number of a step; None where it is none."""
        found = self.number(value)
        if found != found or 0 <= found <= MOST_STEPS:
            return int(found) if found == found else None
        self.left_out["step numbers that no run has"] += 1
        return None

    def whole(self, digits: str, most: int = MOST_STEPS) -> int | None:
        """A count, perhaps with commas. By length first: Python refuses to read thousands of digits."""
        plain = digits.replace(",", "").lstrip("0")
        if len(plain) <= _MOST_DIGITS and (value := int(plain or "0")) <= most:
            return value
        self.left_out["numbers that are not finite or too large"] += 1
        return None

    def lasting(self, seconds: float, most: float = MOST_STEP_SECONDS) -> float:
        """A duration; NaN where it is negative or too long to be true."""
        if seconds == seconds and not 0 <= seconds <= most:
            self.left_out["durations that are negative or too long"] += 1
            return NAN
        return seconds

    def dated(self, time: float) -> float:
        """A Unix time; NaN where no training was."""
        if time == time and not DATES[0] <= time <= DATES[1]:
            self.left_out["dates before 2000 or after 2100"] += 1
            return NAN
        return time

    def near(self, times: Sequence[float]) -> list[float]:
        """Unix times of one start; NaN for those a year and more from most others: a clock that was wrong."""
        dates = [time for time in times if time >= DATES[0]]
        middle = median(dates) if dates else NAN
        is_off = [time >= DATES[0] and abs(time - middle) > YEAR for time in times]
        if any(is_off):
            self.left_out["dates years away from the others"] += sum(is_off)
        return [NAN if off else time for time, off in zip(times, is_off, strict=True)]

    def say_what_was_left_out(self, path: Path | None = None) -> None:
        """At the end of a file; without one, of all of them."""
        if self.left_out:
            where = f"{path}: " if path else ""
            parts = [f"{what} ({count:,})" for what, count in self.left_out.items()]
            self.notes.append(f"{where}left out: {', '.join(parts)}")
            self.left_out.clear()

    def remark(self, id: str, text: str, advice: str = "") -> None:
        remark = Remark(id, text, advice)
        if remark not in self.remarks:
            self.remarks.append(remark)
