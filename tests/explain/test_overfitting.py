"""explain/overfitting.py: held-out loss against a training sample scored alike."""

import numpy as np
import pytest

from dragoman.explain.overfitting import explain
from tests.explain import build
from tests.explain.altered import learning
from tests.explain.sentences import wording
from tests.facts import lacking


def settled(step: np.ndarray) -> np.ndarray:
    return 1.8 + 3 * np.exp(-step / 2500)


def overfitted(step: np.ndarray) -> np.ndarray:
    return settled(step) + 5e-5 * np.maximum(0, step - 8000)


def memorised(step: np.ndarray) -> np.ndarray:
    return 3 * np.exp(-step / 6000)


@pytest.mark.parametrize("seed", range(6))
def test_rising_held_out_loss_over_a_falling_sample_is_overfitting(seed: int) -> None:
    records = build.evaluated(eval_loss=overfitted, train_sample_loss=memorised, seed=seed)
    finding = explain(records)
    assert finding.verdict == "yes"
    numbers = finding.numbers
    assert numbers["gap"] == pytest.approx(numbers["eval_loss"] - numbers["train_sample_loss"])
    assert numbers["gap_trend_per_1000_steps"] > 0.05
    assert numbers["best_eval_loss_step"] == pytest.approx(9000, abs=2000)
    assert not lacking(finding.advice[0], f"step {numbers['best_eval_loss_step']:,}")


def test_advice_against_overfitting_has_the_options_of_the_program_that_made_the_run() -> None:
    records = build.evaluated(eval_loss=overfitted, train_sample_loss=memorised)
    records.facts.settings["model.dropout"] = 0.1
    advice = " ".join(explain(records).advice)
    options = ("evaluate.metric=loss", "model.dropout=0.2", "evaluate.patience=5")
    assert all(f"--set {option}" in advice for option in options)
    records.facts.source = "fairseq"
    assert "--set" not in " ".join(explain(records).advice)


@pytest.mark.parametrize("seed", range(6))
def test_level_or_improving_loss_is_not(seed: int) -> None:
    both_fall = explain(build.evaluated(eval_loss=settled, train_sample_loss=settled, seed=seed))
    large_gap = explain(build.evaluated(eval_loss=settled, train_sample_loss=memorised, seed=seed))
    assert (both_fall.verdict, large_gap.verdict) == ("no", "no")
    assert both_fall.numbers["gap"] == pytest.approx(0, abs=0.02)
    assert large_gap.numbers["gap"] > 1
    assert both_fall.advice == []


def test_gap_that_widens_at_a_standstill_is_reported() -> None:
    later, early = (
        explain(build.evaluated(count=count, eval_loss=settled, train_sample_loss=memorised))
        for count in (30, 8)
    )
    assert (later.verdict, early.verdict) == ("no", "no")
    assert wording(later.answer) != wording(early.answer)


@pytest.mark.parametrize(("last", "verdict"), [(1.29, "yes"), (1.31, "no")])
def test_a_rise_is_overfitting_if_the_sample_ends_below_where_it_was_at_the_best(
    last: float, verdict: str
) -> None:
    """Whatever it was shortly before: 1.3 where the held-out loss was best, and now."""
    down = [2.9, 2.2, 1.7, 1.3, 1.2, 1.25, 1.35 if verdict == "yes" else 1.25, last]
    assert explain(learning([3.0, 2.4, 2.0, 1.9, 2.0, 2.2, 2.5, 2.8], down)).verdict == verdict


@pytest.mark.parametrize(("more", "is_said"), [(0.4, False), (0.6, True)])
def test_bleu_that_gains_half_a_point_after_the_best_loss_still_rises(more: float, is_said: bool) -> None:
    """The median of the last three against the best until then, which one lucky score does not change."""
    bleu = [10.0, 15.0, 20.0, 19.0, 18.0, 20.0 + more, 25.0, 19.0]
    records = learning(
        [3.0, 2.4, 2.0, 1.9, 2.0, 2.2, 2.5, 2.8], [2.9, 2.2, 1.7, 1.3, 1.2, 1.1, 1.0, 0.9], bleu
    )
    assert ("BLEU" in explain(records).answer) == is_said


@pytest.mark.parametrize(
    ("half_way", "sample", "is_said"), [(2.015, 1.8, True), (2.025, 1.8, False), (2.015, 1.89, False)]
)
def test_a_standstill_is_a_gain_of_under_1_percent_since_half_way(
    half_way: float, sample: float, is_said: bool
) -> None:
    """And a gap that has grown by more than that: from 0.115 half way to 0.2, or to 0.11 only."""
    records = learning(
        [3.0, 2.5, 2.2, 2.1, half_way, 2.01, 1.98, 2.0],
        [2.9, 2.4, 2.1, 2.0, half_way - 0.115, 1.9, 1.9, sample],
    )
    plain = learning([3.0, 2.5, 2.2, 2.1, 2.05, 2.01, 1.98, 1.9], [2.9, 2.4, 2.1, 2.0, 1.9, 1.9, 1.9, 1.85])
    assert (wording(explain(records).answer) != wording(explain(plain).answer)) == is_said


def test_one_unlucky_evaluation_is_no_rise() -> None:
    records = build.evaluated(eval_loss=settled, train_sample_loss=memorised)
    last = records.evaluations[-1]
    last.eval_loss = (last.eval_loss or 0) + 0.3
    assert explain(records).verdict == "no"


def test_divergence_is_not_overfitting() -> None:
    def broken(step: np.ndarray) -> np.ndarray:
        return settled(step) + np.where(step > 12_000, 4.0, 0.0)

    finding = explain(build.evaluated(eval_loss=broken, train_sample_loss=broken))
    assert finding.verdict == "no"
    assert finding.numbers["risen_from_best"] > 3
    assert not lacking(finding.answer, f"{finding.numbers['risen_from_best']:.3f}")
    assert finding.advice == []


def test_rising_bleu_is_reported_beside_a_rising_loss() -> None:
    records = build.evaluated(eval_loss=overfitted, train_sample_loss=memorised, bleu=lambda s: 20 + 5e-4 * s)
    finding = explain(records)
    assert finding.verdict == "yes"
    assert not lacking(finding.answer, "BLEU")
    assert not lacking(finding.advice[0], "BLEU") and lacking(finding.advice[0], "step")


def test_without_a_training_sample_it_is_unknown() -> None:
    finding = explain(build.evaluated(eval_loss=overfitted))
    assert finding.verdict == "unknown"
    assert "train_sample_loss" not in finding.numbers
    assert finding.numbers["eval_loss"] > 0


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_evaluations_are_unknown(count: int) -> None:
    finding = explain(build.evaluated(count=count, eval_loss=overfitted, train_sample_loss=memorised))
    assert finding.verdict == "unknown"


def test_nothing_is_reported_about_scoring_before_the_first_evaluation() -> None:
    finding = explain(build.records(steps=40, evaluate_every=50))
    assert finding.verdict == "unknown"
    assert finding.numbers == {"steps": 40, "first_evaluation_step": 50}
    assert not lacking(finding.answer, "step 40", "step 50")
    scored = explain(build.evaluated(eval_loss=overfitted))
    assert explain(build.foreign()).answer != scored.answer
