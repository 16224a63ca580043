"""Renders report.html: one file that opens anywhere, works offline and runs only its own two scripts.

The page's content security policy allows only the scripts whose checksums it lists, and no connections: even
a tag smuggled into a name could neither run nor send anything. Jinja escapes all text, and chart data are
embedded as JSON in a block that is not a script.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from dragoman import __version__
from dragoman.explain.finding import Finding
from dragoman.explain.questions import QUESTIONS
from dragoman.measure.records import Records
from dragoman.report import charts, happened, planned, scored, summary, units
from dragoman.report.markdown import is_table
from dragoman.report.provenance import ATTEMPTS_HEADER, attempt_rows, fact_rows, flat


def render(
    records: Records,
    findings: Sequence[Finding],
    provenance: dict[str, Any] | None = None,
    comparison: planned.PlannedAgainstActual | None = None,
    scores: scored.Scores | None = None,
) -> str:
    """Returns the page as HTML."""
    drawn: dict[str, dict[str, Any]] = {}
    answers = [_answer(number, records, finding, drawn) for number, finding in enumerate(findings, start=1)]
    return document(
        "report.html",
        drawn,
        name=records.facts.name or "run",
        headline=summary.headline(records, findings),
        answers=answers,
        happened=happened.table(records),
        happened_title=happened.TITLE,
        comparison=comparison,
        planned_header=planned.HEADER,
        scores=scores,
        scored_title=scored.TITLE,
        scored_header=scored.HEADER,
        recording_cost=summary.recording_cost(records),
        facts=fact_rows(records),
        attempts=attempt_rows(records),
        attempts_header=ATTEMPTS_HEADER,
        settings=flat(records.facts.settings),
        origin=flat(provenance or {}),
    )


def document(template: str, drawn: dict[str, dict[str, Any]], **values: Any) -> str:
    """Renders a template with its charts by key, the style, the scripts and the policy that allows them."""
    from plotly.offline import get_plotlyjs  # takes 0.3 s, so only imported for a page

    scripts = [_script(get_plotlyjs()), _script(_file("report.js"))]
    return (
        _templates()
        .get_template(template)
        .render(
            version=__version__,
            css=Markup(_file("report.css")),
            charts=_block({"template": charts.TEMPLATE, "charts": drawn}),
            scripts=[Markup(script) for script in scripts],
            policy=_policy(scripts),
            **values,
        )
    )


def placed(chart: charts.Chart, key: str, drawn: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns what a template needs of a chart, and adds the chart's data to `drawn`."""
    drawn[key] = {"data": chart.traces, "layout": chart.layout}
    return {"key": key, "legend": charts.legend(chart), **vars(chart)}


def _answer(
    number: int, records: Records, finding: Finding, drawn: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Returns what the template needs of one answer, and adds its charts to `drawn`."""
    present: list[dict[str, Any]] = []
    missing = []
    for chart in charts.of(records, finding):
        if isinstance(chart, charts.Missing):
            missing.append(chart)
            continue
        key = f"chart-{finding.id.replace('_', '-')}-{len(present) + 1}"
        present.append(placed(chart, key, drawn))
    plain = [(name, units.shown(name, v)) for name, v in finding.numbers.items() if not is_table(v)]
    tables = [_table(name, v) for name, v in finding.numbers.items() if is_table(v)]
    is_open = QUESTIONS[finding.id].opens_tables
    return {
        "number": number,
        "finding": finding,
        "verdict": summary.verdict(finding),
        "numbers": [(units.label(name), name, value) for name, value in plain],
        "open_tables": tables if is_open else [],
        "folded_tables": [] if is_open else tables,
        "charts": present,
        "missing": missing,
    }


def _table(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    header = list(rows[0])
    cells = [[units.shown(key, row.get(key)) for key in header] for row in rows]
    return {"name": units.label(name), "header": [units.label(key) for key in header], "rows": cells}


def _policy(scripts: Sequence[str]) -> str:
    sums = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{checksum}'" for checksum in sums)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _script(text: str) -> str:
    """Returns the script as browsers read it, with \\n as line ends, so that its checksum matches."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script")


def _block(value: Any) -> Markup:
    """Returns JSON that cannot close the tag around it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@functools.cache
def _templates() -> Environment:
    return Environment(
        loader=FunctionLoader(_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _file(name: str) -> str:
    return resources.files("dragoman.report").joinpath("templates", name).read_text(encoding="utf-8")
