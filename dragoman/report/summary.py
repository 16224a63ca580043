"""What all forms of the report share: the run in one line, verdicts, and the cost of measuring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dragoman import format_units
from dragoman.explain.details import longest, timeline
from dragoman.explain.finding import Finding, document
from dragoman.explain.questions import QUESTIONS, Verdict
from dragoman.measure.records import Records, RunFacts
from dragoman.report import units


def verdict(finding: Finding) -> Verdict:
    """Returns how the finding's question shows its verdict."""
    return QUESTIONS[finding.id].verdicts[finding.verdict]


def key_numbers(finding: Finding) -> list[tuple[str, str]]:
    """Returns labels and values of the known key numbers, estimates with their interval."""
    rows = []
    for name in QUESTIONS[finding.id].key_numbers:
        number = finding.numbers.get(name)
        value = units.shown(name, number)
        took_no_time = name.endswith("_seconds") and number == 0
        if value != units.NOT_KNOWN and not took_no_time:
            rows.append((units.label(name), value + _interval(finding.numbers, name)))
    return rows


def _interval(numbers: dict[str, Any], name: str) -> str:
    ends = [units.shown(name, numbers.get(name + end)) for end in ("_low", "_high")]
    return "" if units.NOT_KNOWN in ends else f" ({ends[0]} to {ends[1]})"


def headline(records: Records, findings: Sequence[Finding]) -> str:
    """Returns the run in one line: quality, time, machines and the main verdicts."""
    numbers = {finding.id: finding.numbers for finding in findings}
    parts = []
    if (bleu := numbers.get("convergence", {}).get("best_bleu")) is not None:
        parts.append(f"{bleu:.1f} BLEU")
    # A row without a step number is a mean that someone noted, not a step.
    steps = numbers.get("duration", {}).get("steps") or int(np.isfinite(records.steps["step"]).sum())
    if steps or not len(records.steps["step"]):
        parts.append(format_units.counted(steps, "step"))
    if (wall := numbers.get("duration", {}).get("wall_seconds")) is not None:
        parts.append(format_units.seconds(wall))
    placed = longest(records)
    parts.append(f"{'mostly ' * bool(placed.others)}{machines(placed.records.facts)}")
    for finding in findings:
        if QUESTIONS[finding.id].in_headline and finding.verdict != "unknown":
            parts.append(verdict(finding).words)
    return " · ".join(part for part in parts if part)


def machines(facts: RunFacts) -> str:
    """Returns the numbers of ranks and hosts in words; empty if neither is known."""
    ranks = "" if facts.ranks is None else format_units.counted(facts.ranks, "rank")
    hosts = format_units.counted(len(facts.hosts), "host") if facts.hosts else ""
    return f"{ranks} on {hosts}" if ranks and hosts else ranks or hosts


def training_seconds(records: Records) -> float | None:
    """Returns the time within steps; None if no step was timed."""
    seconds = records.steps["seconds"]
    total = float(np.nansum(seconds)) * records.facts.steps_per_row if len(seconds) else 0.0
    return total if total > 0 else None


def recording_cost(records: Records) -> str:
    """Says how much time measuring took; every report has it, so that users can check the claim."""
    if records.facts.source != "dragoman":
        return f"Read from {records.facts.source}. What measuring cost was not recorded."
    spent, training = records.facts.recording_seconds, training_seconds(records)
    if spent is None or not math.isfinite(spent):
        text = "What measuring cost was not recorded."
    elif training is None:
        text = f"Measuring took {format_units.seconds(spent)}; the training time was not recorded."
    else:
        text = (
            f"Measuring took {format_units.seconds(spent)} of {format_units.seconds(training)} of training "
            f"({format_units.share(spent / training)}) on the slowest rank."
        )
    probes = sum(probe.seconds for probe in records.probes)
    if probes:
        text += f" Probes (steps without exchange, link, device peak) took {format_units.seconds(probes)}."
    return text


def run_facts(records: Records, findings: Sequence[Finding]) -> dict[str, Any]:
    """Returns the facts of the run for findings.json."""
    facts = records.facts
    named = facts.model_dump(
        include={"name", "source", "ranks", "hosts", "device", "parameters", "recording_seconds"}
    )
    if facts.origins:
        named["origins"] = facts.origins
    return {
        **named,
        "summary": headline(records, findings),
        "training_seconds": training_seconds(records),
        "attempts": len(records.attempts),
    }


def findings_document(records: Records, findings: Sequence[Finding]) -> dict[str, Any]:
    """Returns the contents of findings.json and `report --json`, with null for values that are not finite."""
    whole = document(run_facts(records, findings), list(findings))
    whole["timeline"] = [row.document for row in timeline(records)]
    result: dict[str, Any] = _finite(whole)
    return result


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
