"""BLEU, chrF and TER of one system, or of two side by side; sacreBLEU does the arithmetic.

Intervals and p-values come from one bootstrap: the same sentences are drawn for both systems, so that a
test set that is hard for both does not hide a difference between them (Koehn 2004).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel
from sacrebleu.metrics import CHRF, TER
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from dragoman.measure.quality import bleu_metric
from dragoman.measure.scored import IntervalScore

_RESAMPLES = 1_000
_DRAWN_SENTENCES = 10_000_000  # over all resamples, held at once: 0.7 GB of chrF's counts
_LEVEL = 0.05  # of significance


class ScoreDifference(BaseModel):
    """Of one metric, the second system less the first."""

    metric: str
    value: float
    p_value: float
    better: Literal["first", "second"] | None  # None: what was seen may be chance


class SystemComparison(BaseModel):
    """Each system's scores by metric; of two systems, how they differ."""

    scores: list[dict[str, IntervalScore]]
    differences: list[ScoreDifference]


def metrics(target_language: str | None) -> dict[str, Metric]:
    """Of every evaluation."""
    return {"bleu": bleu_metric(target_language), "chrf": CHRF(), "ter": TER()}


def compare(
    systems: Sequence[Sequence[str]], references: Sequence[Sequence[str]], metrics: Mapping[str, Metric]
) -> SystemComparison:
    """Scores of one or two systems' translations of the same sentences."""
    named = [(str(number), system) for number, system in enumerate(systems)]
    resamples = max(100, min(_RESAMPLES, _DRAWN_SENTENCES // len(systems[0])))
    scores: list[dict[str, IntervalScore]] = [{} for _ in systems]
    differences = []
    for name, metric in metrics.items():
        signatures, found = PairedTest(named, {name: metric}, references, "bs", resamples)()
        ((label, signature),) = signatures.items()
        results: Any = found[label]  # typed by sacreBLEU as if they might be names
        for place, result in zip(scores, results, strict=True):
            low, high = result.mean - result.ci, result.mean + result.ci
            place[name] = IntervalScore(value=result.score, signature=str(signature), low=low, high=high)
        if len(results) > 1:
            value = results[1].score - results[0].score
            differences.append(_difference(name, value, results[1].p_value))
    return SystemComparison(scores=scores, differences=differences)


def _difference(metric: str, value: float, p_value: float) -> ScoreDifference:
    gain = -value if metric == "ter" else value  # errors: fewer are better
    better: Literal["first", "second"] | None = None
    if p_value < _LEVEL and value:
        better = "second" if gain > 0 else "first"
    return ScoreDifference(metric=metric, value=value, p_value=p_value, better=better)
