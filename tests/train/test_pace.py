"""How fast a run goes, and how long the rest takes."""

import pytest

from dragoman.config import Training
from dragoman.train import pace as pace_module
from dragoman.train.pace import AttemptPace, Left
from dragoman.train.state import State, StepOutcome
from tests.train.test_stopping import NOTHING

OUTCOME = StepOutcome(2.0, 1_000, 1.0, 0.1, is_bad=False, stop_wanted=False)


class Clock:
    """Time that passes when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now = 100.0
        monkeypatch.setattr(pace_module.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def run(clock: Clock, pace: AttemptPace, steps: int, seconds: float = 0.5, between: float = 0.0) -> None:
    for _ in range(steps):
        clock.now += seconds + between
        pace.step(OUTCOME, seconds)


def evaluated(clock: Clock, pace: AttemptPace, seconds: float) -> None:
    clock.now += seconds
    pace.evaluation(seconds)


def left(pace: AttemptPace, step: int, steps: int = 100, every: int = 20) -> Left:
    state = State(Training.model_validate({"train": {"steps": steps}}), NOTHING, NOTHING, step=step)
    return Left.of(state, pace, every)


def test_speed_is_that_of_steps_whatever_comes_between_them(clock: Clock) -> None:
    pace = AttemptPace()
    run(clock, pace, 10, between=0.1)
    evaluated(clock, pace, 30.0)
    run(clock, pace, 10)
    assert pace.interval() == (2.0, 2_000.0)


def test_what_is_left_counts_steps_what_is_between_them_and_evaluations(clock: Clock) -> None:
    pace = AttemptPace()
    run(clock, pace, 1, seconds=9.0)  # the first one is not typical
    run(clock, pace, 10, between=0.1)
    before = left(pace, step=11)
    assert before.seconds == pytest.approx(89 * 0.6)
    assert (before.evaluations, before.seconds_per_evaluation) == (5, None)
    evaluated(clock, pace, 8.0)
    after = left(pace, step=20)
    assert after.seconds == pytest.approx(80 * 0.6 + 4 * 8.0)


@pytest.mark.parametrize(
    ("step", "evaluations"), [(0, 5), (19, 5), (20, 4), (99, 1), (100, 0), (101, 0), (79, 2)]
)
def test_every_evaluation_to_come_is_counted(clock: Clock, step: int, evaluations: int) -> None:
    assert left(AttemptPace(), step).evaluations == evaluations


def test_the_last_step_is_evaluated_also_between_two(clock: Clock) -> None:
    assert left(AttemptPace(), step=80, steps=90).evaluations == 1


@pytest.mark.parametrize(
    ("steps", "seconds", "is_settled"), [(1, 90.0, False), (2, 1.0, False), (6, 1.0, True), (2, 90.0, True)]
)
def test_few_steps_tell_only_if_they_are_long(
    clock: Clock, steps: int, seconds: float, is_settled: bool
) -> None:
    pace = AttemptPace()
    run(clock, pace, steps, seconds)
    assert left(pace, steps).is_settled is is_settled
