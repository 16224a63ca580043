"""A comparison for people: its sections, and how a terminal shows them."""

from __future__ import annotations

import json
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dragoman import format_units, terminal
from dragoman.explain.compare import RunComparison
from dragoman.explain.compare_facts import FactDifference
from dragoman.explain.compare_quality import ComparedScore
from dragoman.explain.compare_speed import PhaseSpeed
from dragoman.explain.details import PARTS
from dragoman.report import units

_METRICS = {"bleu": "BLEU", "chrf": "chrF", "eval_loss": "held-out loss"}


class TextSection(NamedTuple):
    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: list[str]


def show(comparison: RunComparison, console: Console | None = None) -> None:
    """Prints the comparison."""
    console = console or terminal.console()
    for number, sentence in enumerate(comparison.why):
        console.print(Text(sentence, style="bold" if number == 0 else ""))
    for section in sections(comparison):
        console.print()
        console.print(Text(section.title, style="bold"))
        if section.rows:
            grid = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
            for name in section.header:
                grid.add_column(Text(name), overflow="fold")
            for row in section.rows:
                grid.add_row(*map(Text, row))
            console.print(grid)
        for note in section.notes:
            console.print(Text(note))


def sections(comparison: RunComparison) -> list[TextSection]:
    """Returns the sections that have content."""
    pair, speed, quality = (comparison.a, comparison.b), comparison.speed, comparison.quality
    machines, settings = comparison.machines, comparison.settings
    rates = [
        FactDifference(name="tokens_per_second", a=speed.a_tokens_per_second, b=speed.b_tokens_per_second),
        FactDifference(name="step_seconds", a=speed.a_step_seconds, b=speed.b_step_seconds),
    ]
    # The table of phases ends with the whole step, which need not be listed twice.
    is_listed = bool(speed.phases) and speed.per == "step"
    rates = [row for row in rates[: 1 if is_listed else 2] if row.a is not None or row.b is not None]
    by_phase = f"Mean seconds per {speed.per}, by phase"
    untimed = [] if speed.phases else ["Steps were not timed in both runs."]
    outside = [_phase(row)[:3] for row in comparison.outside_steps]
    scores = [_score(row, pair) for row in quality]
    all_sections = [
        TextSection(
            "What differs", ("", *pair), _differences(machines), _or_none(machines, "machines and data")
        ),
        TextSection("Settings", ("setting", *pair), _differences(settings), _or_none(settings, "settings")),
        TextSection("Speed", ("", *pair), _differences(rates), []),
        TextSection(
            by_phase, ("phase", *pair, "of the difference"), [_phase(row) for row in speed.phases], untimed
        ),
        TextSection("Outside steps, whole run", ("", *pair), outside, []),
        TextSection("Quality, best of the run", ("metric", *pair, "better"), scores, _quality_notes(quality)),
    ]
    return [section for section in all_sections if section.rows or section.notes]


def _differences(rows: list[FactDifference]) -> list[tuple[str, ...]]:
    return [(_name(row.name), _value(row.name, row.a), _value(row.name, row.b)) for row in rows]


def _name(name: str) -> str:
    """Returns a fact's label; a setting keeps its name from the config."""
    return name if "." in name else units.label(name)


def _value(name: str, value: object) -> str:
    """Returns a fact's value with its unit, or a setting's value as in a config."""
    is_setting = "." in name and value is not None and not isinstance(value, str)
    return json.dumps(value) if is_setting else units.shown(name, value)


def _or_none(rows: list[FactDifference], what: str) -> list[str]:
    return [] if rows else [f"No difference in {what} was recorded."]


def _phase(row: PhaseSpeed) -> tuple[str, ...]:
    share = "" if row.difference_share is None else format_units.share(row.difference_share)
    name = PARTS.get(f"{row.phase}_seconds", row.phase)
    return (name, _seconds(row.a_seconds), _seconds(row.b_seconds), share)


def _seconds(value: float | None) -> str:
    return units.NOT_KNOWN if value is None else format_units.seconds(value)


def _score(row: ComparedScore, names: tuple[str, str]) -> tuple[str, ...]:
    digits = 3 if row.metric == "eval_loss" else 2
    values = [units.NOT_KNOWN if value is None else f"{value:.{digits}f}" for value in (row.a, row.b)]
    if row.is_comparable:
        better = "equal" if row.better is None else names[row.better == "b"]
    else:
        better = "not compared"
    return (_METRICS[row.metric], *values, better)


def _quality_notes(rows: list[ComparedScore]) -> list[str]:
    if not rows:
        return ["No scores were recorded."]
    noted: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            noted.setdefault(row.note, []).append(_METRICS[row.metric])
    return [f"{format_units.listed(metrics)}: {note}." for note, metrics in noted.items()]
