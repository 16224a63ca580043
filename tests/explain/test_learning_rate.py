"""explain/learning_rate.py: the formula in words, the peak, planned against applied."""

import numpy as np
import pytest

from dragoman.config import Train
from dragoman.explain.learning_rate import explain
from dragoman.measure.records import Records, RunFacts
from dragoman.schedule import learning_rate
from tests.explain import build
from tests.explain.sentences import wording
from tests.facts import lacking


def applied(schedule: str, steps: int = 300) -> Records:
    settings = {"train.schedule": schedule, "train.rate": 0.5, "train.warmup_steps": 40}
    settings |= {"train.steps": 300, "model.width": 64}
    config = Train(schedule=schedule, rate=0.5, warmup_steps=40, steps=300)
    rates = np.array([learning_rate(step, config, 64) for step in range(steps)])
    return Records(
        RunFacts(settings=settings), steps={"step": np.arange(1.0, steps + 1), "learning_rate": rates}
    )


SCHEDULES = ("transformer", "inverse_sqrt", "linear", "cosine", "constant")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_schedule_is_put_in_words_and_found_as_planned(schedule: str) -> None:
    records = applied(schedule)
    finding = explain(records)
    rates = records.steps["learning_rate"]
    assert finding.numbers["peak"] == pytest.approx(rates.max())
    assert finding.numbers["peak_step"] == 40
    assert finding.numbers["warmup_steps"] == 40
    assert finding.numbers["last"] == pytest.approx(rates[-1])
    assert finding.numbers["planned_difference_share"] == pytest.approx(0, abs=1e-9)
    others = [explain(applied(other)).answer for other in SCHEDULES if other != schedule]
    assert wording(finding.answer) not in map(wording, others)


def test_schedule_stepped_once_per_process_is_seen() -> None:
    records = applied("linear")
    rates = records.steps["learning_rate"]
    records.steps["learning_rate"] = np.concatenate((rates[::2], np.zeros(150)))
    finding = explain(records)
    difference = finding.numbers["planned_difference_share"]
    assert difference > 0.1
    assert not lacking(finding.answer, f"{100 * difference:.2g}%")


def test_steps_before_a_run_chose_its_schedule_are_not_held_against_it() -> None:
    records = applied("linear")
    records.steps["learning_rate"][:10] /= 4  # by the warm-up of the config, which was four times as long
    assert explain(records).numbers["planned_difference_share"] > 0.1
    records.facts.settings["train.fitted_at"] = 10
    assert explain(records).numbers["planned_difference_share"] == pytest.approx(0, abs=1e-9)
    early = Records(records.facts, steps={name: values[:10] for name, values in records.steps.items()})
    finding = explain(early)
    assert "planned_difference_share" not in finding.numbers
    assert "nan" not in finding.answer


def test_run_that_has_not_passed_its_peak_says_so() -> None:
    finding = explain(applied("transformer", steps=20))
    assert finding.numbers["peak_step"] == 20
    assert finding.numbers["last"] == finding.numbers["peak"]
    assert not lacking(finding.answer, f"{finding.numbers['peak']:.3g}", "step 20")


def test_settings_alone_give_the_plan() -> None:
    finding = explain(Records(applied("transformer").facts))
    assert finding.confidence == "estimated"
    assert finding.numbers["peak"] == pytest.approx(0.5 * 64**-0.5 * 40**-0.5)


def test_rates_alone_give_the_peak() -> None:
    records = applied("cosine")
    records.facts = RunFacts()
    finding = explain(records)
    assert finding.numbers["peak_step"] == 40
    assert "warmup_steps" not in finding.numbers
    assert not lacking(finding.answer, "step 40")
    assert wording(finding.answer) not in [wording(explain(applied(other)).answer) for other in SCHEDULES]


def test_schedule_of_another_program_is_no_plan_of_ours() -> None:
    records = applied("cosine")
    records.facts.settings["train.schedule"] = "poly_decay"
    assert "planned_difference_share" not in explain(records).numbers


def test_nothing_recorded_is_unknown() -> None:
    assert explain(build.NOTHING).verdict == "unknown"


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "linear", "cosine", "constant"])
def test_a_warm_up_longer_than_the_plan_is_not_said_to_end(schedule: str) -> None:
    settings = {"train.schedule": schedule, "train.rate": 0.5, "train.warmup_steps": 100, "train.steps": 30}
    answer = explain(Records(RunFacts(settings=settings | {"model.width": 64}))).answer
    assert not lacking(answer, 100, 30)
    settings["train.warmup_steps"] = 10
    usual = explain(Records(RunFacts(settings=settings | {"model.width": 64}))).answer
    assert wording(usual) != wording(answer)
