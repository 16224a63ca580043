"""explain/convergence.py: converged, improving, diverged and unknown, each from a run where it is true."""

from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest

from dragoman import config
from dragoman.config import Train
from dragoman.explain.convergence import explain
from dragoman.explain.curves import LEAST_POINTS, extrapolate
from dragoman.explain.gains import NOTHING_LEARNT_BLEU
from dragoman.explain.history import history
from dragoman.measure.database import RecordsFile, read
from dragoman.measure.records import Attempt, EvaluationRow, Records, RunFacts
from dragoman.schedule import learning_rate
from tests.explain import build
from tests.explain.sentences import wording
from tests.facts import lacking, only
from tests.golden.readme import DEMO


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
    assert finding.numbers["gain_if_doubled_bleu_high"] < 0.7, "two evaluations differ by 0.35 or more"
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
    ends = [f"{numbers[f'gain_if_doubled_bleu{end}']:.1f}" for end in ("", "_low", "_high")]
    assert not lacking(finding.answer, *ends)


def test_loss_alone_is_enough() -> None:
    assert explain(build.evaluated(eval_loss=falling)).verdict == "improving"
    finding = explain(build.evaluated(eval_loss=settled))
    assert finding.verdict == "converged"
    assert "best_bleu" not in finding.numbers


def test_no_gain_takes_the_loss_below_what_label_smoothing_allows() -> None:
    """Over 4,000 pieces smoothed by 0.1 no model comes below 1.154."""
    records = build.evaluated(count=8, every=100, eval_loss=lambda s: 1.16 + 3 * (s / 100) ** -1.5)
    free = explain(records).numbers["gain_if_doubled_loss_high"]
    assert isinstance(free, float)
    records.facts.settings["train.label_smoothing"] = 0.1
    records.facts.data_card["vocabulary_pieces"] = 4000
    bounded = explain(records).numbers
    entropy = -0.900025 * np.log(0.900025) - 3999 * 2.5e-5 * np.log(2.5e-5)
    assert entropy == pytest.approx(1.154, abs=0.001)
    assert bounded["gain_if_doubled_loss_high"] <= bounded["last_eval_loss"] - entropy + 1e-9
    assert bounded["gain_if_doubled_loss_high"] < free


def test_short_run_is_still_improving() -> None:
    records = build.evaluated(
        count=6, every=200, eval_loss=lambda s: 3 + 6 * np.exp(-s / 2000), bleu=lambda s: s / 200
    )
    assert explain(records).verdict == "improving"


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_evaluations_are_unknown(count: int) -> None:
    finding = explain(build.evaluated(count=count, eval_loss=falling))
    assert finding.verdict == "unknown"
    assert finding.numbers.get("evaluations_of_training", 0) == count
    assert not lacking(finding.answer, LEAST_POINTS)


def test_a_loss_that_plainly_falls_is_not_fully_trained_however_few_the_evaluations() -> None:
    finding = explain(build.evaluated(count=3, eval_loss=falling))
    assert finding.verdict == "improving"
    assert finding.numbers["loss_fall_per_evaluation"] == pytest.approx(2 * (1 - 3**-0.5), abs=0.01)
    still = explain(build.evaluated(count=3, eval_loss=lambda s: 2 + 0 * s))
    assert still.verdict == "unknown"
    assert not lacking(still.answer, 3, LEAST_POINTS)


def test_noise_leaves_it_open() -> None:
    records = build.evaluated(count=6, bleu=lambda s: 20 + 0 * s, bleu_noise=3.0, seed=5)
    assert explain(records).verdict in ("unknown", "converged")
    assert explain(records).numbers["gain_if_doubled_bleu_high"] > 1


