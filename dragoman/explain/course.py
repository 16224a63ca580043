"""The course of the learning rate: where a run stands on it, and where twice the steps would take it.

The number of steps says little about progress while the rate changes. How much a run learns depends on the
sum of its rates, and a falling rate removes the noise that a high one leaves in the weights. With these two
numbers, sum and rate, the loss curve of one schedule predicts that of another (Tissue et al. 2024, Luo et
al. 2025). Together they are a place on the course.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from dragoman.config import Train
from dragoman.measure.records import Records
from dragoman.schedule import learning_rate

FALLS_TO_NOTHING = ("linear", "cosine")
RUN_DOWN = 0.02  # share of the peak at which a rate no longer moves the weights
PLACES = 2_000  # points at which a planned rate is computed; a plan may have a billion steps

# What "twice the steps" means: more steps of the same run, the rest of its plan or, where the rate has run
# down, a new run with twice the steps and a schedule twice as long.
Way = Literal["more", "finish", "anew"]


@dataclass(frozen=True)
class Schedule:
    """The learning rate that a run's settings plan."""

    settings: Train
    width: int  # of the model; 0 where the schedule does not depend on it

    def rates(self, steps: Iterable[float]) -> np.ndarray:
        """Returns the rate of each of these steps, which count from 1."""
        return np.array([learning_rate(max(0, int(step) - 1), self.settings, self.width) for step in steps])


@dataclass(frozen=True)
class Place:
    """A place on a course; several places if the values are arrays."""

    area: Any  # the sum of rates so far, in steps at the peak rate
    rate: Any  # as a share of the peak


@dataclass(frozen=True)
class Course:
    """The course of a run that has reached step `last`."""

    last: int
    planned_steps: int | None  # None where the plan is not known
    way: Way
    target_step: int  # the last of twice the steps
    target: Place
    _steps: np.ndarray
    _rates: np.ndarray  # shares of the peak
    _areas: np.ndarray

    @property
    def rate(self) -> float:
        return float(self.at(np.array([self.last])).rate[0])

    @property
    def is_known(self) -> bool:
        """Whether it rests on recorded rates or a plan, rather than on the assumption of a steady rate."""
        return self.planned_steps is not None or len(self._steps) > 2

    @property
    def is_rising(self) -> bool:
        """Whether the rate is still warming up."""
        return self.rate < 1 and bool(
            self._rates[self._steps <= self.last].argmax() == (self._steps <= self.last).sum() - 1
        )

    @property
    def is_unfinished(self) -> bool:
        return self.planned_steps is not None and self.last < self.planned_steps

    def at(self, steps: np.ndarray) -> Place:
        return Place(np.interp(steps, self._steps, self._areas), np.interp(steps, self._steps, self._rates))


def steady(last: float) -> Course:
    """Returns a course with a constant rate, for runs whose rate is not known."""
    steps = np.array([0.0, 2 * last])
    target = Place(2 * last, 1.0)
    return Course(int(last), None, "more", int(2 * last), target, steps, np.ones(2), steps)


def course(records: Records) -> Course | None:
    """Returns the run's course, or None if it has neither steps nor evaluations."""
    recorded = records.steps["step"]
    recorded = recorded[np.isfinite(recorded)]
    last = int(max([recorded.max(initial=0), *(row.step for row in records.evaluations)]))
    if last < 1:
        return None
    plan = planned(records.facts.settings)
    applied_at, applied = _applied(records)
    if plan is None and not len(applied):
        return steady(last)
    if plan is None:
        return _without_plan(last, applied_at, applied)
    steps_planned, falls = plan.settings.steps, plan.settings.schedule in FALLS_TO_NOTHING
    ahead_at, ahead = _rates(plan, 2 * last)
    now = float(np.interp(last, ahead_at, ahead))
    has_run_down = falls and (last >= steps_planned or now <= RUN_DOWN * ahead.max())
    if len(applied):  # the applied rates, then the planned ones
        later = ahead_at > applied_at[-1]
        steps = np.concatenate((applied_at, ahead_at[later]))
        rates = np.concatenate((applied, ahead[later]))
    else:
        steps, rates = ahead_at, ahead
    if has_run_down:
        doubled = replace(plan, settings=plan.settings.model_copy(update={"steps": 2 * last}))
        longer_at, longer = _rates(doubled, 2 * last)
        end = Place(_sums(longer_at, longer)[-1], longer[-1])
        return _course(last, steps_planned, "anew", 2 * last, steps, rates, end)
    finish = falls and steps_planned <= 2 * last
    target_step = steps_planned if finish else 2 * last
    return _course(last, steps_planned, "finish" if finish else "more", target_step, steps, rates)


def planned(settings: Mapping[str, Any]) -> Schedule | None:
    """Returns the schedule of these settings, or None if one is missing or they are not ours."""
    needed = ("train.schedule", "train.rate", "train.warmup_steps", "train.steps")
    width = settings.get("model.width")
    if not isinstance(width, int) or width < 1:  # only one schedule uses it
        width = 0
    if not all(name in settings for name in needed) or (
        settings["train.schedule"] == "transformer" and not width
    ):
        return None
    try:
        known = {name.removeprefix("train."): settings[name] for name in needed}
        return Schedule(Train(**known, fitted_at=settings.get("train.fitted_at", 0)), width)
    except ValidationError:
        return None


def _course(
    last: int,
    planned_steps: int | None,
    way: Way,
    target_step: int,
    steps: np.ndarray,
    rates: np.ndarray,
    target: Place | None = None,
) -> Course:
    """Builds the course in units of the highest rate between the first step and the target."""
    peak = rates[steps <= target_step].max()
    areas = _sums(steps, rates)
    if target is None:
        target = Place(np.interp(target_step, steps, areas), np.interp(target_step, steps, rates))
    target = Place(float(target.area / peak), float(target.rate / peak))
    return Course(last, planned_steps, way, target_step, target, steps, rates / peak, areas / peak)


def _without_plan(last: int, steps: np.ndarray, rates: np.ndarray) -> Course:
    """The course of another program's run, whose plan is not known; its rates show if they have run down."""
    way: Way = "anew" if rates[-1] <= RUN_DOWN * rates.max() else "more"
    area = _sums(steps, rates)[-1]
    later = 2 * area if way == "anew" else area + last * rates[-1]
    steps = np.concatenate((steps, [2.0 * last]))
    rates = np.concatenate((rates, rates[-1:]))
    return _course(last, None, way, 2 * last, steps, rates, Place(later, rates[-1]))


def _applied(records: Records) -> tuple[np.ndarray, np.ndarray]:
    """Returns steps and the rate each used; empty arrays if no rate was ever above 0."""
    steps, rates = records.steps["step"], records.steps["learning_rate"]
    known = np.isfinite(steps) & np.isfinite(rates) & (steps > 0)
    steps, first = np.unique(steps[known], return_index=True)
    rates = rates[known][first]
    return (steps, rates) if len(rates) and rates.max() > 0 and rates.min() >= 0 else (steps[:0], rates[:0])


def _rates(plan: Schedule, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns steps from 1 on and the planned rate of each."""
    corners = [step for step in (1, plan.settings.warmup_steps, plan.settings.steps) if 1 <= step <= last]
    steps = np.unique(np.concatenate((np.linspace(1, last, PLACES).astype(np.int64), corners)))
    return steps.astype(float), plan.rates(steps)


def _sums(steps: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Returns, for each step, the sum of rates up to it; steps before the first count as like the first."""
    between = np.diff(steps) * (rates[1:] + rates[:-1]) / 2
    return steps[0] * rates[0] + np.concatenate(([0.0], np.cumsum(between)))
