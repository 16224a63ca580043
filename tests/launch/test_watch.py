"""How long ranks may stand still, by the steps of their own run."""

from __future__ import annotations

import pytest

from dragoman.launch.events import Slot
from dragoman.launch.watch import LEAST_STEP_SECONDS, OTHER_SECONDS, STEP_FACTOR, ProgressWatch
from dragoman.sync.silence import SILENT_SECONDS

SLOW = 2 * LEAST_STEP_SECONDS / STEP_FACTOR  # a step of this many seconds may take longer than the least


def watched(*ends: float, activity: str = "step") -> ProgressWatch:
    """A watch of a rank that was at step 0, 1, ... at these moments."""
    watch = ProgressWatch()
    for step, now in enumerate(ends):
        watch.note({"step": step, "activity": activity}, now)
    return watch


def slot(*, moved: float = 0.0, heard: float = 0.0, activity: str = "step") -> Slot:
    return Slot(0, 0, at={"step": 1, "activity": activity}, moved=moved, heard=heard)


def test_before_the_first_step_there_is_time_to_start() -> None:
    assert watched().limit("step") == watched(0.0).limit("step") == OTHER_SECONDS


def test_quick_steps_may_take_a_minute() -> None:
    assert watched(0.0, 1.0, 2.0).limit("step") == LEAST_STEP_SECONDS


def test_the_limit_follows_the_slowest_of_the_recent_steps() -> None:
    assert watched(0.0, 1.0, 1.0 + SLOW, 2.0 + SLOW).limit("step") == STEP_FACTOR * SLOW
    later = [1.0 + SLOW + number for number in range(60)]
    assert watched(0.0, 1.0, *later).limit("step") == LEAST_STEP_SECONDS


def test_several_steps_between_two_messages_share_the_time() -> None:
    watch = watched(0.0, 1.0)
    watch.note({"step": 1 + 4, "activity": "step"}, 1.0 + 4 * SLOW)
    assert watch.limit("step") == pytest.approx(STEP_FACTOR * SLOW)


def test_evaluations_and_checkpoints_have_a_time_of_their_own_and_are_none_of_a_step() -> None:
    watch = watched(0.0, 1.0)
    assert watch.limit("evaluation") == watch.limit("checkpoint") == OTHER_SECONDS
    assert watched(0.0, 500.0, activity="evaluation").limit("step") == OTHER_SECONDS


def test_an_evaluation_between_two_steps_is_none_of_them() -> None:
    watch = watched(0.0, 1.0)
    watch.note({"step": 1, "activity": "evaluation"}, 1.1)
    watch.note({"step": 1, "activity": "step"}, 300.0)
    watch.note({"step": 2, "activity": "step"}, 301.0)
    assert watch.limit("step") == LEAST_STEP_SECONDS
    watch.note({"step": 3, "activity": "step"}, 301.0 + SLOW)
    assert watch.limit("step") == pytest.approx(STEP_FACTOR * SLOW)


def test_the_time_between_two_worlds_is_none_of_a_step() -> None:
    watch = watched(0.0, 1.0)
    watch.forget()
    watch.note({"step": 1, "activity": "starting"}, 2.0)
    watch.note({"step": 1, "activity": "step"}, 400.0)
    watch.note({"step": 2, "activity": "step"}, 401.0)
    assert watch.limit("step") == LEAST_STEP_SECONDS


def test_another_ranks_message_on_the_same_step_is_no_progress() -> None:
    watch = watched(0.0, 1.0)
    watch.note({"step": 1, "activity": "step"}, 1.5)
    watch.note({"step": 0, "activity": "step"}, 1.6)
    watch.note({"step": 2, "activity": "step"}, 1.0 + SLOW)
    assert watch.limit("step") == pytest.approx(STEP_FACTOR * SLOW)


def test_a_rank_is_silent_if_nothing_comes_from_it() -> None:
    now = 100.0
    silent, heard = slot(heard=now - SILENT_SECONDS - 1), slot(heard=now - SILENT_SECONDS + 1)
    assert ProgressWatch.silent([silent, heard], now) == [silent]


def test_ranks_are_stuck_once_none_of_them_moves() -> None:
    watch, now = watched(0.0, 1.0), 1000.0
    stands, moves = slot(moved=now - LEAST_STEP_SECONDS - 1), slot(moved=now - 1)
    assert watch.is_stuck([stands, stands], now)
    assert not watch.is_stuck([stands, moves], now)
    evaluates = slot(moved=now - LEAST_STEP_SECONDS - 1, activity="evaluation")
    assert not watch.is_stuck([stands, evaluates], now)
