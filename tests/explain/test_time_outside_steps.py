"""explain/time_outside_steps.py: what evaluations cost, and checkpoints, also beside the steps."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain.time_outside_steps import (
    event_seconds,
    outside_advice,
    outside_seconds,
    slowed_by_writing,
)
from dragoman.measure.records import Event, Records, RunFacts


def beside(steps: int = 30, slow: int = 5, seconds: float = 1.5) -> Records:
    """Steps of a second, of which some take longer while a checkpoint is written."""
    each = np.ones(steps)
    each[10 : 10 + slow] = seconds
    ended = np.cumsum(each)
    writing = Event(time=10.0, attempt=1, step=10, kind="writing", seconds=slow * seconds)
    return Records(
        RunFacts(), steps={"ended": ended, "seconds": each, "attempt": np.ones(steps)}, events=[writing]
    )


def test_five_steps_beside_the_writing_tell_by_how_much_it_slows_them() -> None:
    assert slowed_by_writing(beside()) == pytest.approx(5 * 0.5)
    assert slowed_by_writing(beside(slow=4)) is None, "too few beside it"
    assert slowed_by_writing(beside(steps=30, slow=20)) == pytest.approx(20 * 0.5)
    assert slowed_by_writing(beside(steps=30, slow=16, seconds=0.9)) == 0, "faster is not slowed"


def test_a_step_less_than_half_beside_the_writing_is_neither_with_nor_without_it() -> None:
    records = beside(slow=6)
    records.events[0].time += 0.9  # past the middle of the first of them
    records.events[0].seconds -= 0.5  # before the middle of the one after the last
    assert slowed_by_writing(records) == pytest.approx(5 * 0.5)


def test_a_step_that_was_not_timed_says_nothing_of_writing() -> None:
    records = beside()
    records.steps["seconds"][20] = np.nan
    records.steps["ended"][22] = np.nan
    assert slowed_by_writing(records) == pytest.approx(5 * 0.5)


def test_events_without_seconds_are_left_out_of_the_sum() -> None:
    common = {"time": 0.0, "attempt": 1, "step": 1}
    kinds = [("evaluation", 2.0), ("evaluation", np.nan), ("evaluation", 3.0), ("checkpoint", 5.0)]
    events = [Event(kind=kind, seconds=seconds, **common) for kind, seconds in kinds]
    steps = {"seconds": np.array([10.0, np.nan, -1.0, 20.0])}
    records = Records(RunFacts(), steps=steps, events=events)
    assert event_seconds(records, "evaluation") == 5
    outside = outside_seconds(records)
    assert outside is not None and outside.training == 30
    assert outside.shares() == {"evaluation": 5 / 40, "checkpoint": 5 / 40}
    assert outside_seconds(Records(RunFacts(), steps=steps)) is None
    assert outside_seconds(Records(RunFacts(), events=events)) is None


def pausing(kind: str, count: int) -> Records:
    """Evaluations or checkpoints that take as long as the steps between them."""
    records = beside(steps=10 * count)
    records.events = [
        Event(time=0.0, attempt=1, step=10 * number, kind=kind, seconds=10.0)
        for number in range(1, count + 1)
    ]
    return records


@pytest.mark.parametrize(("kind", "fewest"), [("evaluation", 8), ("checkpoint", 4)])
def test_pauses_are_made_rarer_only_where_enough_of_them_are_left(kind: str, fewest: int) -> None:
    assert len(outside_advice(pausing(kind, fewest))) == 1
    assert outside_advice(pausing(kind, fewest - 1)) == []
