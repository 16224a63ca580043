"""Fits learning curves through noisy points and extrapolates them to twice the steps, with an interval.

    value = limit + fall x g(area) + cost x rate,   g = (area / first)^-c   or   exp(-(area - first) / tau)

Area is the sum of learning rates so far and rate is the present one (course.py). The last term is what a high
rate costs, and what it gives back once, however many steps follow, when it falls to zero. For every c, tau
and cost on a grid, linear least squares gives limit and fall. No member of the grid is chosen: each is
weighted by how well it fits. The interval covers the uncertainty about the member, its slope, the form of all
members, the two compared evaluations and, for a new run, the difference between two runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from dragoman.explain.course import Course, Place, steady

LEAST_POINTS = 4  # a curve has three parameters; a fourth point tells something about the noise
INTERVAL = (0.05, 0.95)  # a 90 % interval
EXPONENTS = np.geomspace(0.1, 2.5, 40)
TIMES = np.geomspace(0.05, 3.0, 30)  # tau, in lengths of the run
SHARES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0])  # a high rate's cost, in the points' range
STEADY = 1e-3  # a rate that varies by less costs the same everywhere
# Prior weight of the members: runs follow powers rather than exponentials, and flat powers rather than steep.
STEEP = 0.7
PRIOR = np.concatenate((5 * np.exp(-EXPONENTS / STEEP), np.ones(len(TIMES))))
TEMPER = 0.5  # weight of the points' evidence: their errors are correlated, as learning drifts off the curve
FREEDOM = 2.5  # parameters that a fit takes from the points: limit, fall, and part of a member
# Learning follows such curves only approximately. One standard deviation, as a share of a change (measured by
# benchmarks/convergence.py): small if little is still to come, larger if it is as much as was seen.
LEAST_DOUBT = 0.15
DOUBT_OF_MUCH = 0.5
# Learning starts slowly, and such a curve does not. Points before this share of the way from the first value
# to the best are left out, and so are those in the first tenth of the area.
BEGUN = 0.2
_NODES = np.array([NormalDist().inv_cdf((place + 0.5) / 12) for place in range(12)])


@dataclass(frozen=True)
class Draws:
    """A distribution, as values with weights."""

    values: np.ndarray
    weights: np.ndarray

    def at(self, *shares: float) -> list[float]:
        order = np.argsort(self.values)
        below = np.cumsum(self.weights[order])
        return [float(self.values[order][np.searchsorted(below, share * below[-1])]) for share in shares]

    def few(self) -> Draws:
        """Returns the same distribution as a hundred values of equal weight."""
        count = 100
        return Draws(np.array(self.at(*((np.arange(count) + 0.5) / count))), np.full(count, 1 / count))

    def blurred(self, deviations: np.ndarray | float) -> Draws:
        """Returns the distribution with normal noise added to each value."""
        spread = np.broadcast_to(deviations, self.values.shape)
        values = self.values[:, None] + spread[:, None] * _NODES
        return Draws(values.ravel(), np.repeat(self.weights / len(_NODES), len(_NODES)))


@dataclass(frozen=True)
class Extrapolation:
    """A fit, and the change from the last step to twice as many: negative for a falling loss."""

    change: float
    low: float
    high: float
    noise: float  # standard deviation of one point about the curve
    limit: float
    curve: list[tuple[float, float]]  # from the first point used to twice the last step
    points: int
    draws: Draws = field(compare=False, repr=False)


def extrapolate(
    steps: np.ndarray,
    values: np.ndarray,
    rises: bool,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    course: Course | None = None,
    least_noise: float = 0.0,
    run_noise: float = 0.0,
    floor: float = -np.inf,
) -> Extrapolation | None:
    """Fits the points and extrapolates them to twice the steps; None with too few points.

    `rises` says whether learning raises the values; limits outside `bounds` are rejected, and so are curves
    below `floor` at the target. `least_noise` is the noise of one evaluation, which few points may not show;
    `run_noise` is the difference between two runs with the same settings.
    """
    known = np.isfinite(steps) & np.isfinite(values) & (steps > 0)
    steps, first = np.unique(steps[known], return_index=True)
    values = values[known][first]
    course = course or steady(steps[-1] if len(steps) else 1.0)
    moved = course.at(steps).area > 0  # before, all rates were 0 and the weights those of the start
    steps, values = steps[moved], values[moved]
    if len(values) < LEAST_POINTS:
        return None
    start = _start(course.at(steps).area, values, rises)
    steps, values = steps[start:], values[start:]
    fits = _Fits(course.at(steps), course.target, values, rises, bounds, least_noise, floor)
    now = course.at(steps[-1])
    changes = fits.at(course.target) - fits.at(now)
    of_points = fits.deviation_of(now, course.target)
    seen = max(float(np.ptp(values)), 1e-12)
    of_form = (LEAST_DOUBT + DOUBT_OF_MUCH * np.minimum(1.0, np.abs(changes) / seen)) * changes
    deviations = np.sqrt(of_points**2 + of_form**2 + run_noise**2)
    draws = Draws(changes, fits.weights).blurred(deviations).few()
    low, change, high = draws.at(INTERVAL[0], 0.5, INTERVAL[1])
    shown = np.geomspace(steps[0], steps[-1], 30)
    curve = [(float(step), fits.mean_at(course.at(step))) for step in shown]
    if course.way == "more":
        shown = np.geomspace(steps[-1], course.target_step, 12)[1:]
        curve += [(float(step), fits.mean_at(course.at(step))) for step in shown]
    else:
        curve.append((float(course.target_step), curve[-1][1] + change))
    return Extrapolation(
        change=change,
        low=low,
        high=high,
        noise=float(fits.weights @ fits.noise),
        limit=float(fits.weights @ fits.limit),
        curve=curve,
        points=len(values),
        draws=draws,
    )


class _Fits:
    """Every member of the grid fitted through the points, with its weight."""

    def __init__(
        self,
        places: Place,
        target: Place,
        values: np.ndarray,
        rises: bool,
        bounds: tuple[float, float],
        least_noise: float,
        floor: float,
    ):
        self._first, self._last = places.area[0], places.area[-1]
        is_steady = bool(np.ptp([*places.rate, target.rate]) < STEADY)
        shares = SHARES[:1] if is_steady else SHARES
        costs = (-1.0 if rises else 1.0) * shares * (values.max() - values.min())
        shapes = self._shapes(places.area)  # members x points
        centred = shapes - shapes.mean(1, keepdims=True)
        squares = np.maximum((centred**2).sum(1), 1e-12)  # 0 if the rate was 0 from the first point on
        without = values - costs[:, None] * places.rate  # shares x points
        level = without.mean(1, keepdims=True)
        fall = (without - level) @ centred.T / squares  # shares x members
        fall = np.minimum(fall, 0.0) if rises else np.maximum(fall, 0.0)
        limit = level - fall * shapes.mean(1)
        left = ((without - level) ** 2).sum(1, keepdims=True)
        left = left + fall**2 * squares - 2 * fall * ((without - level) @ centred.T)
        count = len(values)
        tiny = 1e-12 * max(1.0, float(np.abs(values).max())) ** 2
        score = -0.5 * TEMPER * (count - 1) * np.log(np.maximum(left, 0.0) / count + least_noise**2 + tiny)
        score = score + np.log(PRIOR)
        foretold = limit + fall * self._shapes(target.area)[:, 0] + costs[:, None] * float(target.rate)
        score[(limit < bounds[0]) | (limit > bounds[1]) | (foretold < floor)] = -np.inf
        if np.isinf(score.max()):
            score[:] = 0.0
        weights = np.exp(score - score.max()).ravel()
        kept = weights > 1e-4 * weights.max()
        self.weights = weights[kept] / weights[kept].sum()
        self.limit, self._fall = limit.ravel()[kept], fall.ravel()[kept]
        self._cost = np.repeat(costs, len(shapes))[kept]
        self._member = np.tile(np.arange(len(shapes)), len(shares))[kept]
        self._squares = squares[self._member]
        lines = self.limit[:, None] + self._fall[:, None] * shapes[self._member]
        apart = values - lines - self._cost[:, None] * places.rate
        late = apart[:, count // 2 :]  # early points are noisier than later ones
        share = count / max(1.0, count - FREEDOM)
        self.noise = np.sqrt((late**2).mean(1) * share + least_noise**2)

    def _shapes(self, area: np.ndarray | float) -> np.ndarray:
        """Returns every g at these areas: members x areas."""
        area = np.atleast_1d(np.asarray(area, dtype=float))
        power = (area / self._first) ** -EXPONENTS[:, None]
        return np.concatenate((power, np.exp(-(area - self._first) / (TIMES[:, None] * self._last))))

    def _shape(self, place: Place) -> np.ndarray:
        """Returns g of each fit at one place."""
        return self._shapes(place.area)[self._member, 0]

    def at(self, place: Place) -> np.ndarray:
        """Returns each fit's value at one place."""
        return self.limit + self._fall * self._shape(place) + self._cost * float(place.rate)

    def mean_at(self, place: Place) -> float:
        return float(self.weights @ self.at(place))

    def deviation_of(self, now: Place, then: Place) -> np.ndarray:
        """Returns each fit's uncertainty of the change between two evaluations: their noise and its slope."""
        slope = (self._shape(then) - self._shape(now)) ** 2 / self._squares
        return self.noise * np.sqrt(slope + 2.0)


def _start(areas: np.ndarray, values: np.ndarray, rises: bool) -> int:
    """Returns the index of the first point that the curve is fitted to."""
    gone = (values - values[0]) * (1 if rises else -1)
    begun = int(np.argmax(gone >= BEGUN * gone.max()))
    begun = max(begun, int(np.searchsorted(areas, areas[-1] / 10)))
    return min(begun, len(values) - LEAST_POINTS)


def noise_of(values: np.ndarray) -> float:
    """Returns the standard deviation of points about the smooth curve they follow, by second differences."""
    if len(values) < 3:
        return 0.0
    return float(np.median(np.abs(np.diff(values, 2))) / 0.6745 / np.sqrt(6))
