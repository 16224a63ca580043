"""explain/course.py: how far the rates of its steps have carried a run."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain.course import Course, course, steady
from dragoman.measure.records import Records, RunFacts

PLAN = {
    "train.schedule": "linear",
    "train.rate": 1.0,
    "train.warmup_steps": 10,
    "train.steps": 110,
    "model.width": 8,
}


def of(steps: int, rates: np.ndarray | None = None, **settings: object) -> Course:
    table = {"step": np.arange(1, steps + 1)} | ({} if rates is None else {"learning_rate": rates})
    found = course(Records(RunFacts(settings=settings), steps=table))
    assert found
    return found


@pytest.mark.parametrize("rates", [np.zeros(50), np.full(50, np.nan), -np.ones(50)])
def test_rates_that_never_rose_above_nothing_are_not_known(rates: np.ndarray) -> None:
    found = of(50, rates)
    assert not found.is_known
    assert (found.last, found.target_step, found.way) == (50, 100, "more")
    assert found.target.area == steady(50).target.area == 100


def test_a_run_half_way_down_its_plan_is_to_finish_it() -> None:
    found = of(60, **PLAN)
    assert (found.way, found.target_step, found.planned_steps) == ("finish", 110, 110)
    assert found.rate == pytest.approx(0.5)
    assert found.target.rate == pytest.approx(0.0)
    assert found.is_unfinished and not found.is_rising
    # A rise over 10 steps, and a fall over the next 50 to the half of 1.
    assert float(found.at(np.array([60.0])).area[0]) == pytest.approx(5.5 + 37.25, rel=0.01)


def test_a_run_that_is_at_the_end_of_its_plan_needs_another() -> None:
    found = of(110, **PLAN)
    assert (found.way, found.target_step) == ("anew", 220)
    assert not found.is_unfinished
    # Half of the steps after the warm-up, of a schedule twice as long with the same peak.
    assert found.target.area == pytest.approx(5 + 210 / 2, rel=0.01)


@pytest.mark.parametrize(("steps", "way"), [(54, "more"), (56, "finish")])
def test_a_plan_is_to_be_finished_if_twice_the_steps_reach_its_end(steps: int, way: str) -> None:
    assert of(steps, **PLAN).way == way


def test_a_rate_of_2_percent_of_its_peak_moves_nothing() -> None:
    down = np.linspace(1.0, 0.03, 100)
    assert of(100, down).way == "more"
    down[-1] = 0.019
    assert of(100, down).way == "anew"


def test_a_run_in_its_warm_up_is_rising() -> None:
    assert of(9, **PLAN).is_rising
    assert not of(11, **PLAN).is_rising


def test_rates_alone_continue_as_they_end() -> None:
    found = of(100, np.r_[np.ones(50), np.full(50, 0.5)])
    assert found.planned_steps is None and found.is_known
    assert found.target.rate == 0.5
    now = float(found.at(np.array([100.0])).area[0])
    assert found.target.area - now == pytest.approx(50)


def test_nothing_has_no_course() -> None:
    assert course(Records(RunFacts())) is None
