"""The course of the learning rate: how far it has carried a run, and how far twice the steps would carry it.

Steps are a poor clock where the rate changes. What a run learns goes with the sum of its rates, and a falling
rate takes away the noise that it kept in the weights: that way the loss curves of one schedule foretell those
of another (Tissue et al. 2024, Luo et al. 2025). A place on the course is two numbers, the sum and the rate.
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
RUN_DOWN = 0.02  # of its peak: a rate that moves weights no longer
PLACES = 2_000  # at which a planned rate is computed; a plan may have a billion steps

# What twice the steps would be: more steps of the same run; its plan made to the end; or, where the rate has
# run down, a new run with twice the steps and a schedule twice as long.
Way = Literal["more", "finish", "anew"]


@dataclass(frozen=True)
class Schedule:
    """The learning rate as a run's settings plan it."""

    settings: Train
    width: int  # of the model; 0 where the schedule does not depend on it

    def rates(self, steps: Iterable[float]) -> np.ndarray:
        """What each of these steps uses; they count from 1."""
        return np.array([learning_rate(max(0, int(step) - 1), self.settings, self.width) for step in steps])


@dataclass(frozen=True)
class Place:
    """Somewhere on a course; several steps at once where they are arrays."""

    area: Any  # the sum of rates so far, in steps at the peak
    rate: Any  # as a share of the peak


@dataclass(frozen=True)
class Course:
    """Of a run that stands at step `last`."""

    last: int
    planned_steps: int | None  # None where nobody knows the plan
    way: Way
    target_step: int  # where twice the steps end
    target: Place
    _steps: np.ndarray
    _rates: np.ndarray  # shares of the peak
    _areas: np.ndarray

    @property
    def rate(self) -> float:
        return float(self.at(np.array([self.last])).rate[0])

    @property
    def is_known(self) -> bool:
        """Not one that was made up for want of rates and a plan."""
        return self.planned_steps is not None or len(self._steps) > 2

    @property
    def is_rising(self) -> bool:
        """Still in its warm-up."""
        return self.rate < 1 and bool(
            self._rates[self._steps <= self.last].argmax() == (self._steps <= self.last).sum() - 1
        )

    @property
    def is_unfinished(self) -> bool:
        return self.planned_steps is not None and self.last < self.planned_steps

    def at(self, steps: np.ndarray) -> Place:
        return Place(np.interp(steps, self._steps, self._areas), np.interp(steps, self._steps, self._rates))


def steady(last: float) -> Course:
    """A rate of which nothing is known may as well be constant: steps are the clock."""
    steps = np.array([0.0, 2 * last])
    target = Place(2 * last, 1.0)
    return Course(int(last), None, "more", int(2 * last), target, steps, np.ones(2), steps)


def course(records: Records) -> Course | None:
    """None for a run without steps and evaluations."""
    made = records.steps["step"]
    made = made[np.isfinite(made)]
    last = int(max([made.max(initial=0), *(row.step for row in records.evaluations)]))
    if last < 1:
        return None
    plan = planned(records.facts.settings)
    taken_at, taken = _taken(records)
    if plan is None and not len(taken):
        return steady(last)
    if plan is None:
        return _by_rates_alone(last, taken_at, taken)
    steps_planned, falls = plan.settings.steps, plan.settings.schedule in FALLS_TO_NOTHING
    ahead_at, ahead = _rates(plan, 2 * last)
    now = float(np.interp(last, ahead_at, ahead))
    has_run_down = falls and (last >= steps_planned or now <= RUN_DOWN * ahead.max())
    if len(taken):  # as it was applied, then as planned
        later = ahead_at > taken_at[-1]
        steps = np.concatenate((taken_at, ahead_at[later]))
        rates = np.concatenate((taken, ahead[later]))
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
    """The schedule of these settings, if they are all there and ours."""
    needed = ("train.schedule", "train.rate", "train.warmup_steps", "train.steps")
    width = settings.get("model.width")
    if not isinstance(width, int) or width < 1:  # only one schedule knows of it
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
    """In units of the highest rate there is between the first step and the target."""
    peak = rates[steps <= target_step].max()
    areas = _sums(steps, rates)
    if target is None:
        target = Place(np.interp(target_step, steps, areas), np.interp(target_step, steps, rates))
    target = Place(float(target.area / peak), float(target.rate / peak))
    return Course(last, planned_steps, way, target_step, target, steps, rates / peak, areas / peak)


def _by_rates_alone(last: int, steps: np.ndarray, rates: np.ndarray) -> Course:
    """Another program's run: what its rate was to do is not known, but where it has run down is seen."""
    way: Way = "anew" if rates[-1] <= RUN_DOWN * rates.max() else "more"
    area = _sums(steps, rates)[-1]
    later = 2 * area if way == "anew" else area + last * rates[-1]
    steps = np.concatenate((steps, [2.0 * last]))
    rates = np.concatenate((rates, rates[-1:]))
    return _course(last, None, way, 2 * last, steps, rates, Place(later, rates[-1]))


def _taken(records: Records) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the rate each used; nothing where no rate was ever above 0."""
    steps, rates = records.steps["step"], records.steps["learning_rate"]
    known = np.isfinite(steps) & np.isfinite(rates) & (steps > 0)
    steps, first = np.unique(steps[known], return_index=True)
    rates = rates[known][first]
    return (steps, rates) if len(rates) and rates.max() > 0 and rates.min() >= 0 else (steps[:0], rates[:0])


def _rates(plan: Schedule, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps from 1 on, and the planned rate of each."""
    corners = [step for step in (1, plan.settings.warmup_steps, plan.settings.steps) if 1 <= step <= last]
    steps = np.unique(np.concatenate((np.linspace(1, last, PLACES).astype(np.int64), corners)))
    return steps.astype(float), plan.rates(steps)


def _sums(steps: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Of the rates of all steps up to each: those before the first are taken to be like it."""
    between = np.diff(steps) * (rates[1:] + rates[:-1]) / 2
    return steps[0] * rates[0] + np.concatenate(([0.0], np.cumsum(between)))
