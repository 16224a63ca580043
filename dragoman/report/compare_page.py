"""Renders a comparison as a page like the report: the same tables, and both runs' curves in one chart."""

from __future__ import annotations

from typing import Any

from dragoman.explain.compare import RunComparison
from dragoman.measure.records import Records
from dragoman.report import page
from dragoman.report.charts import Missing, both
from dragoman.report.compare_text import sections


def render(comparison: RunComparison, a: Records, b: Records) -> str:
    """Returns the page as HTML."""
    drawn: dict[str, dict[str, Any]] = {}
    charts = both.of((comparison.a, a), (comparison.b, b))
    shown = [chart for chart in charts if not isinstance(chart, Missing)]
    return page.document(
        "compare.html",
        drawn,
        first=comparison.a,
        second=comparison.b,
        why=comparison.why,
        sections=sections(comparison),
        charts_made=[
            page.placed(chart, f"chart-{number}", drawn) for number, chart in enumerate(shown, start=1)
        ],
        missing=[chart for chart in charts if isinstance(chart, Missing)],
    )
