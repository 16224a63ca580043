"""Compares the plan for a run, if there is one, with what the run took, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.errors import RecordsError
from dragoman.explain.finding import Finding
from dragoman.measure.records import Records, RunFacts
from dragoman.plan import document
from dragoman.plan.document import Number, Saved
from dragoman.plan.observed import actual_step
from dragoman.report import summary, units
from dragoman.rundir import RunFolder

HEADER = ("part", "planned", "actual", "actual over planned")


@dataclass(frozen=True)
class PlannedPart:
    name: str  # includes the unit, like the numbers of findings
    planned: Number
    actual: float

    @property
    def cells(self) -> tuple[str, ...]:
        planned = self.planned
        ends = f"{units.shown(self.name, planned.low)} to {units.shown(self.name, planned.high)}"
        ratio = f"{self.actual / planned.value:.2f}" if planned.value else units.NOT_KNOWN
        is_inside = planned.low <= self.actual <= planned.high
        return (
            units.label(self.name),
            f"{units.shown(self.name, planned.value)} ({ends})",
            units.shown(self.name, self.actual),
            f"{ratio}{'' if is_inside else ', outside the interval'}",
        )

    def document(self) -> dict[str, Any]:
        planned = {"planned": self.planned.value, "low": self.planned.low, "high": self.planned.high}
        return {"part": self.name, **planned, "actual": self.actual}


@dataclass(frozen=True)
class PlannedAgainstActual:
    note: str
    parts: list[PlannedPart] = field(default_factory=list)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        return [part.cells for part in self.parts]

    def document(self) -> dict[str, Any]:
        return {"note": self.note, "parts": [part.document() for part in self.parts]}


def compare(folder: Path, records: Records, findings: Sequence[Finding]) -> PlannedAgainstActual | None:
    """Compares plan and run; None if the run has no plan or no steps yet."""
    try:
        plan = document.load(RunFolder(folder).plan)
    except RecordsError as error:
        return PlannedAgainstActual(f"plan.json: {error.what}.")
    if plan is None or (step := actual_step(records)) is None:
        return None
    duration = next((finding.numbers for finding in findings if finding.id == "duration"), {})
    steps = duration.get("steps") or len(records.steps["step"])
    actual = {"step_seconds": step.seconds}
    planned = {"step_seconds": plan.step_seconds}
    if step.split:
        actual |= {f"{name}_seconds": seconds for name, seconds in vars(step.split).items()}
        planned |= {f"{name}_seconds": number for name, number in plan.step_parts_seconds.items()}
    for name, number in plan.run_parts_seconds.items():
        key = f"{name}_seconds"
        if key in duration:
            share = 1.0 if name == "startup" else steps / plan.steps.value
            actual[key], planned[key] = duration[key], _scaled(number, share)
    both = [name for name in planned if name in actual]
    return PlannedAgainstActual(
        _note(plan, step.facts, steps), [PlannedPart(name, planned[name], actual[name]) for name in both]
    )


def _scaled(number: Number, factor: float) -> Number:
    return Number(
        value=number.value * factor, low=number.low * factor, high=number.high * factor, source=number.source
    )


def _note(plan: Saved, facts: RunFacts, steps: int) -> str:
    note = f"Planned for {plan.cluster}."
    if facts.ranks and facts.ranks != plan.ranks:
        note += f" But the run had {summary.machines(facts)}, so the two are not comparable."
    if steps != round(plan.steps.value):
        note += (
            f" The run made {steps:,} of {plan.steps.value:,.0f} planned steps; the plan is scaled to this."
        )
    return note