def test_overfitting_is_not_divergence() -> None:
    records = build.evaluated(eval_loss=overfitted, train_sample_loss=lambda s: 3 * np.exp(-s / 4000))
    finding = explain(records)
    assert finding.verdict == "converged"
    best = finding.numbers["best_eval_loss_step"]
    assert not lacking(finding.answer, f"{best:,}", f"{finding.numbers['risen_from_best']:.3f}")


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
    best, last = (finding.numbers[f"{which}_eval_loss"] for which in ("best", "last"))
    assert last > best + 3
    assert not lacking(finding.answer, f"{best:.3g}", f"{last:.3g}")
    assert len(finding.advice) == 1


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_held_out_loss_that_is_no_number_is_divergence(loss: float, tmp_path: Path) -> None:
    """Also after records.db: neither JSON nor SQLite has such numbers."""
    file = RecordsFile(tmp_path / "records.db")
    for step, value in ((10, 3.0), (20, 2.5), (30, loss)):
        file.add_row("evaluations", EvaluationRow(step=step, attempt=0, time=0, eval_loss=value))
    finding = explain(read(tmp_path / "records.db"))
    assert finding.verdict == "diverged"
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
    assert not lacking(finding.answer, "5.3")
    records.steps["loss"][0] = 9.0  # the same, but below what it began with
    assert explain(records).verdict != "diverged"


def test_without_the_first_step_guessing_is_the_measure() -> None:
    records = build.evaluated(eval_loss=recovering, train_sample_loss=recovering, count=8, every=50)
    assert explain(records).verdict != "diverged", "nothing is known to hold it against"
    records.facts.data_card = {"vocabulary_pieces": 64}
    finding = explain(records)
    assert finding.verdict == "diverged"
    assert not lacking(finding.answer, "4.16")
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
    assert not lacking(finding.answer, f"{NOTHING_LEARNT_BLEU:g} BLEU")
    assert finding.numbers["best_bleu"] < NOTHING_LEARNT_BLEU


def test_rate_run_down_to_nothing_is_reported() -> None:
    records = build.evaluated(eval_loss=lambda s: 1.8 + 3 * np.exp(-s / 1500))
    steps = np.array([1, 10_000, 20_000])
    answers = []
    for rates in ([1e-3, 5e-4, 5e-4], [1e-3, 5e-4, 0.0]):
        records.steps |= {"step": steps, "learning_rate": np.array(rates)}
        finding = explain(records)
        assert finding.verdict == "converged"
        assert finding.numbers["rate_share_of_peak"] == pytest.approx(rates[-1] / 1e-3)
        answers.append(finding.answer)
    assert wording(answers[0]) != wording(answers[1])
    assert not lacking(answers[1], "40,000") and lacking(answers[0], "40,000"), "steps of a new run"


def planned(schedule: str, steps: int, made: int, evaluate_every: int) -> Records:
    """A run that has made so many steps of a plan; its loss goes with the sum of rates, and with the rate."""
    settings = {
        "train.schedule": schedule,
        "train.rate": 1e-3,
        "train.warmup_steps": 100,
        "train.steps": steps,
        "model.width": 128,
        "evaluate.every": evaluate_every,
    }
    number = np.arange(1, made + 1)
    plan = Train(schedule=schedule, rate=1e-3, warmup_steps=100, steps=steps)
    rates = np.array([learning_rate(step, plan, 128) for step in range(made)])
    at = np.arange(evaluate_every, made + 1, evaluate_every)
    losses = 1.5 + 3 * (np.cumsum(rates)[at - 1] / 1e-3 / 100) ** -0.8 + 0.8 * rates[at - 1] / 1e-3
    return Records(
        RunFacts(settings=settings),
        attempts=[Attempt(number=1, started=0, first_step=1, ranks=1, ended=9, reason="stopped")],
        steps={"step": number, "learning_rate": rates, "loss": 2 + 5 * number**-0.3},
        evaluations=[
            EvaluationRow(
                step=int(step), attempt=1, time=0, eval_loss=float(loss), bleu=60 - 12 * float(loss)
            )
            for step, loss in zip(at, losses, strict=True)
        ],
    )


@pytest.mark.parametrize("every", [50, 100, 250, 305, 400])
def test_a_run_that_was_stopped_early_is_not_fully_trained(every: int) -> None:
    """However few its evaluations; with a single one the training loss tells."""
    finding = explain(planned("linear", 1400, 611, every))
    numbers = finding.numbers
    assert finding.verdict == "improving"
    assert not lacking(finding.answer, "44%", 611, "1,400", "61%")
    assert numbers["planned_share"] == pytest.approx(611 / 1400)
    assert numbers["rate_share_of_peak"] == pytest.approx((1400 - 611) / 1300)
    assert ("loss_fall_per_evaluation" in numbers) == (every <= 305)
    if every <= 305:
        assert not lacking(finding.answer, f"{numbers['loss_fall_per_evaluation']:.2g}")
    assert not lacking(finding.advice[0], "--run RUN")
    assert "train.steps" not in finding.advice[0], "the plan is long enough"


