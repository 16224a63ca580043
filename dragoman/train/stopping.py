"""Whether to stop, and the reason as a value. Pure functions: every rank gets the same answer by itself."""

from __future__ import annotations

from enum import StrEnum

from dragoman.config import Train
from dragoman.train.state import State, StepOutcome


class StopReason(StrEnum):
    FINISHED = "finished"
    PATIENCE = "no improvement"
    STOPPED = "stopped"  # by a signal, or because a checkpoint could not be written
    DIVERGED = "diverged"
    REGROUPED = "regrouped"  # the run continues in another world: a host joins or leaves


def is_last(step: int, stop_wanted: bool, train: Train) -> bool:
    """Is this the last step of the attempt, whatever an evaluation says?"""
    return stop_wanted or step >= train.steps or step == train.stop_at


def before_first_step(state: State) -> StopReason | None:
    """Why there is no step to make, or None to begin."""
    return StopReason.FINISHED if state.step >= state.config.train.steps else after_evaluation(state)


def after_step(state: State, outcome: StepOutcome) -> StopReason | None:
    """Why training should stop now, or None to continue."""
    if state.bad_in_a_row >= state.config.train.most_bad_steps:
        return StopReason.DIVERGED
    if state.step >= state.config.train.steps:
        return StopReason.FINISHED
    return StopReason.STOPPED if is_last(state.step, outcome.stop_wanted, state.config.train) else None


def after_evaluation(state: State) -> StopReason | None:
    """Stops if the last `evaluate.patience` evaluations did not beat the best before them; 0 never stops.

    Evaluations made because the run was stopped do not count: it would end elsewhere than an unbroken one.
    """
    metric, patience = state.config.evaluate.metric, state.config.evaluate.patience
    goodness = [evaluation.goodness(metric) for evaluation in state.history if not evaluation.at_stop]
    if not patience or len(goodness) <= patience:
        return None
    return StopReason.PATIENCE if max(goodness[-patience:]) <= max(goodness[:-patience]) else None
