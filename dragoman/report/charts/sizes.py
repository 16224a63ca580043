"""Charts of amounts: where the time went, the size of checkpoint files, and what cleaning dropped."""

from __future__ import annotations

import math
from typing import Any

from dragoman import format_units
from dragoman.explain.details import PARTS
from dragoman.explain.finding import Finding
from dragoman.measure.records import Records
from dragoman.report import units
from dragoman.report.charts.figure import Chart, Missing, Trace, axis, bars_layout, literal, numbers, short

_COLORS = {
    "training_seconds": "--phase-forward",
    "evaluation_seconds": "--phase-data",
    "checkpoint_seconds": "--phase-optimizer",
    "startup_seconds": "--series-5",
    "restart_seconds": "--phase-exchange",
    "other_seconds": "--muted",
}


def duration_split(records: Records, finding: Finding) -> Chart | Missing:
    title = "Where the time went"
    known = {name: _positive(finding.numbers.get(name)) for name in PARTS}
    if not any(known.values()):
        return Missing(title, "the run's parts were not timed")
    parts = [(PARTS[name], _COLORS[name], value) for name, value in known.items() if value]
    total = sum(value for _, _, value in parts)
    scale, unit = next(
        (s, u) for s, u in ((1, "seconds"), (60, "minutes"), (3600, "hours")) if total < 180 * s or s == 3600
    )
    traces = [_part(name, color, value, scale, total) for name, color, value in parts]
    layout = {
        "barmode": "stack",
        "xaxis": axis(unit, range=[0, total / scale]),
        "yaxis": {"visible": False},
        "margin": {"l": 4, "r": 12},
        "hovermode": "closest",
    }
    spoken = ", ".join(f"{name} {format_units.seconds(value)}" for name, _, value in parts)
    return Chart(title, f"The bar is the whole run: {spoken}.", traces, layout, height=104)


def _part(name: str, color: str, value: float, scale: int, total: float) -> Trace:
    return {
        "type": "bar",
        "orientation": "h",
        "x": numbers([value / scale]),
        "y": [""],
        "name": name,
        "marker": {"color": color, "line": {"color": "--surface", "width": 1}},
        "hovertemplate": f"{name}: {format_units.seconds(value)} ({format_units.share(value / total)})"
        "<extra></extra>",
    }


def checkpoint_sizes(records: Records, finding: Finding) -> Chart | Missing:
    title = "Size of each checkpoint file"
    files = records.facts.checkpoint_files or finding.numbers.get("files") or []
    sizes = {str(file.get("name")): _positive(file.get("bytes")) for file in files if isinstance(file, dict)}
    if not any(sizes.values()):
        return Missing(title, "no checkpoint files were recorded")
    return _bars(title, "Bytes on disk, largest first.", sizes, "bytes", "--series-1")


def cleaning_losses(records: Records, finding: Finding) -> Chart | Missing:
    title = "What cleaning dropped"
    dropped = records.facts.data_card.get("dropped")
    if not isinstance(dropped, dict):
        return Missing(title, "the data set's card was not recorded")
    counts = {reason.replace("_", " "): _positive(_pairs(entry)) for reason, entry in dropped.items()}
    if not any(counts.values()):
        return Missing(title, "cleaning dropped nothing")
    return _bars(title, "Pairs dropped by reason, most frequent first.", counts, "pairs", "--phase-data")


def _pairs(entry: Any) -> Any:
    return entry.get("pairs") if isinstance(entry, dict) else entry


def _bars(title: str, note: str, values: dict[str, float], unit: str, color: str) -> Chart:
    rows = sorted(((name, value) for name, value in values.items() if value), key=lambda row: row[1])
    trace: Trace = {
        "type": "bar",
        "orientation": "h",
        "x": numbers([value for _, value in rows]),
        "y": [literal(name) for name, _ in rows],
        "text": [units.shown(unit, value) for _, value in rows],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": color},
        "hovertemplate": "%{y}: %{text}<extra></extra>",
    }
    layout = bars_layout(rows[-1][1])
    layout["yaxis"] |= {"tickvals": trace["y"], "ticktext": [literal(short(name)) for name, _ in rows]}
    spoken = ", ".join(f"{name} {units.shown(unit, value)}" for name, value in reversed(rows))
    return Chart(title, note, [trace], layout, height=14 + 30 * len(rows), spoken=spoken)


def _positive(value: Any) -> float:
    """Returns the number, or 0 if it is missing, not finite or negative."""
    is_number = isinstance(value, (int, float)) and math.isfinite(value)
    return max(0.0, float(value)) if is_number else 0.0
