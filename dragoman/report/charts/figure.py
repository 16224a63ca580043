"""A chart as plain data for plotly.js, without colours of its own.

Colours are names of the page's CSS variables ("--phase-exchange"), which the page's script replaces by their
values when it draws. So one palette, in report.css, serves light and dark screens and paper.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SERIES = tuple(f"--series-{number}" for number in range(1, 7))
FEW = len(SERIES)  # more series than this cannot be told apart in one chart

Trace = dict[str, Any]


@dataclass(frozen=True)
class Key:
    """One entry of a legend."""

    name: str
    color: str  # a CSS variable
    look: str  # line, dash, dot, dots, area or shade


@dataclass(frozen=True)
class Chart:
    title: str
    note: str  # how to read it
    traces: list[Trace]
    layout: dict[str, Any] = field(default_factory=dict)
    height: int = 320
    spoken: str = ""  # a screen reader reads this after title and note
    keys: list[Key] = field(default_factory=list)  # legend entries besides those of the traces


@dataclass(frozen=True)
class Missing:
    """A chart that was left out, and the reason."""

    title: str
    reason: str


def legend(chart: Chart) -> list[Key]:
    """Returns the entries of a chart's legend; none if it shows only one thing, which its title names."""
    named = [trace for trace in chart.traces if "name" in trace and trace.get("showlegend", True)]
    keys = [Key(html.unescape(trace["name"]), *_look(trace)) for trace in named] + chart.keys
    return keys if len(keys) > 1 else []


def _look(trace: Trace) -> tuple[str, str]:
    if "fillcolor" in trace or trace["type"] == "bar":
        return trace.get("fillcolor") or trace["marker"]["color"], "area"
    if trace["mode"] == "markers":
        return trace["marker"]["color"], "dots"
    dash = trace["line"]["dash"]
    return trace["line"]["color"], "line" if dash == "solid" else dash


TEMPLATE: dict[str, Any] = {
    "layout": {
        "font": {"family": "--font", "size": 12, "color": "--text-soft"},
        "paper_bgcolor": "--surface",
        "plot_bgcolor": "--surface",
        "margin": {"l": 8, "r": 12, "t": 8, "b": 40},
        "colorway": list(SERIES),
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": "--surface", "bordercolor": "--line", "font": {"color": "--text"}},
        "showlegend": False,  # the page has its own legend, which can wrap
        "xaxis": {
            "gridcolor": "--grid",
            "zeroline": False,
            "linecolor": "--line",
            "ticks": "outside",
            "ticklen": 4,
            "tickcolor": "--line",
            "automargin": True,
            "title": {"standoff": 8},
            "separatethousands": True,
        },
        "yaxis": {
            "gridcolor": "--grid",
            "zeroline": False,
            "automargin": True,
            "title": {"standoff": 8},
            "nticks": 6,
        },
        "separators": ".,",
    }
}


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, **more}


def bars_layout(longest: float, **more: Any) -> dict[str, Any]:
    """Returns a layout for horizontal bars, with room on the right for a number beside the longest."""
    return {
        "xaxis": {"visible": False, "range": [0, longest * 1.3 or 1]},
        "yaxis": {
            "showgrid": False,
            "ticks": "outside",
            "ticklen": 6,
            "tickcolor": "rgba(0,0,0,0)",
            "nticks": 0,
        },
        "hovermode": "closest",
        "bargap": 0.35,
        "margin": {"t": 4, "b": 4},
        **more,
    }


def line(x: Any, y: Any, name: str, color: str, **more: Any) -> Trace:
    style = {"color": color, "width": more.pop("width", 1.8), "dash": more.pop("dash", "solid")}
    return {
        "type": "scatter",
        "mode": more.pop("mode", "lines"),
        "x": numbers(x),
        "y": numbers(y),
        "name": literal(name),
        "line": style,
        **more,
    }


def dots(x: Any, y: Any, name: str, color: str, **more: Any) -> Trace:
    marker = {"color": color, "size": more.pop("size", 7), "opacity": more.pop("opacity", 1)}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": numbers(x),
        "y": numbers(y),
        "name": literal(name),
        "marker": marker,
        **more,
    }


def literal(text: object) -> str:
    """Escapes a user's text, as plotly interprets tags in names."""
    return html.escape(str(text), quote=False)


def short(text: str, most: int = 24) -> str:
    """Shortens a text to its beginning and end, to fit beside an axis on a phone."""
    tail = most // 3
    return text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}"


def numbers(values: Iterable[float] | np.ndarray) -> list[float | int | None]:
    """Returns values for JSON: whole numbers as such, others with six digits, null if not recorded."""
    return [_number(value) for value in np.asarray(values, dtype=float).tolist()]


def _number(value: float) -> float | int | None:
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.6g}")
