"""Prints a diagnosis: as the report that our own runs have, as JSON, or as one line per row of a CSV."""

from __future__ import annotations

import json
from pathlib import Path

from dragoman import atomic, format_units, terminal
from dragoman.explain.finding import SCHEMA, Finding
from dragoman.foreign import rows as csv_rows
from dragoman.foreign.answers import Diagnosis
from dragoman.foreign.facts import Given
from dragoman.report import page, summary, text


def diagnosis(diagnosed: Diagnosis, as_json: bool, html: Path | None) -> None:
    """Prints the answers and the notes about files; with `html`, also writes the page."""
    for note in diagnosed.notes:
        terminal.warn(f"note: {note}")
    if html:
        rendered = page.render(diagnosed.records, diagnosed.findings, {"files": diagnosed.file_kinds})
        atomic.write(html, rendered.encode("utf-8", errors="replace"))
    if as_json:
        document = summary.findings_document(diagnosed.records, diagnosed.findings)
        document["run"] |= {"files": diagnosed.file_kinds, "notes": diagnosed.notes}
        terminal.answer(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return
    text.show(diagnosed.records, diagnosed.findings)
    for path, kind in diagnosed.file_kinds.items():
        terminal.say(f"Read: {path} ({kind})")
    if html:
        terminal.say(f"Page: {html}")


def rows(path: Path, given: Given, as_json: bool) -> None:
    """Prints one line with the network verdict per row; as JSON, all answers for every row."""
    made = csv_rows.read(path, given)
    if as_json:
        runs = [summary.findings_document(row.records, row.findings) for _, row in made]
        document = {"schema": SCHEMA, "runs": runs}
        terminal.answer(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return
    for row, diagnosed in made:
        network = next(finding for finding in diagnosed.findings if finding.id == "network")
        terminal.say(f"{row.name:<8} {network.verdict:<15} {_key_figures(network)}")


def _key_figures(network: Finding) -> str:
    numbers = network.numbers
    parts = []
    if "step_seconds" in numbers:
        parts.append(f"{format_units.seconds(numbers['step_seconds'])} per step")
    if "expected_bytes_per_step_per_host" in numbers:
        parts.append(f"{numbers['expected_bytes_per_step_per_host'] / 1e6:.1f} MB out of each host")
    if "implied_bits_per_second" in numbers:
        parts.append(format_units.rate(numbers["implied_bits_per_second"]))
    if "computing_seconds_low" in numbers:
        low, high = numbers["computing_seconds_low"], numbers["computing_seconds_high"]
        parts.append(f"computing {format_units.seconds(low)} to {format_units.seconds(high)}")
    return ", ".join(parts) or network.answer
