"""Prints a diagnosis: as the report that our own runs have, or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from dragoman import atomic, terminal
from dragoman.foreign.answers import Diagnosis
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
