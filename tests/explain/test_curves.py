"""explain/curves.py: the interval holds the truth for curves that are known."""

import numpy as np
import pytest

from dragoman.explain.course import Course, Place
from dragoman.explain.curves import extrapolate, noise_of

CURVES = {
    "power": lambda step: 1.5 + 3 * (step / 1000) ** -0.5,
    "exponential": lambda step: 1.5 + 3 * np.exp(-step / 4000),
    "flat": lambda step: 2.0 + 0 * step,
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("points", [6, 12, 30])
def test_interval_covers_the_truth(name: str, points: int) -> None:
    curve, random = CURVES[name], np.random.default_rng(7)
    steps = 20_000 * np.arange(1, points + 1) / points
    truth = curve(40_000.0) - curve(20_000.0)
    covered = 0
    for _ in range(40):
        values = curve(steps) + 0.01 * random.standard_normal(points)
        fit = extrapolate(steps, values, rises=False, bounds=(0, np.inf))
        assert fit is not None
        covered += fit.low - 1e-9 <= truth <= fit.high + 1e-9
    assert covered >= 30, f"a 90 % interval, {covered} of 40"


def test_rising_scores_are_fitted_too() -> None:
    steps = 1000.0 * np.arange(1, 21)
    fit = extrapolate(steps, 35 - 20 * (steps / 1000) ** -0.6, rises=True, bounds=(0, 100))
    assert fit is not None
    assert fit.change == pytest.approx(20 * (20**-0.6 - 40**-0.6), rel=0.05)
    assert fit.limit == pytest.approx(35, abs=0.5)
    assert fit.curve[-1][0] == pytest.approx(40_000)


def test_more_noise_makes_a_wider_interval() -> None:
    steps, random = 1000.0 * np.arange(1, 16), np.random.default_rng(1)
    noise = random.standard_normal(15)
    fits = [extrapolate(steps, CURVES["power"](steps) + s * noise, rises=False) for s in (0.002, 0.1)]
    assert fits[0] and fits[1]
    assert fits[1].high - fits[1].low > 2 * (fits[0].high - fits[0].low)


def test_slow_beginning_does_not_spoil_the_fit() -> None:
    steps = 500.0 * np.arange(1, 41)
    bleu = np.where(steps < 4000, 0.3, 30 - 30 * np.exp(-(steps - 4000) / 3000))
    fit = extrapolate(steps, bleu, rises=True, bounds=(0, 100))
    assert fit is not None
    assert 0 <= fit.change < 0.5


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_points_give_nothing(count: int) -> None:
    assert extrapolate(np.arange(1.0, count + 1), np.ones(count), rises=False) is None


def test_same_points_give_the_same_answer() -> None:
    steps = np.arange(1.0, 11)
    assert extrapolate(steps, steps**-0.5, rises=False) == extrapolate(steps, steps**-0.5, rises=False)


def test_noise_is_that_about_a_curve() -> None:
    random = np.random.default_rng(0)
    x = np.linspace(0, 1, 400)
    assert noise_of(5 * x**2 + 0.1 * random.standard_normal(400)) == pytest.approx(0.1, rel=0.2)


def test_evaluations_before_the_rate_left_zero_are_no_part_of_a_curve() -> None:
    steps, still = np.arange(1.0, 9.0), np.array([0.0, 16.0])
    rate_of_zero = Course(8, None, "more", 16, Place(0.0, 0.0), still, np.zeros(2), np.zeros(2))
    assert extrapolate(steps, 5.0 - 0.1 * steps, rises=False, course=rate_of_zero) is None


def test_noise_shows_in_three_values_and_not_in_two() -> None:
    assert noise_of(np.array([1.0, 2.0])) == 0
    assert noise_of(np.array([1.0, 2.0, 3.0])) == 0, "a straight line has none"
    assert noise_of(np.array([1.0, 2.0, 1.0])) == pytest.approx(2 / 0.6745 / 6**0.5)
    noise = np.random.default_rng(1).normal(0, 0.3, 4_000)
    assert noise_of(np.arange(4_000) + noise) == pytest.approx(0.3, rel=0.05)
