"""explain/history.py: what a loss must do to have risen for good, or to have broken down."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain.history import divergence, rise
from dragoman.measure.records import EvaluationRow, Records, RunFacts
from tests.explain.altered import learning
from tests.facts import lacking


def of(losses: list[float], first: int = 2, **facts: object) -> Records:
    """A run of which only the losses of some steps are known."""
    steps = {"step": np.arange(first, first + len(losses)), "loss": np.array(losses)}
    return Records(RunFacts.model_validate(facts), steps=steps)


def test_four_values_show_a_rise_and_three_do_not() -> None:
    assert rise(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(2.0)
    assert rise(np.array([1.0, 2.0, 3.0])) == 0


def test_a_best_value_among_the_last_two_is_no_rise() -> None:
    assert rise(np.array([5.0, 4.0, 3.0, 2.0, 9.0])) == 0
    assert rise(np.array([5.0, 4.0, 3.0, 3.5, 3.9])) == pytest.approx(0.5)


def test_the_last_two_of_a_log_without_numbers_are_a_divergence() -> None:
    assert divergence(of([np.inf])) is None
    assert not lacking(divergence(of([np.inf, np.inf])) or "", "step 2")
    assert not lacking(divergence(of([3.0, 2.0, np.inf, np.inf])) or "", "step 4")
    assert divergence(of([3.0, np.inf, 2.0])) is None


@pytest.mark.parametrize(("ended", "has"), [(8.2, False), (8.4, True)])
def test_a_loss_a_fifth_above_guessing_is_worse_than_nothing(ended: float, has: bool) -> None:
    """Guessing one of 1,096 pieces costs 7.0; what the first step cost is not in the log."""
    records = of([ended] * 40, data_card={"vocabulary_pieces": 1096})
    assert (divergence(records) is not None) == has
    records.facts.data_card = {}
    assert divergence(records) is None


def test_a_loss_that_was_scored_as_no_number_is_a_divergence_and_one_that_was_not_scored_is_none() -> None:
    rows = [EvaluationRow(step=step, attempt=1, time=0.0, eval_loss=3.0) for step in (10, 20)]
    records = of([])
    records.evaluations = [*rows, EvaluationRow(step=30, attempt=1, time=0.0)]
    assert divergence(records) is None
    records.evaluations[-1].eval_loss = float("nan")
    assert divergence(records)


@pytest.mark.parametrize(("losses", "has"), [([2.0, 3.0, 3.0], True), ([2.0, 3.0], False)])
def test_three_evaluations_are_enough_to_break_down(losses: list[float], has: bool) -> None:
    assert (divergence(learning(losses, losses)) is not None) == has


def test_losses_of_forty_steps_are_enough_to_break_down() -> None:
    rising = [1.0, *np.linspace(1.0, 3.0, 38), 3.0]
    assert divergence(of(rising)) is not None
    assert divergence(of(rising[1:])) is None
