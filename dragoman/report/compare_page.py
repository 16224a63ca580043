"""A comparison as a page like the report's: the same tables, and both runs' curves over each other."""

from __future__ import annotations

from typing import Any

from dragoman.explain.compare import RunComparison
from dragoman.measure.records import Records
from dragoman.report import page
from dragoman.report.charts import Missing, both
from dragoman.report.compare_text import sections


def render(comparison: RunComparison, a: Records, b: Records) -> str:
    """The page as HTML text."""
    drawn: dict[str, dict[str, Any]] = {}
    made = both.of((comparison.a, a), (comparison.b, b))
    shown = [chart for chart in made if not isinstance(chart, Missing)]
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
        missing=[chart for chart in made if isinstance(chart, Missing)],
    )
