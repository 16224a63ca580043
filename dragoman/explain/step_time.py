"""What is a step, and how long is one? Answered with this run's numbers, by phase and by rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from dragoman import format_units
from dragoman.config import microbatch_size
from dragoman.explain.changes import CHANGES_EVIDENCE, lasting_changes
from dragoman.explain.finding import Finding, known, unknown
from dragoman.explain.step_breakdown import StepParts, settled, step_parts
from dragoman.explain.straggler import host_of, rank_seconds
from dragoman.measure.records import PHASES, Records


def explain(records: Records) -> Finding:
    parts = step_parts(records)
    if parts is None:
        return unknown("step_time", "no step was timed")
    chosen = settled(records)
    seconds, tokens = records.steps["seconds"][chosen], records.steps["target_tokens"][chosen]
    counted = np.isfinite(tokens) & (tokens > 0)
    per_step = float(tokens[counted].mean()) if counted.any() else None
    has_each = not records.facts.one_mean
    numbers: dict[str, Any] = known(
        mean_seconds=seconds.mean(),
        median_seconds=np.median(seconds) if has_each else None,
        p95_seconds=np.percentile(seconds, 95) if has_each else None,
        tokens_per_step=per_step,
        tokens_per_second=tokens[counted].sum() / seconds[counted].sum() if counted.any() else None,
    )
    numbers |= _microbatches(records)
    phases = {phase: getattr(parts, phase) for phase in PHASES if getattr(parts, phase) is not None}
    if phases:
        numbers["phase_seconds"] = phases
        numbers["phase_shares"] = {phase: seconds / parts.seconds for phase, seconds in phases.items()}
    if ranks := _by_rank(records):
        numbers["ranks"] = ranks
    changes = lasting_changes(records)
    if changes:
        numbers["changes"] = [change.numbers for change in changes]
    return Finding(
        id="step_time",
        verdict="stated",
        answer=" ".join(filter(None, [_definition(records, numbers), _times(numbers), *map(str, changes)])),
        numbers=numbers,
        evidence=[
            *_seconds_evidence(records, parts),
            *_evidence(per_step, bool(phases), bool(ranks), bool(changes)),
        ],
        confidence="measured" if has_each else "estimated",
    )


def _microbatches(records: Records) -> dict[str, float]:
    step, microbatch = records.facts.settings.get("data.step"), _microbatch_size(records)
    if not isinstance(step, int) or not isinstance(microbatch, int) or microbatch <= 0:
        return {}
    count, ranks = max(1, -(-step // microbatch)), records.facts.ranks
    return known(microbatches=count, microbatches_per_rank=count / ranks if ranks else None)


def _microbatch_size(records: Records) -> Any:
    settings = records.facts.settings
    return microbatch_size(settings.get("data.microbatch", 0), settings.get("data.unit", "tokens"))


def _definition(records: Records, numbers: dict[str, Any]) -> str:
    settings, ranks = records.facts.settings, records.facts.ranks
    text = "A step is one update of the weights"
    text += f" by {format_units.counted(ranks, 'rank')}{' together' * (ranks > 1)}" if ranks else ""
    if count := numbers.get("microbatches"):
        unit, microbatch = settings.get("data.unit", "tokens"), _microbatch_size(records)
        per_rank = f" ({numbers['microbatches_per_rank']:.3g} per rank)" if ranks and ranks > 1 else ""
        parts = format_units.counted(count, "microbatch", "microbatches")
        text += f": about {parts}{per_rank} of up to {microbatch:,} {unit}{' each' * (count > 1)}"
    tokens = numbers.get("tokens_per_step")
    return f"{text}{f', {tokens:,.0f} target tokens in all' if tokens else ''}."


def _times(numbers: dict[str, Any]) -> str:
    text = f"It took {format_units.seconds(numbers['mean_seconds'])} on average"
    if "median_seconds" in numbers:
        text += f" (median {format_units.seconds(numbers['median_seconds'])}, "
        text += f"95% under {format_units.seconds(numbers['p95_seconds'])})"
    if "tokens_per_second" in numbers:
        text += f", or {format_units.count(numbers['tokens_per_second'])} target tokens per second"
    spent = [
        f"{phase} {format_units.share(share)}" for phase, share in numbers.get("phase_shares", {}).items()
    ]
    return f"{text}.{' By phase: ' + ', '.join(spent) + '.' if spent else ''}"


def _by_rank(records: Records) -> list[dict[str, Any]]:
    """Returns the mean seconds of each phase per step, for each rank."""
    windows = records.windows
    by_phase = {phase: rank_seconds(records, phase) for phase in PHASES}
    rows = []
    for rank in sorted(set().union(*by_phase.values())):
        mine = windows["rank"] == rank
        steps = float(np.nansum((windows["last_step"] - windows["first_step"] + 1)[mine]))
        if steps <= 0:
            continue
        phases = {f"{phase}_seconds": by_phase[phase].get(rank, np.nan) / steps for phase in PHASES}
        rows.append({"rank": rank, **known(host=host_of(records, rank), **phases)})
    return rows


def _seconds_evidence(records: Records, parts: StepParts) -> list[str]:
    facts = records.facts
    if facts.one_mean:
        return [f"mean_seconds: {facts.one_mean}; how single steps differed is not known"]
    if facts.step_interval is None:
        steps = format_units.counted(parts.steps, "step")
        return [f"seconds: {steps}, each from end to end, without evaluations and checkpoints"]
    lines = f"seconds: means over {facts.step_interval:,} steps each, as logged"
    holds = "; they include evaluations" if facts.seconds_include_evaluations else ""
    return [f"{lines} ({parts.steps * facts.steps_per_row:,} steps){holds}"]


def _evidence(tokens: float | None, phases: bool, ranks: bool, changes: bool) -> list[str]:
    evidence = []
    if tokens:
        evidence.append("tokens: target tokens of all ranks, including EOS")
    if phases:
        evidence.append("phase_seconds: mean over steps and ranks; exchange counts only the exposed part")
    if ranks:
        evidence.append("ranks: each rank's phases, summed over log intervals")
    if changes:
        evidence.append(CHANGES_EVIDENCE)
    return evidence
