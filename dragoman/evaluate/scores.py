"""BLEU, chrF and TER of one system or of two compared; sacreBLEU does the arithmetic.

Intervals and p-values come from one bootstrap that draws the same sentences for both systems, so that
sentences hard for both do not hide a difference between them (Koehn 2004).
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
_SIGNIFICANCE = 0.05  # p-value


class ScoreDifference(BaseModel):
    """The second system's score minus the first's, by one metric."""

    metric: str
    value: float
    p_value: float
    better: Literal["first", "second"] | None  # None: the difference may be chance


class SystemComparison(BaseModel):
    """Each system's scores by metric and, if there are two, their differences."""

    scores: list[dict[str, IntervalScore]]
    differences: list[ScoreDifference]


def metrics(target_language: str | None) -> dict[str, Metric]:
    """The metrics of every evaluation."""
    return {"bleu": bleu_metric(target_language), "chrf": CHRF(), "ter": TER()}


def compare(
    systems: Sequence[Sequence[str]], references: Sequence[Sequence[str]], metrics: Mapping[str, Metric]
) -> SystemComparison:
    """Score one or two systems' translations of the same sentences."""
    named = [(str(number), system) for number, system in enumerate(systems)]
    resamples = max(100, min(_RESAMPLES, _DRAWN_SENTENCES // len(systems[0])))
    scores: list[dict[str, IntervalScore]] = [{} for _ in systems]
    differences = []
    for name, metric in metrics.items():
        signatures, by_label = PairedTest(named, {name: metric}, references, "bs", resamples)()
        ((label, signature),) = signatures.items()
        results: Any = by_label[label]  # sacreBLEU types these as if they might be names
        for of_system, result in zip(scores, results, strict=True):
            low, high = result.mean - result.ci, result.mean + result.ci
            of_system[name] = IntervalScore(value=result.score, signature=str(signature), low=low, high=high)
        if len(results) > 1:
            value = results[1].score - results[0].score
            differences.append(_difference(name, value, results[1].p_value))
    return SystemComparison(scores=scores, differences=differences)


def _difference(metric: str, value: float, p_value: float) -> ScoreDifference:
    gain = -value if metric == "ter" else value  # TER counts errors: fewer are better
    better: Literal["first", "second"] | None = None
    if p_value < _SIGNIFICANCE and value:
        better = "second" if gain > 0 else "first"
    return ScoreDifference(metric=metric, value=value, p_value=p_value, better=better)
