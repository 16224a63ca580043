"""The clock of a step."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.measure import phases as module
from dragoman.measure.phases import BETWEEN_STEPS, Phases
from dragoman.measure.records import PHASES


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    return now


def test_every_second_of_a_step_is_in_one_phase(clock: list[float]) -> None:
    phases = Phases()
    for name, seconds in (("data", 1), ("forward", 2), ("backward", 4), ("forward", 8), ("optimizer", 16)):
        phases.begin(name)
        clock[0] += seconds
    assert dict(zip(PHASES, phases.end_step(), strict=True)) == {
        "data": 1,
        "forward": 10,
        "backward": 4,
        "exchange": 0,
        "optimizer": 16,
    }


def test_time_between_steps_is_in_no_phase(clock: list[float]) -> None:
    phases = Phases()
    phases.begin("data")
    clock[0] += 1
    phases.pause()
    assert phases.current == BETWEEN_STEPS
    clock[0] += 100
    phases.begin("forward")
    clock[0] += 1
    assert phases.end_step().sum() == 2
    assert phases.step == 1


def test_exposed_time_moves_but_is_never_invented(clock: list[float]) -> None:
    phases = Phases()
    phases.begin("backward")
    clock[0] += 3
    phases.begin("optimizer")
    phases.move(1.0, "backward", "exchange")
    phases.move(50.0, "backward", "exchange")  # a clock that says more than there was
    phases.move(-5.0, "backward", "exchange")
    seconds = dict(zip(PHASES, phases.end_step(), strict=True))
    assert (seconds["backward"], seconds["exchange"]) == (0.0, 3.0)
    assert np.isclose(sum(seconds.values()), 3.0)
