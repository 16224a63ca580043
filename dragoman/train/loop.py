"""The training loop and nothing else."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dragoman.data.batches import Batches
from dragoman.measure.tensorboard import Curves
from dragoman.train import stopping
from dragoman.train.checkpoint import Saver
from dragoman.train.evaluation import Evaluator
from dragoman.train.interrupt import Interrupt
from dragoman.train.pace import Pace
from dragoman.train.state import State, StepOutcome
from dragoman.train.step import Stepper
from dragoman.train.stopping import StopReason
from dragoman.train.view import View


@dataclass(frozen=True)
class Run:
    """Everything a run works with. Saver, curves and view do nothing on ranks other than 0."""

    batches: Batches
    stepper: Stepper
    evaluator: Evaluator
    interrupt: Interrupt
    saver: Saver
    curves: Curves
    view: View


def train(state: State, run: Run) -> StopReason:
    """Steps until there is a reason to stop: the same one on every rank, at the same step."""
    config = state.config
    if state.step >= config.train.steps:
        return StopReason.FINISHED
    run.stepper.settle(next(run.batches.after(state.position)))
    pace = Pace()
    for batch in run.batches.after(state.position):
        began = time.monotonic()
        outcome = run.stepper.update(batch, stop_wanted=run.interrupt.wanted or run.saver.has_failed)
        state.advance(batch, outcome, time.monotonic() - began)
        _show(state, outcome, run, pace)
        reason = stopping.after_step(state, outcome)
        is_best = False
        if reason in (None, StopReason.FINISHED) and _due(config.evaluate.every, state, reason):
            is_best = _evaluate(state, run)
            reason = reason or stopping.after_evaluation(state)
        if reason != StopReason.DIVERGED and (is_best or _due(config.checkpoint.every, state, reason)):
            run.saver.save(state)
        if reason:
            return reason
    raise AssertionError("batches never end")


def _due(every: int, state: State, reason: StopReason | None) -> bool:
    return state.step % every == 0 or reason is not None


def _show(state: State, outcome: StepOutcome, run: Run, pace: Pace) -> None:
    pace.note(outcome)
    run.view.tick(state.step)
    if outcome.is_bad:
        run.view.say(f"step {state.step:,}: the gradient is not finite; the update was skipped")
    if state.step % state.config.measure.every == 0:
        loss, tokens_per_second = pace.interval()
        run.curves.step(state.step, loss, outcome.learning_rate, outcome.gradient_norm, tokens_per_second)
        seconds_left = pace.seconds_for(state.config.train.steps - state.step)
        run.view.step(state.step, loss, outcome, tokens_per_second, seconds_left)


def _evaluate(state: State, run: Run) -> bool:
    """Scores the model; is it the best so far?"""
    evaluation, samples = run.evaluator.evaluate(state)
    state.history.append(evaluation)
    is_best = state.best() is evaluation
    run.curves.evaluation(evaluation, samples)
    run.view.evaluation(evaluation, samples, is_best)
    return is_best
