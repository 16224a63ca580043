"""Renders report.md: the answers for a wiki, an issue or a thesis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.explain.finding import Finding
from dragoman.measure.records import Records
from dragoman.report import happened, planned, scored, summary, units
from dragoman.report.provenance import ATTEMPTS_HEADER, attempt_rows, fact_rows, flat

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


def render(
    records: Records,
    findings: Sequence[Finding],
    provenance: dict[str, Any] | None = None,
    comparison: planned.PlannedAgainstActual | None = None,
    scores: scored.Scores | None = None,
) -> str:
    lines = [f"# {escape(records.facts.name or 'run')}", "", escape(summary.headline(records, findings)), ""]
    for number, finding in enumerate(findings, start=1):
        lines += _answer(number, finding)
    if story := happened.table(records):
        lines += [f"## {happened.TITLE}", "", *table(story.header, story.rows), ""]
        lines += [escape(story.note), ""] if story.note else []
    if scores:
        lines += [f"## {scored.TITLE}", "", escape(scores.note), ""]
        lines += [*table(scored.HEADER, scores.rows), ""] if scores.rows else []
    if comparison:
        lines += ["## Planned against actual", "", escape(comparison.note), ""]
        lines += [*table(planned.HEADER, comparison.rows), ""] if comparison.rows else []
    lines += ["## What measuring cost", "", escape(summary.recording_cost(records)), ""]
    lines += ["## Provenance", ""]
    lines += [*table(("fact", "value"), fact_rows(records)), ""]
    if records.attempts:
        lines += [*table(ATTEMPTS_HEADER, attempt_rows(records)), ""]
    for name, values in (("setting", records.facts.settings), ("origin", provenance or {})):
        if values:
            lines += [*table((name, "value"), flat(values)), ""]
    return "\n".join(lines)


def _answer(number: int, finding: Finding) -> list[str]:
    lines = [f"## {number}. {finding.question}", ""]
    lines += [f"**{summary.verdict(finding).words}** ({finding.confidence})", "", escape(finding.answer), ""]
    if finding.advice:
        lines += [*(f"- Try: {escape(advice)}" for advice in finding.advice), ""]
    plain = [(name, value) for name, value in finding.numbers.items() if not is_table(value)]
    if plain:
        lines += [
            *table(("number", "value"), [(name, units.shown(name, value)) for name, value in plain]),
            "",
        ]
    for value in finding.numbers.values():
        if is_table(value):
            header = tuple(value[0])
            rows = [tuple(units.shown(key, row.get(key)) for key in header) for row in value]
            lines += [*table(header, rows), ""]
    if finding.evidence:
        lines += ["Evidence:", "", *(f"- {escape(evidence)}" for evidence in finding.evidence), ""]
    return lines


def is_table(value: Any) -> bool:
    """Whether a number is a list of rows, such as the files of a checkpoint."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    lines = [header, ["---"] * len(header), *([escape(str(cell)) for cell in row] for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def escape(text: str) -> str:
    """Escapes markdown, so that a name cannot become a tag, a link or a column."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
