"""explain/convergence.py: converged, improving, diverged and unknown, each from a run where it is true."""

from pathlib import Path

import numpy as np
import pytest

from dragoman.explain.convergence import explain
from dragoman.measure.database import RecordsFile, read
from dragoman.measure.records import Attempt, EvaluationRow
from tests.explain import build


def falling(step: np.ndarray) -> np.ndarray:
    return 1.2 + 4 * (step / 1000) ** -0.5


def settled(step: np.ndarray) -> np.ndarray:
    return 1.8 + 3 * np.exp(-step / 2500)


def overfitted(step: np.ndarray) -> np.ndarray:
    return 1.8 + 3 * np.exp(-step / 2500) + 4e-5 * np.maximum(0, step - 8000)


@pytest.mark.parametrize("seed", range(8))
def test_converged_run_would_gain_nothing(seed: int) -> None:
    records = build.evaluated(
        eval_loss=settled, train_sample_loss=settled, bleu=lambda s: 30 - 28 * np.exp(-s / 2500), seed=seed
    )
    finding = explain(records)
    assert finding.verdict == "converged"
    assert finding.numbers["gain_if_doubled_bleu_high"] < 0.5
    assert finding.numbers["best_bleu"] == pytest.approx(30, abs=0.6)
    assert finding.numbers["last_eval_loss"] == pytest.approx(1.8, abs=0.02)
    assert finding.confidence == "estimated"
    assert finding.advice == []


@pytest.mark.parametrize("seed", range(8))
def test_improving_run_says_what_twice_the_steps_buy(seed: int) -> None:
    records = build.evaluated(eval_loss=falling, bleu=lambda s: 34 - 30 * (s / 1000) ** -0.5, seed=seed)
    finding = explain(records)
    assert finding.verdict == "improving"
    truth = 30 * (20**-0.5 - 40**-0.5)
    numbers = finding.numbers
    assert numbers["gain_if_doubled_bleu_low"] <= numbers["gain_if_doubled_bleu"]
    assert numbers["gain_if_doubled_bleu"] <= numbers["gain_if_doubled_bleu_high"]
    assert numbers["gain_if_doubled_bleu"] == pytest.approx(truth, rel=0.5)
    assert numbers["gain_if_doubled_loss"] > 0, "positive is better, for a loss too"
    assert "twice the steps would buy" in finding.answer
    assert "BLEU (between" in finding.answer


def test_loss_alone_is_enough() -> None:
    assert explain(build.evaluated(eval_loss=falling)).verdict == "improving"
    finding = explain(build.evaluated(eval_loss=settled))
    assert finding.verdict == "converged"
    assert "best_bleu" not in finding.numbers


def test_short_run_is_still_improving() -> None:
    records = build.evaluated(
        count=6, every=200, eval_loss=lambda s: 3 + 6 * np.exp(-s / 2000), bleu=lambda s: s / 200
    )
    assert explain(records).verdict == "improving"


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_evaluations_are_unknown(count: int) -> None:
    finding = explain(build.evaluated(count=count, eval_loss=falling))
    assert finding.verdict == "unknown"
    assert f"{count} evaluations" in finding.answer


def test_noise_leaves_it_open() -> None:
    records = build.evaluated(count=6, bleu=lambda s: 20 + 0 * s, bleu_noise=3.0, seed=5)
    assert explain(records).verdict in ("unknown", "converged")
    assert explain(records).numbers["gain_if_doubled_bleu_high"] > 1


def test_overfitting_is_not_divergence() -> None:
    records = build.evaluated(eval_loss=overfitted, train_sample_loss=lambda s: 3 * np.exp(-s / 4000))
    finding = explain(records)
    assert finding.verdict == "converged"
    assert "passed its best" in finding.answer


def test_strong_overfitting_is_not_divergence_either() -> None:
    records = build.evaluated(
        eval_loss=lambda s: settled(s) + 3e-4 * np.maximum(0, s - 5000),
        train_sample_loss=lambda s: 3 * np.exp(-s / 4000),
    )
    assert explain(records).verdict == "converged"


def test_both_losses_rising_is_divergence() -> None:
    def broken(step: np.ndarray) -> np.ndarray:
        return settled(step) + np.where(step > 12_000, 4.0, 0.0)

    finding = explain(build.evaluated(eval_loss=broken, train_sample_loss=broken))
    assert finding.verdict == "diverged"
    assert "held-out loss from" in finding.answer
    assert "lower learning rate" in finding.advice[0]


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_held_out_loss_that_is_no_number_is_divergence(loss: float, tmp_path: Path) -> None:
    """Also after records.db: neither JSON nor SQLite has such numbers."""
    file = RecordsFile(tmp_path / "records.db")
    for step, value in ((10, 3.0), (20, 2.5), (30, loss)):
        file.add_row("evaluations", EvaluationRow(step=step, attempt=0, time=0, eval_loss=value))
    finding = explain(read(tmp_path / "records.db"))
    assert finding.verdict == "diverged"
    assert "not a finite number" in finding.answer
    assert finding.numbers["best_eval_loss"] == 2.5
    assert "last_eval_loss" not in finding.numbers, "JSON could not hold it"


