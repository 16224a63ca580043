"""Gains told after N steps, against real runs of 2N that benchmarks/convergence.py trained and kept."""

from __future__ import annotations

import json

import pytest

from benchmarks.convergence import CHOSEN_ON, KEPT, TRAININGS, VERIFIED_ON, pairs
from dragoman.explain import convergence

CURVES = json.loads(KEPT.read_text())
MOST_BYTES = 60_000


@pytest.mark.parametrize("name", ["loss", "bleu"])
def test_a_90_percent_interval_holds_nine_of_ten_true_gains_and_says_something(name: str) -> None:
    told = [
        (low <= truth <= high, (high - low) / abs(truth), gain / truth)
        for pair in pairs(TRAININGS, CURVES)
        for metric, gain, low, high, truth in pair.judged(convergence.explain(pair.records))
        if metric == name
    ]
    inside, widths, ratios = (sorted(column) for column in zip(*told, strict=True))
    assert len(told) >= 14
    assert sum(inside) >= 0.9 * len(told)
    assert widths[len(told) // 2] < {"loss": 2.0, "bleu": 3.5}[name], "in true gains"
    assert 0.6 < ratios[len(told) // 2] < 1.5, "the middle of what is told is no fiction either"


def test_no_run_that_gains_is_called_fully_trained() -> None:
    for pair in pairs(TRAININGS, CURVES):
        finding = convergence.explain(pair.records)
        assert finding.verdict == "improving", f"{pair.name}: {finding.answer}"


def test_curves_of_falling_and_of_endless_schedules_are_kept_and_small() -> None:
    schedules = {curve["settings"]["train.schedule"] for curve in CURVES.values()}
    assert schedules >= {"linear", "cosine", "constant", "inverse_sqrt"}
    assert not {training.name for training in CHOSEN_ON} & {training.name for training in VERIFIED_ON}
    assert KEPT.stat().st_size <= MOST_BYTES
