"""A diagnosis for people and programs: the report that our own runs have."""

from __future__ import annotations

import json
from pathlib import Path

from dragoman import atomic, terminal
from dragoman.foreign.answers import Diagnosis
from dragoman.report import page, summary, text


def diagnosis(made: Diagnosis, as_json: bool, html: Path | None) -> None:
    for note in made.notes:
        terminal.warn(f"note: {note}")
    if html:
        rendered = page.render(made.records, made.findings, {"files": made.found})
        atomic.write(html, rendered.encode("utf-8", errors="replace"))
    if as_json:
        document = summary.findings_document(made.records, made.findings)
        document["run"] |= {"files": made.found, "notes": made.notes}
        terminal.answer(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return
    text.show(made.records, made.findings)
    for path, kind in made.found.items():
        terminal.say(f"Read: {path} ({kind})")
    if html:
        terminal.say(f"Page: {html}")
