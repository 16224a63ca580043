"""Charts of a comparison: the curves of two runs in one chart each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dragoman.measure.records import Records
from dragoman.report.charts import quality, thin
from dragoman.report.charts.figure import Chart, Missing, Trace, axis, line

COLORS = ("--series-1", "--series-2")


class RunSide(NamedTuple):
    name: str
    records: Records
    color: str


def of(a: tuple[str, Records], b: tuple[str, Records]) -> list[Chart | Missing]:
    """Returns the charts of two named runs, or what is missing for them."""
    sides = [RunSide(*run, color) for run, color in zip((a, b), COLORS, strict=True)]
    return [
        _evaluated(sides, "eval_loss", "Held-out loss", "loss per token"),
        _evaluated(sides, "bleu", "BLEU", "BLEU"),
        _per_step(sides, "loss", "Training loss", "loss per token"),
        _per_step(sides, "seconds", "Time of a step", "seconds"),
        _per_step(sides, "learning_rate", "Learning rate", "learning rate"),
    ]


def _evaluated(sides: list[RunSide], name: str, title: str, unit: str) -> Chart | Missing:
    traces = []
    for side in sides:
        steps, values = quality.evaluated(side.records, name)
        if len(steps):
            traces.append(line(steps, values, side.name, side.color, mode="lines+markers"))
    note = "At each evaluation, on held-out text."
    if name == "eval_loss" and _vocabularies(sides) > 1:
        note += " The vocabularies differ, so losses per token are not comparable: compare BLEU."
    return _chart(title, note, traces, axis(unit))


def _per_step(sides: list[RunSide], name: str, title: str, unit: str) -> Chart | Missing:
    traces = []
    for side in sides:
        steps = side.records.steps
        if thin.is_known(steps[name]):
            x, y = thin.means(*thin.where_known(steps[name], steps["step"]))
            traces.append(line(x, y, side.name, side.color, width=1.2))
    # The peak of the learning rate must show; the largest losses and seconds would flatten the rest.
    shown = axis(unit) if name == "learning_rate" else axis(unit, **_range(traces))
    return _chart(title, f"Means over neighbouring steps, at most {thin.MOST} points.", traces, shown)


def _vocabularies(sides: list[RunSide]) -> int:
    return len({str(side.records.facts.data_card.get("vocabulary_sha256")) for side in sides})


def _chart(title: str, note: str, traces: list[Trace], yaxis: dict[str, Any]) -> Chart | Missing:
    if len(traces) < 2:
        return Missing(title, "neither run recorded it" if not traces else "only one run recorded it")
    return Chart(title, note, traces, {"xaxis": axis("step"), "yaxis": yaxis})


def _range(traces: list[Trace]) -> dict[str, Any]:
    """Returns an axis range without the largest 3 % of values, which are first or interrupted steps."""
    values = np.array([value for trace in traces for value in trace["y"]], dtype=float)
    if not len(values) or values.min() == values.max():
        return {}
    top, floor = float(np.percentile(values, 97)), float(values.min())
    margin = 0.06 * (top - floor)
    return {"range": [floor - margin, top + margin]}
