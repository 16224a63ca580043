"""Marks on a chart over time where a fault happened or hosts came back."""

from __future__ import annotations

import numpy as np

from dragoman.explain.details import timeline
from dragoman.measure.records import Records
from dragoman.report.charts import thin
from dragoman.report.charts.figure import Trace, line, literal

_LOOKS = {"fault": ("fault", "--bad", "dot"), "joined": ("host came back", "--good", "dash")}


def marked(records: Records, start: float, unit: str) -> tuple[list[Trace], dict[str, object]]:
    """Returns vertical lines for a chart in this unit since `start`, and the axis that they need."""
    happened = timeline(records)
    traces = []
    for kind, (name, color, dash) in _LOOKS.items():
        rows = [row for row in happened if row.kind == kind and row.time is not None]
        if not rows:
            continue
        rows = [rows[place] for place in np.unique(np.linspace(0, len(rows) - 1, thin.MOST).astype(int))]
        since = (np.array([row.time for row in rows], dtype=float) - start) / thin.UNITS[unit]
        # A line from the bottom to the top of the chart, then a gap.
        x, y = np.repeat(since, 3), np.tile([0.0, 1.0, np.nan], len(rows))
        trace = line(x, y, name, color, dash=dash, width=1.2, yaxis="y2")
        told = [literal(f"{row.where}: {row.what}" if row.where else row.what) for row in rows]
        trace["text"] = [text for each in told for text in (each, each, each)]
        trace["hovertemplate"] = "%{text}<extra></extra>"
        traces.append(trace)
    axes: dict[str, object] = {
        "yaxis2": {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    }
    return traces, axes if traces else {}
