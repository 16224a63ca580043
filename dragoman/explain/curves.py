"""Curves of learning through noisy points, and what they say about twice the steps, with an interval.

    value = limit + fall x g(area) + cost x rate,   g = (area / first)^-c   or   exp(-(area - first) / tau)

Area is the sum of learning rates so far, rate the present one (course.py). The last term is what a high rate
costs, and what a rate that falls to nothing gives back: once, whatever the number of steps. For every c, tau
and cost on a grid, limit and fall come from linear least squares. No member of the grid is chosen: each
counts by how well it fits. The interval holds the doubt about the member, its slope, the form of all of them,
the two evaluations that are compared and, where it would be another run, the difference between two runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from dragoman.explain.course import Course, Place, steady

LEAST_POINTS = 4  # a curve has three numbers, one more leaves something to judge the noise by
INTERVAL = (0.05, 0.95)  # a 90 % interval
EXPONENTS = np.geomspace(0.1, 2.5, 40)
TIMES = np.geomspace(0.05, 3.0, 30)  # tau, in lengths of the run
SHARES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0])  # of the points' range: a high rate's cost
STEADY = 1e-3  # a rate that varies by less costs the same everywhere
# How plausible members are before any point: runs follow powers rather than exponentials, and flat ones.
STEEP = 0.7
PRIOR = np.concatenate((5 * np.exp(-EXPONENTS / STEEP), np.ones(len(TIMES))))
TEMPER = 0.5  # of what points say: they err together, as learning leaves the curve for a while
FREEDOM = 2.5  # numbers that a fit takes from the points: limit, fall, and some of a member
# Learning follows such curves only so far. One standard deviation, as a share of a change (measured by
# benchmarks/convergence.py): small where little is still to come, more where it is as much as was seen.
LEAST_DOUBT = 0.08
DOUBT_OF_MUCH = 0.4
# Learning begins slowly and such a curve does not. Points before this share of the way from the first value
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
        """The same as a hundred values of equal weight."""
        count = 100
        return Draws(np.array(self.at(*((np.arange(count) + 0.5) / count))), np.full(count, 1 / count))

    def blurred(self, deviations: np.ndarray | float) -> Draws:
        """With normal doubt about each value."""
        spread = np.broadcast_to(deviations, self.values.shape)
        values = self.values[:, None] + spread[:, None] * _NODES
        return Draws(values.ravel(), np.repeat(self.weights / len(_NODES), len(_NODES)))


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
    """None with too few points. `rises` is the sign of learning; limits outside `bounds` are not believed.

    `least_noise` is that of one evaluation, which few points may hide; `run_noise` parts two runs alike.
    No curve is believed that is below `floor` at the target.
    """
    known = np.isfinite(steps) & np.isfinite(values) & (steps > 0)
    steps, first = np.unique(steps[known], return_index=True)
    values = values[known][first]
    if len(values) < LEAST_POINTS:
        return None
    course = course or steady(steps[-1])
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
    """Every member of the grid through the points, and how much each counts."""

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
        squares = np.maximum((centred**2).sum(1), 1e-12)  # 0 where the rate was 0 from the first point on
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
        late = apart[:, count // 2 :]  # early points are noisier than what is to come
        share = count / max(1.0, count - FREEDOM)
        self.noise = np.sqrt((late**2).mean(1) * share + least_noise**2)

    def _shapes(self, area: np.ndarray | float) -> np.ndarray:
        """Every g at places: members x places."""
        area = np.atleast_1d(np.asarray(area, dtype=float))
        power = (area / self._first) ** -EXPONENTS[:, None]
        return np.concatenate((power, np.exp(-(area - self._first) / (TIMES[:, None] * self._last))))

    def _shape(self, place: Place) -> np.ndarray:
        """Of each fit."""
        return self._shapes(place.area)[self._member, 0]

    def at(self, place: Place) -> np.ndarray:
        """What each fit says of one place."""
        return self.limit + self._fall * self._shape(place) + self._cost * float(place.rate)

    def mean_at(self, place: Place) -> float:
        return float(self.weights @ self.at(place))

    def deviation_of(self, now: Place, then: Place) -> np.ndarray:
        """Of a change between two evaluations, by each fit: of its slope, and of the two evaluations."""
        slope = (self._shape(then) - self._shape(now)) ** 2 / self._squares
        return self.noise * np.sqrt(slope + 2.0)


def _start(areas: np.ndarray, values: np.ndarray, rises: bool) -> int:
    """The first point of the curve."""
    gone = (values - values[0]) * (1 if rises else -1)
    begun = int(np.argmax(gone >= BEGUN * gone.max()))
    begun = max(begun, int(np.searchsorted(areas, areas[-1] / 10)))
    return min(begun, len(values) - LEAST_POINTS)


def noise_of(values: np.ndarray) -> float:
    """Standard deviation of points about the smooth curve they follow, from second differences."""
    if len(values) < 3:
        return 0.0
    return float(np.median(np.abs(np.diff(values, 2))) / 0.6745 / np.sqrt(6))
