"""plan/estimate.py: intervals."""

import pytest

from dragoman.plan.estimate import Estimate, spread


def test_the_fastest_rate_takes_the_least_time() -> None:
    time = Estimate(4.0, 2.0, 8.0, "a table").inverse()
    assert (time.value, time.low, time.high, time.source) == (0.25, 0.125, 0.5, "a table")


def test_doubt_widens_both_ends_and_says_why() -> None:
    doubted = Estimate.within(10.0, 0.1, "measured").wider(0.5, "elsewhere")
    assert doubted.value == 10.0
    assert doubted.low == pytest.approx(10 / 1.1 / 1.5)
    assert doubted.high == pytest.approx(11 * 1.5)
    assert doubted.source == "measured; elsewhere"


def test_what_follows_is_computed_at_each_end() -> None:
    cause = Estimate(2.0, 1.0, 3.0)
    square = Estimate.of(lambda case: cause.at(case) ** 2)
    assert (square.low, square.value, square.high) == (1.0, 4.0, 9.0)


def test_the_spread_of_what_was_measured_leaves_out_its_extremes() -> None:
    assert spread([10.0] * 20) == 0
    assert spread([0.001, *[9.0] * 10, *[10.0] * 10, *[11.0] * 10, 1e6]) == pytest.approx(0.1)
