"""explain/jumps.py: a clock that somebody set is told with the first three times."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.explain import jumps
from dragoman.measure.records import Attempt, Records, RunFacts


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ([-60.5], "set 60.5 s back; "),
        ([60.5, -70.5], "set 2 times: 60.5 s forward and 70.5 s back; "),
        ([1.5, 2.5, 3.5], "set 3 times: 1.5 s forward, 2.5 s forward and 3.5 s forward; "),
        ([1.5, 2.5, 3.5, 4.5], "3.5 s forward, ...; "),
    ],
)
def test_each_way_is_reported_up_to_three(seconds: list[float], words: str) -> None:
    assert words in jumps.sentence(seconds)
    assert jumps.sentence([]) == ""


def attempt(number: int, started: float, ended: float | None = None, offset: float | None = None) -> Attempt:
    return Attempt(number=number, started=started, first_step=1, ranks=1, ended=ended, clock_offset=offset)


def of(attempts: list[Attempt], ended: list[float], numbers: list[float]) -> Records:
    steps = {"ended": np.array(ended), "seconds": np.ones(len(ended)), "attempt": np.array(numbers)}
    return Records(RunFacts(), attempts, steps=steps)


def test_times_that_go_back_betray_by_how_much() -> None:
    """The step took a second, and its end was written 99 seconds before that of the step before."""
    records = of([attempt(1, 1000.0)], [1001.0, 1002.0, 903.0, 904.0], [1, 1, 1, 1])
    assert jumps.inferred(records) == pytest.approx([-100.0])


def test_an_attempt_that_starts_before_the_last_one_ended_betrays_it_too() -> None:
    records = of([attempt(1, 1000.0, 1002.0), attempt(2, 802.0)], [1001.0, 803.0], [1, 2])
    assert jumps.inferred(records) == pytest.approx([-200.0])


def test_an_end_before_the_last_step_betrays_it_too() -> None:
    records = of([attempt(1, 1000.0, ended=951.0)], [1001.0], [1])
    assert jumps.inferred(records) == pytest.approx([-50.0])


def test_times_by_a_clock_that_cannot_be_set_betray_nothing() -> None:
    records = of([attempt(1, 1000.0, offset=5.0)], [1001.0, 901.0], [1, 1])
    assert jumps.inferred(records) == []
