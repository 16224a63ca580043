"""Charts of learning: loss and BLEU with the fitted curve, the overfitting gap, and the learning rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from dragoman.explain.details import planned
from dragoman.explain.finding import Finding
from dragoman.measure.records import EvaluationRow, Records
from dragoman.report.charts import thin
from dragoman.report.charts.figure import Chart, Missing, Trace, axis, dots, line


def loss(records: Records, finding: Finding) -> Chart | Missing:
    title = "Loss"
    steps, values = evaluated(records, "eval_loss")
    traces: list[Trace] = []
    training = records.steps["loss"]
    if thin.is_known(training):
        x, y = thin.means(*thin.where_known(training, records.steps["step"]))
        traces.append(line(x, y, "training", "--muted", width=1))
    if len(steps):
        traces.append(dots(steps, values, "held-out", "--series-1"))
        traces += _fit(finding, "loss", steps.max(), "--series-1")
    if not traces:
        return Missing(title, "no loss was recorded")
    layout = {"xaxis": axis("step"), "yaxis": axis("loss per token", **_upper(training, values))}
    note = "The training loss includes dropout, so it cannot be compared with the held-out loss."
    note = f"Dots are evaluations on held-out text. {note}" if len(steps) else note
    return Chart(title, note, traces, layout)


def bleu(records: Records, finding: Finding) -> Chart | Missing:
    title = "BLEU"
    steps, values = evaluated(records, "bleu")
    if not len(steps):
        return Missing(title, "no BLEU was recorded")
    traces = [dots(steps, values, "held-out", "--series-2")]
    traces += _fit(finding, "bleu", steps.max(), "--series-2")
    signatures = sorted({row.bleu_signature for row in records.evaluations if row.bleu_signature})
    note = "Dots are evaluations on held-out text."
    if signatures:
        note += f" Signature: {'; '.join(signatures)}."
    return Chart(title, note, traces, {"xaxis": axis("step"), "yaxis": axis("BLEU")})


def gap(records: Records, finding: Finding) -> Chart | Missing:
    title = "Held-out loss and the loss on a training sample, scored alike"
    traces = []
    for name, meaning, color in (
        ("eval_loss", "held-out", "--series-1"),
        ("train_sample_loss", "training sample", "--series-3"),
    ):
        steps, values = evaluated(records, name)
        if len(steps):
            traces.append(line(steps, values, meaning, color, mode="lines+markers"))
    if len(traces) < 2:
        return Missing(title, "held-out and training-sample loss were not both recorded")
    note = "Overfitting shows when the curves part: held-out loss rises while the training sample's falls."
    return Chart(title, note, traces, {"xaxis": axis("step"), "yaxis": axis("loss per token")}, height=280)


def learning_rate(records: Records, finding: Finding) -> Chart | Missing:
    title = "Learning rate, planned and applied"
    applied = records.steps["learning_rate"]
    traces = []
    if plan := planned(records.facts.settings):
        spread = np.linspace(1, plan.settings.steps, thin.MOST - 1).astype(int)
        steps = np.unique([*spread, plan.settings.warmup_steps or 1])
        traces.append(line(steps, plan.rates(steps), "planned", "--muted", dash="dash"))
    if thin.is_known(applied):
        steps, rates = thin.where_known(applied, records.steps["step"])
        places = thin.picks(rates)
        traces.append(line(steps[places], rates[places], "applied", "--series-1"))
    if not traces:
        return Missing(title, "no learning rate was recorded")
    yaxis = axis("learning rate", rangemode="tozero", exponentformat="power")
    note = "Planned is the schedule in the config; applied is the rate that each step used."
    return Chart(title, note, traces, {"xaxis": axis("step"), "yaxis": yaxis}, height=280)


def evaluated(records: Records, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the steps and finite values of one score of the evaluations."""
    rows = [(row.step, _value(row, name)) for row in records.evaluations]
    known = [(step, value) for step, value in sorted(rows) if np.isfinite(value)]
    if len(known) > thin.MOST:
        known = [known[place] for place in thin.picks(np.array([value for _, value in known]))]
    return np.array([step for step, _ in known]), np.array([value for _, value in known])


def _value(row: EvaluationRow, name: str) -> float:
    value = getattr(row, name)
    return float("nan") if value is None else float(value)


def _fit(finding: Finding, metric: str, last: int, color: str) -> list[Trace]:
    """Returns the curve that the convergence answer fitted, extended to twice the steps."""
    points = finding.numbers.get(f"{metric}_curve")
    if not isinstance(points, list) or len(points) < 2:
        return []
    steps, values = np.array(points, dtype=float).T
    past, ahead = steps <= last, steps >= steps[steps <= last].max(initial=steps[0])
    return [
        line(steps[past], values[past], "fitted curve", color, width=1.4),
        line(steps[ahead], values[ahead], "if trained twice as long", color, width=1.4, dash="dot"),
    ]


def _upper(training: np.ndarray, held_out: np.ndarray) -> dict[str, Any]:
    """Returns an axis range without the loss of the first steps, which would flatten the rest."""
    known = training[np.isfinite(training)]
    tops = [
        *([float(np.percentile(known, 97))] if len(known) else []),
        *held_out.max(initial=-np.inf, keepdims=True),
    ]
    floors = [
        *([float(np.percentile(known, 1))] if len(known) else []),
        *held_out.min(initial=np.inf, keepdims=True),
    ]
    top, floor = max(tops), min(floors)
    if not np.isfinite(top) or top <= floor:
        return {}
    margin = 0.06 * (top - floor)
    return {"range": [floor - margin, top + margin]}
