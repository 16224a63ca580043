"""Fits a run to a time: `train.minutes` decides over steps, warm-up, evaluations and checkpoints.

The first steps are made with the settings as they are, which hardly matters while the learning rate is small,
and are timed. Then rank 0 chooses, all ranks hear it, and it stands in the run's config: a run that continues
keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from dragoman import format_units
from dragoman.config import Training
from dragoman.measure import clock
from dragoman.sync.agree import decided_by_main
from dragoman.sync.world import World
from dragoman.train.evaluation import Evaluator
from dragoman.train.state import State

TIMED_STEPS = 10
_RESERVE = 0.05  # of the time: paces vary, and checkpoints are written
_END_SECONDS = 3.0  # the last checkpoint and the last records
_BETWEEN_STEPS = 1.02  # times the seconds of steps
_EVALUATION_SHARE = 0.15  # of the time, at most, but one evaluation there is
_MOST_EVALUATIONS = 10
# What is chosen, by section.
_CHOSEN = {
    "train": ("steps", "warmup_steps", "rate", "fitted_at"),
    "evaluate": ("every",),
    "checkpoint": ("every",),
}


class Costs(NamedTuple):
    """Seconds of one."""

    step: float
    evaluation: float


class Fitting:
    """Nothing to fit."""

    def after_step(self, state: State, seconds: float) -> None:
        """Collective at the one step where the choice is made."""


class TimedFitting(Fitting):
    """Makes the choice after some steps of this attempt."""

    def __init__(
        self, world: World, evaluator: Evaluator, began: float, tell: Callable[[Training, Costs], None]
    ):
        """`began` is a reading of the clock; `tell` is called on every rank."""
        self._world = world
        self._evaluator = evaluator
        self._began = began
        self._tell = tell
        self._seconds: list[float] = []

    def after_step(self, state: State, seconds: float) -> None:
        if state.config.train.fitted_at:
            return
        self._seconds.append(seconds)
        if len(self._seconds) < TIMED_STEPS:
            return
        step_seconds = median(self._seconds[1:])  # the first one is not typical
        costs = Costs(step_seconds, self._evaluator.expected_seconds(state, step_seconds))
        elapsed = clock.seconds() - self._began
        chosen = fit(state.config, state.step, elapsed, costs)
        # Collective: clocks differ, rank 0's counts.
        heard = decided_by_main(self._world, chosen.model_dump_json())
        state.config = Training.model_validate_json(heard)
        self._tell(state.config, costs)


def build(
    settings: Training, evaluator: Evaluator, world: World, tell: Callable[[Training, Costs], None]
) -> Fitting:
    """Off unless `train.minutes` asks for it and the run has not chosen yet."""
    is_wanted = settings.train.minutes and not settings.train.fitted_at
    return TimedFitting(world, evaluator, clock.process_began(), tell) if is_wanted else Fitting()


def fit(settings: Training, step: int, elapsed_seconds: float, costs: Costs) -> Training:
    """The settings with which a run that is at this step ends in time."""
    given = settings.train
    left = given.minutes * 60 * (1 - _RESERVE) - elapsed_seconds - _END_SECONDS
    affordable = int(_EVALUATION_SHARE * max(0.0, left) / costs.evaluation)
    evaluations = max(1, min(_MOST_EVALUATIONS, affordable))
    for_steps = left - evaluations * costs.evaluation
    steps = step + max(1, int(for_steps / (costs.step * _BETWEEN_STEPS)))
    warmup = min(round(given.warmup_steps * steps / given.steps), steps // 2)
    # The peak of this schedule hangs on the warm-up; it stays.
    is_bound = given.schedule == "transformer" and given.warmup_steps and warmup
    rate = given.rate * (warmup / given.warmup_steps) ** 0.5 if is_bound else given.rate
    every = -(-steps // evaluations)
    return _with(
        settings,
        train={"steps": steps, "warmup_steps": warmup, "rate": rate, "fitted_at": step},
        evaluate={"every": every},
        checkpoint={"every": every},
    )


def kept(settings: Training, before: Training) -> Training:
    """The settings with what the run has chosen before for the same time."""
    is_same = before.train.fitted_at > 0 and before.train.minutes == settings.train.minutes
    if not settings.train.minutes or not is_same:
        return settings
    chosen = {
        section: {name: getattr(getattr(before, section), name) for name in names}
        for section, names in _CHOSEN.items()
    }
    return _with(settings, **chosen)


def lines(settings: Training, costs: Costs) -> Sequence[str]:
    """What was chosen, for people."""
    train, every = settings.train, settings.evaluate.every
    evaluations = -(-train.steps // every)
    said = [
        f"Fitted to {train.minutes:g} min: {train.steps:,} steps at {format_units.seconds(costs.step)}, "
        f"{train.warmup_steps:,} of them warm-up; an evaluation every {every:,} steps, {evaluations} in all, "
        f"at about {format_units.seconds(costs.evaluation)}"
    ]
    if train.steps < 10 * TIMED_STEPS:
        said.append(
            f"warning: {train.steps:,} steps teach a model little; give more time, a smaller model or more "
            "--workers"
        )
    return said


def _with(settings: Training, **changes: dict[str, object]) -> Training:
    """A copy in which these settings of these sections are others."""
    sections = {
        section: getattr(settings, section).model_copy(update=values) for section, values in changes.items()
    }
    return settings.model_copy(update=sections)
