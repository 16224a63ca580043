"""Shows the answers on a terminal; colours only repeat what the words say."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from dragoman import terminal
from dragoman.explain.finding import Finding
from dragoman.measure.records import Records
from dragoman.report import happened, planned, scored, summary

_STYLES = {"good": "green", "fair": "yellow", "bad": "red", "plain": "cyan", "unknown": "dim"}
_INDENT = 4
_WIDEST = 100  # columns; longer lines are hard to read


def show(
    records: Records,
    findings: Sequence[Finding],
    console: Console | None = None,
    comparison: planned.PlannedAgainstActual | None = None,
    scores: scored.Scores | None = None,
) -> None:
    """Prints the report."""
    console = console or terminal.console()
    _print(console, Text(records.facts.name or "run", style="bold"))
    _print(console, Text(summary.headline(records, findings)))
    for number, finding in enumerate(findings, start=1):
        console.print()
        _print(console, _title(number, finding))
        for part in _body(finding, min(console.width, _WIDEST) - _INDENT):
            _print(console, part, _INDENT)
    _happened(console, records)
    if scores:
        _scores(console, scores)
    if comparison:
        _compare(console, comparison)
    console.print()
    _print(console, Text(summary.recording_cost(records), style="dim"))


def _print(console: Console, text: Text, indent: int = 0) -> None:
    """Prints wrapped text; rich's own wrapping would pad lines with spaces."""
    for line in text.wrap(console, min(console.width, _WIDEST) - indent):
        line.rstrip()
        console.print(Text(" " * indent) + line, soft_wrap=True)


def _happened(console: Console, records: Records) -> None:
    """Prints what happened, each row beside its time."""
    if not (told := happened.lines(records)):
        return
    console.print()
    _print(console, Text(happened.TITLE, style="bold"))
    column = _INDENT + max(len(after) for after, _ in told) + 2
    for after, what in told:
        for place, line in enumerate(Text(what).wrap(console, min(console.width, _WIDEST) - column)):
            line.rstrip()
            margin = f"{'' if place else ' ' * _INDENT + after}".ljust(column)
            console.print(Text(margin, style="dim") + line, soft_wrap=True)


def _scores(console: Console, scores: scored.Scores) -> None:
    console.print()
    _print(console, Text(scored.TITLE, style="bold"))
    _print(console, Text(scores.note), _INDENT)
    for entry in scores.entries:
        about = f"{entry.held_out}, {entry.sentences:,} sentences, step {entry.step:,} ({entry.made})"
        _print(console, Text(about), _INDENT)
        for name, score in entry.scores.items():
            figure, interval = scored.figures(name, score)
            _print(console, Text(f"{figure} ({interval})"), _INDENT)
            console.print(Text(f"  {score.signature}", style="dim"), soft_wrap=True)  # can be copied whole


def _compare(console: Console, comparison: planned.PlannedAgainstActual) -> None:
    console.print()
    _print(console, Text("Planned against actual", style="bold"))
    _print(console, Text(comparison.note), _INDENT)
    rows = [planned.HEADER, *comparison.rows] if comparison.rows else []
    widths = [max(len(row[column]) for row in rows) for column in range(len(planned.HEADER))] if rows else []
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print(Text(" " * _INDENT + "  ".join(cells).rstrip()), soft_wrap=True)


def _title(number: int, finding: Finding) -> Text:
    verdict = summary.verdict(finding)
    title = Text.assemble((f"{number:>2}. ", "dim"), (finding.question, "bold"))
    if finding.verdict != "stated":
        title.append_text(Text.assemble("  ", (f"[{verdict.words}]", f"bold {_STYLES[verdict.tone]}")))
    if finding.confidence == "estimated":
        title.append(" estimated", style="dim")
    return title


def _body(finding: Finding, width: int) -> list[Text]:
    parts = [Text(finding.answer)]
    parts += [Text(line, style="dim") for line in _number_lines(finding, width)]
    parts += [Text.assemble(("Try: ", "bold"), advice) for advice in finding.advice]
    return parts


def _number_lines(finding: Finding, width: int) -> list[str]:
    """Returns the key numbers in lines of this width, without parting a label from its value."""
    lines: list[str] = []
    for label, value in summary.key_numbers(finding):
        item = f"{label} {value}"
        if lines and len(lines[-1]) + len(item) + 3 <= width:
            lines[-1] += f" · {item}"
        else:
            lines.append(item)
    return lines
