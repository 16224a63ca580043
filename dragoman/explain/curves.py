"""Saturating curves through noisy points, and what they say about twice the steps, with an interval.

    value = limit + fall x g(step),   g(step) = (step / first)^-c   or   exp(-(step - first) / tau)

For each c and tau on a grid, limit and fall come from linear least squares; the best of all is the fit. Two
families, because points alone seldom tell them apart, and they disagree about what is still to come: the
interval, from fits to the curve with fresh noise on it, has both in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST_POINTS = 5  # a curve has three numbers; two more leave something to judge the noise by
INTERVAL = (5.0, 95.0)  # percentiles: a 90 % interval
RESAMPLES = 300
EXPONENTS = np.geomspace(0.1, 3.0, 150)
TIMES = np.geomspace(0.05, 3.0, 150)  # tau, in lengths of the run
LEAST_DOUBT = 0.15  # of the change, either way: points never prove that learning follows such a curve
# Learning begins slowly (warm-up) and a saturating curve does not. Points before this share of the way from
# the first value to the best are left out, and so are those in the first tenth of the run.
BEGUN = 0.2


@dataclass(frozen=True)
class Extrapolation:
    """A fit, and the change from the last step to twice as many: negative for a loss that still falls."""

    change: float
    low: float
    high: float
    noise: float  # standard deviation of one point about the curve
    limit: float
    curve: list[tuple[float, float]]  # from the first point used to twice the last step
    points: int


def extrapolate(
    steps: np.ndarray,
    values: np.ndarray,
    rises: bool,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    seed: int = 0,
) -> Extrapolation | None:
    """None with too few points. `rises` is the sign of learning; limits outside `bounds` are not believed."""
    steps, values = _relevant(steps, values, rises)
    if len(values) < LEAST_POINTS:
        return None
    basis = _Basis(steps)
    (limit, fall, member), fitted = basis.fit(values[None], rises, bounds)
    spread = values - fitted[0]
    freedom = len(values) - 3
    noise = float(np.sqrt((spread**2).sum() / freedom))
    random = np.random.default_rng(seed)
    # Few points say little about their own noise: it is drawn from what they leave possible.
    scale = noise * np.sqrt(freedom / random.chisquare(freedom, (RESAMPLES, 1)))
    again = fitted[0] + scale * random.standard_normal((RESAMPLES, len(values)))
    (_, falls, members), _ = basis.fit(again, rises, bounds)
    now, later = basis.at(steps[-1]), basis.at(2 * steps[-1])
    low, high = np.percentile(falls * (later - now)[members], INTERVAL)
    change = float(fall[0] * (later - now)[member[0]])
    shown = np.geomspace(steps[0], 2 * steps[-1], 40)
    curve = [(float(x), float(limit[0] + fall[0] * basis.at(x)[member[0]])) for x in shown]
    doubt = LEAST_DOUBT * abs(change)
    return Extrapolation(
        change=change,
        low=min(float(low), change - doubt),
        high=max(float(high), change + doubt),
        noise=noise,
        limit=float(limit[0]),
        curve=curve,
        points=len(values),
    )


class _Basis:
    """Every g of the grid, at the steps of the points."""

    def __init__(self, steps: np.ndarray):
        self._first, self._last = steps[0], steps[-1]
        self._shapes = np.stack([self.at(step) for step in steps], 1)  # members x points
        self._mean = self._shapes.mean(1, keepdims=True)
        self._centred = self._shapes - self._mean
        self._squares = (self._centred**2).sum(1)

    def at(self, step: float) -> np.ndarray:
        """Every member's g at one step."""
        power = (step / self._first) ** -EXPONENTS
        return np.concatenate((power, np.exp(-(step - self._first) / (TIMES * self._last))))

    def fit(
        self, values: np.ndarray, rises: bool, bounds: tuple[float, float]
    ) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """Rows of values -> (limit, fall, member) of the best fit of each row, and the fitted rows."""
        level = values.mean(1, keepdims=True)
        fall = (values - level) @ self._centred.T / self._squares  # rows x members
        fall = np.minimum(fall, 0.0) if rises else np.maximum(fall, 0.0)
        limit = level - fall * self._mean.T
        # What a fit leaves unexplained, less the same constant for every member.
        left = fall**2 * self._squares - 2 * fall * ((values - level) @ self._centred.T)
        left[(limit < bounds[0]) | (limit > bounds[1])] = np.inf
        member = left.argmin(1)
        row = np.arange(len(values))
        chosen = limit[row, member], fall[row, member], member
        return chosen, chosen[0][:, None] + chosen[1][:, None] * self._shapes[member]


def _relevant(steps: np.ndarray, values: np.ndarray, rises: bool) -> tuple[np.ndarray, np.ndarray]:
    known = np.isfinite(steps) & np.isfinite(values) & (steps > 0)
    steps, first = np.unique(steps[known], return_index=True)
    values = values[known][first]
    if len(values) <= LEAST_POINTS:
        return steps, values
    gone = (values - values[0]) * (1 if rises else -1)
    begun = int(np.argmax(gone >= BEGUN * gone.max()))
    begun = max(begun, int(np.searchsorted(steps, steps[-1] / 10)))
    start = min(begun, len(values) - LEAST_POINTS)
    return steps[start:], values[start:]


def noise_of(values: np.ndarray) -> float:
    """Standard deviation of points about the smooth curve they follow, from second differences."""
    if len(values) < 3:
        return 0.0
    return float(np.median(np.abs(np.diff(values, 2))) / 0.6745 / np.sqrt(6))