def test_loss_that_was_not_scored_last_is_no_divergence() -> None:
    records = build.evaluated(eval_loss=settled)
    records.evaluations.append(EvaluationRow(step=30_000, attempt=1, time=0, bleu=30.0))
    finding = explain(records)
    assert finding.verdict == "converged"
    assert finding.numbers["last_eval_loss"] == pytest.approx(1.8, abs=0.02)


def test_loss_that_only_ever_rose_is_divergence() -> None:
    def rising(step: np.ndarray) -> np.ndarray:
        return 6.5 + 0.9 * (1 - np.exp(-(step - 1000) / 3000))  # 14 % in all

    assert explain(build.evaluated(eval_loss=rising, train_sample_loss=rising)).verdict == "diverged"
    learning = build.evaluated(eval_loss=rising, train_sample_loss=lambda s: 6 * np.exp(-s / 4000))
    assert explain(learning).verdict != "diverged", "overfitted from the first evaluation on"


def recovering(step: np.ndarray) -> np.ndarray:
    """From an explosion before the first evaluation; of a run that was really made, with a rate of 2."""
    return 7.5 + 80 * np.exp(-(step - 50) / 50)


def test_loss_that_falls_from_an_explosion_is_divergence_while_it_is_above_the_first() -> None:
    records = build.records(
        eval_loss=recovering, sample_loss=recovering, loss=lambda n: np.where(n == 1, 5.3, recovering(n))
    )
    finding = explain(records)
    assert finding.verdict == "diverged"
    assert "above the first step's 5.3" in finding.answer
    records.steps["loss"][0] = 9.0  # the same, but below what it began with
    assert explain(records).verdict != "diverged"


def test_without_the_first_step_guessing_is_the_measure() -> None:
    records = build.evaluated(eval_loss=recovering, train_sample_loss=recovering, count=8, every=50)
    assert explain(records).verdict != "diverged", "nothing is known to hold it against"
    records.facts.data_card = {"vocabulary_pieces": 64}
    finding = explain(records)
    assert finding.verdict == "diverged"
    assert "above guessing's 4.16" in finding.answer
    records.facts.data_card = {"vocabulary_pieces": 32_000}
    assert explain(records).verdict != "diverged"


def test_a_run_in_its_first_steps_has_not_diverged() -> None:
    """Rates are still low: the loss stands a little above that of guessing, and hardly moves."""
    records = build.records(
        steps=60, evaluate_every=20, loss=lambda n: 11.4 - 1e-3 * n, eval_loss=lambda s: 11.4 - 1e-3 * s
    )
    assert explain(records).verdict == "unknown"


def test_stop_for_bad_gradients_is_divergence() -> None:
    records = build.records(reason="diverged")
    assert explain(records).verdict == "diverged"
    records = build.records(reason=None)
    records.steps["is_bad"][-15:] = 1
    assert explain(records).verdict == "diverged"


def test_step_losses_show_divergence_without_evaluations() -> None:
    records = build.records(loss=lambda n: np.where(n < 200, 9 * n**-0.2, 9.0))
    assert explain(records).verdict == "diverged"
    assert explain(build.records()).verdict == "unknown"


def test_a_recovered_run_has_not_diverged() -> None:
    records = build.evaluated(eval_loss=settled, train_sample_loss=settled)
    records.attempts = [
        Attempt(number=1, started=0, first_step=1, ranks=1, ended=5, reason="diverged"),
        Attempt(number=2, started=6, first_step=1, ranks=1, ended=9, reason="finished"),
    ]
    assert explain(records).verdict == "converged"


def test_model_that_learnt_nothing_is_not_converged() -> None:
    records = build.evaluated(eval_loss=lambda s: 6.9 + 0 * s, bleu=lambda s: 0.2 + 0 * s, bleu_noise=0.02)
    finding = explain(records)
    assert finding.verdict == "unknown"
    assert "not learnt to translate" in finding.answer


def test_rate_run_down_to_nothing_is_said() -> None:
    records = build.evaluated(eval_loss=settled)
    records.steps["learning_rate"] = np.array([1e-3, 5e-4, 0.0])
    assert "longer schedule" in explain(records).answer