def test_a_run_that_is_under_way_is_not_called_stopped() -> None:
    records = planned("linear", 1400, 611, 50)
    records.attempts = [Attempt(number=1, started=0, first_step=1, ranks=1)]
    stopped = explain(planned("linear", 1400, 611, 50)).answer
    running = explain(records).answer
    assert not lacking(running, "44%", 611, "1,400")
    assert wording(stopped) != wording(running)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_rise_caused_by_the_schedule_is_not_reported_as_a_gain(schedule: str) -> None:
    """The loss falls as the rate falls to nothing, and a longer run has that fall only once."""
    steps = 6000
    records, longer = (planned(schedule, n, n, n // 20) for n in (steps, 2 * steps))
    numbers = explain(records).numbers
    truth = float(records.evaluations[-1].eval_loss or 0) - float(longer.evaluations[-1].eval_loss or 0)
    naive = extrapolate(*history(records).of(history(records).eval_loss), rises=False)
    assert naive
    assert -naive.change > 2 * truth, "what a curve that knows of no schedule makes of it"
    assert numbers["gain_if_doubled_loss"] == pytest.approx(truth, rel=0.35)
    assert numbers["gain_if_doubled_loss_low"] < truth < numbers["gain_if_doubled_loss_high"]


def test_after_a_finished_schedule_a_new_run_is_advised() -> None:
    finding = explain(planned("linear", 600, 600, 50))
    assert finding.verdict == "improving"
    assert finding.numbers["rate_share_of_peak"] < 0.02
    assert not lacking(finding.answer, "1,200")
    only(finding.advice, "--run NEW --set train.steps=1200")


def test_an_endless_schedule_continues_in_the_same_run() -> None:
    finding = explain(planned("inverse_sqrt", 600, 600, 50))
    assert finding.verdict == "improving"
    only(finding.advice, "--run RUN --set train.steps=1200")


def test_fine_tuning_that_harmed_says_that_its_beginning_is_best() -> None:
    records = build.evaluated(eval_loss=lambda s: 2 + 1e-5 * s, bleu=lambda s: 30 - 1e-4 * s)
    records.evaluations.insert(0, EvaluationRow(step=0, attempt=1, time=0, eval_loss=1.5, bleu=35.0))
    finding = explain(records)
    assert finding.numbers["best_bleu_step"] == 0
    assert not lacking(finding.answer, "step 0")
    assert lacking(explain(build.evaluated(eval_loss=falling)).answer, "step 0")


def test_a_gain_near_100_bleu_is_less_than_what_is_left() -> None:
    losses, bleu = (5.17, 2.68, 1.81, 1.64), (0.18, 18.65, 66.14, 76.48)  # of the demo, with few evaluations
    records = planned("linear", 320, 320, 80)
    for row, loss, score in zip(records.evaluations, losses, bleu, strict=True):
        row.eval_loss, row.bleu = loss, score
    numbers = explain(records).numbers
    assert numbers["gain_if_doubled_bleu"] < numbers["gain_if_doubled_bleu_high"] < 100 - bleu[-1]


def test_the_demo_evaluates_often_enough_for_a_curve() -> None:
    with as_file(files("dragoman") / "configs" / "demo.toml") as path:
        settings = config.load(config.Training, path)
    assert settings.train.steps / settings.evaluate.every >= 2 * LEAST_POINTS


def test_steps_out_of_order_have_a_course_all_the_same() -> None:
    """As a damaged records.db may hold them."""
    records = build.evaluated(count=6, eval_loss=falling)
    records.steps = build.records(steps=60).steps
    records.steps["step"] = records.steps["step"][::-1] + 20_000
    assert explain(records).numbers["steps"] == 20_060


def test_the_curve_ahead_ends_at_the_bleu_that_is_predicted() -> None:
    records = read(DEMO)
    finding = explain(records)
    (*_, (step, bleu)) = finding.numbers["bleu_curve"]
    last = max(records.evaluations, key=lambda row: row.step)
    assert step == finding.numbers["target_step"] > last.step
    assert bleu == pytest.approx(last.bleu + finding.numbers["gain_if_doubled_bleu"])
