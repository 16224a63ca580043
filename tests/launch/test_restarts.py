"""When a run that lost ranks ends instead of trying again."""

from __future__ import annotations

from dragoman.launch.restarts import MOST_IN_VAIN, Restarts
from tests.facts import lacking

HOUR = 3600.0


def test_faults_with_a_step_between_them_do_not_end_a_run() -> None:
    restarts = Restarts(most=20)
    assert not any(restarts.note(now=10.0 * step, step=step) for step in range(20))


def test_a_run_that_fails_again_and_again_without_a_step_ends() -> None:
    restarts = Restarts()
    answers = [restarts.note(now=10.0 * number, step=7) for number in range(MOST_IN_VAIN + 1)]
    assert not any(answers[:-1])
    assert not lacking(answers[-1], MOST_IN_VAIN + 1)


def test_a_step_between_faults_begins_the_count_anew() -> None:
    restarts = Restarts()
    steps = [7] * MOST_IN_VAIN + [8] * MOST_IN_VAIN + [9]
    assert not any(restarts.note(now=10.0 * number, step=step) for number, step in enumerate(steps))


def test_steps_made_again_after_a_checkpoint_are_no_progress() -> None:
    restarts = Restarts()
    answers = [restarts.note(now=10.0 * number, step=step) for number, step in enumerate([9, 3, 5, 8])]
    assert [bool(answer) for answer in answers] == [False] * MOST_IN_VAIN + [True]


def test_too_many_faults_within_an_hour_end_the_run() -> None:
    restarts = Restarts(most=3)
    assert not any(restarts.note(now=10.0 * step, step=step) for step in range(3))
    assert not lacking(restarts.note(now=HOUR, step=3), 4, "--max-restarts", 3)


def test_faults_of_more_than_an_hour_ago_do_not_count() -> None:
    restarts = Restarts(most=3)
    assert not any(restarts.note(now=step * HOUR / 2, step=step) for step in range(50))


def test_without_restarts_the_first_fault_ends_the_run() -> None:
    assert not lacking(Restarts(most=0).note(now=0.0, step=100), "--max-restarts", 0)


def test_a_run_that_never_made_a_step_may_be_tried_as_often() -> None:
    restarts = Restarts()
    answers = [restarts.note(now=10.0 * number, step=-1) for number in range(MOST_IN_VAIN + 1)]
    assert [bool(answer) for answer in answers] == [False] * MOST_IN_VAIN + [True]


def test_all_ranks_of_a_run_may_be_lost_at_once() -> None:
    restarts = Restarts()
    assert not any(restarts.note(100.0 + 0.01 * rank, 7) for rank in range(MOST_IN_VAIN + 5))
