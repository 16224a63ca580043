"""Writes a run's report: findings.json, report.html and report.md, each atomically."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from pathlib import Path

from dragoman import atomic
from dragoman.explain.finding import Finding
from dragoman.measure.records import Records
from dragoman.report import markdown, page, planned, provenance, scored, summary

FINDINGS_FILE = "findings.json"
PAGE_FILE = "report.html"
MARKDOWN_FILE = "report.md"


def write(records: Records, findings: Sequence[Finding], folder: Path) -> None:
    """Writes the report into the run folder and replaces an older one."""
    origin, scores = provenance.load(folder), scored.find(folder)
    comparison = planned.compare(folder, records, findings)
    texts = {
        FINDINGS_FILE: json_text(records, findings, comparison, scores),
        PAGE_FILE: page.render(records, findings, origin, comparison, scores),
        MARKDOWN_FILE: markdown.render(records, findings, origin, comparison, scores),
    }
    for name, text in texts.items():
        # Bytes of a log that are not UTF-8 were read as lone surrogates.
        atomic.write(folder / name, text.encode("utf-8", errors="replace"))


def write_if_allowed(records: Records, findings: Sequence[Finding], folder: Path) -> str:
    """Writes the report; on a disk that is not writable, returns the reason instead of failing."""
    try:
        write(records, findings, folder)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return f"{folder}: {error.strerror}"
    return ""


def json_text(
    records: Records,
    findings: Sequence[Finding],
    comparison: planned.PlannedAgainstActual | None = None,
    scores: scored.Scores | None = None,
) -> str:
    """Returns the text of findings.json and `report --json`."""
    document = summary.findings_document(records, findings)
    if comparison:
        document["planned"] = comparison.document()
    if scores:
        document["scored"] = scores.document()
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
