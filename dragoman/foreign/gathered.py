"""What the readers find, as they find it: a heap that `assemble` makes records of.

Readers only write down what a file says. A fact carries its origin, so that an answer can say whether it was
in a file (`measured`), told by the user (`given`), taken over from like runs (`assumed`) or worked out.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
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


def number(value: Any) -> float:
    """A cell of a log as a number; NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return NAN


def printed_loss(value: Any) -> float:
    """inf where the log says that it is no finite number: training broke down. NaN where it says nothing."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return NAN
    return found if math.isfinite(found) else math.inf


def bleu_scale(scores: Iterable[float]) -> int:
    """100 if a run's BLEU was written as fractions. Of all of them: in percent a first one may be below 1."""
    return 100 if max(scores, default=0.0) <= 1 else 1


@dataclass
class Start:
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
    starts: list[Start] = field(default_factory=list)
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

    def fact(self, name: str, value: Any, origin: str = MEASURED) -> None:
        """Later files and the user's own words replace what was known."""
        if value is not None:
            self.facts[name] = (value, origin)

    def value(self, name: str) -> Any:
        return self.facts.get(name, (None, ""))[0]

    def origin(self, name: str) -> str:
        return self.facts.get(name, (None, ""))[1]

    @property
    def start(self) -> Start:
        """The newest; the first one is made when something happens in it."""
        return self.starts[-1] if self.starts else self.begin()

    def begin(self) -> Start:
        self.starts.append(Start(len(self.starts) + 1))
        return self.starts[-1]

    def interval(self, step: int, steps: int, seconds: float, **values: float) -> None:
        """The steps up to `step`. A step that falls back belongs to a new start."""
        if self.start.last_step is not None and step <= self.start.last_step:
            self.begin()
        start = self.start
        if start.first_step is None:
            start.first_step = max(0, step - steps + 1)
        start.last_step = step
        row = {"step": step, "steps": steps, "attempt": start.number, "seconds": seconds, **values}
        for name in INTERVAL_COLUMNS:
            self.intervals[name].append(row.get(name, NAN))

    def remark(self, id: str, text: str, advice: str = "") -> None:
        remark = Remark(id, text, advice)
        if remark not in self.remarks:
            self.remarks.append(remark)
