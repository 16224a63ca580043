"""The training loop and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.batches import Batches, Lookahead, StepBatch
from dragoman.launch.membership import Membership
from dragoman.measure import clock
from dragoman.measure.phases import Phases
from dragoman.measure.quality import Evaluation, Sample
from dragoman.measure.recorder import Recorder, StepRow
from dragoman.measure.tensorboard import Curves
from dragoman.train import stopping
from dragoman.train.counterfactual import Counterfactual
from dragoman.train.evaluation import Evaluator
from dragoman.train.fitting import Fitting
from dragoman.train.interrupt import Interrupt
from dragoman.train.pace import AttemptPace, Left
from dragoman.train.saver import Saver
from dragoman.train.state import State, StepOutcome
from dragoman.train.step import Stepper
from dragoman.train.stopping import StopReason
from dragoman.train.view import View

# The most an evaluation may take after Ctrl-C. torchrun kills its ranks 30 s later, and they must save too.
_STOP_SECONDS = 20.0


@dataclass(frozen=True)
class Run:
    """Everything the loop uses. Much of it does nothing on ranks other than 0; see train/outputs.py."""

    batches: Batches
    stepper: Stepper
    evaluator: Evaluator
    interrupt: Interrupt
    phases: Phases
    recorder: Recorder
    counterfactual: Counterfactual
    saver: Saver
    curves: Curves
    view: View
    membership: Membership = Membership()
    fitting: Fitting = Fitting()
    begins_learnt: bool = False  # begins with another model's weights, which may stay the best


def train(state: State, run: Run) -> StopReason:
    """Trains until there is a reason to stop, the same on every rank at the same step. Collective."""
    pace = AttemptPace()
    if reason := _settle_lost_step(state, run, pace) or stopping.before_first_step(state):  # collective
        return reason
    first = next(run.batches.after(state.position))
    run.stepper.settle(first)  # collective
    for line in run.stepper.fill_memory(first):  # collective
        run.view.say(line)
    run.recorder.started(state.step)
    if _needs_evaluation_first(state, run):
        _evaluate(state, run, pace)  # collective
        if state.step == 0 and state.is_among_the_best(state.history[-1]):
            _save(state, run)  # collective
        if reason := stopping.after_evaluation(state):
            return reason
    run.phases.begin("data")
    batches = Lookahead(run.batches.after(state.position))
    for batch in batches:
        run.membership.at(state.step, "step")
        run.counterfactual.before_step(batch)  # collective when due
        stop_wanted = run.interrupt.wanted or run.saver.has_failed
        regroup_wanted = run.membership.regroup_wanted
        outcome = run.stepper.update(  # collective
            batch, stop_wanted, batches.peek, regroup_wanted, run.membership.is_orphan
        )
        try:
            run.stepper.close_round()  # collective when due
        finally:  # a step whose round could not be closed is recorded too: it will not be made again
            phases = run.phases.end_step()
            state.seconds += float(phases.sum())
            run.recorder.step(_row(state, batch, outcome, phases, run.phases.counted))
        pace.step(outcome, float(phases.sum()))
        run.fitting.after_step(state, float(phases.sum()))  # collective when due
        run.counterfactual.after_step(state.step, phases)  # collective when due
        is_interval = state.step % state.config.measure.every == 0
        if is_interval:
            run.recorder.flush()  # collective
        _show(state, outcome, run, pace, is_interval)
        if reason := _settle(state, outcome, run, pace):  # collective when due
            return reason
        run.phases.begin("data")  # until the next batch is here
    raise AssertionError("batches never end")


def _settle(state: State, outcome: StepOutcome, run: Run, pace: AttemptPace) -> StopReason | None:
    """Makes the evaluation and the checkpoint that are due after a step; returns why to stop, or None.

    Collective when due.
    """
    reason = stopping.after_step(state, outcome)
    is_kept = False
    if reason in (None, StopReason.FINISHED) and _due(state.config.evaluate.every, state, run, reason):
        if not state.is_scored:  # as a step of a lost world may be
            _evaluate(state, run, pace)  # collective
        is_kept = state.is_among_the_best(state.history[-1])
        reason = reason or stopping.after_evaluation(state)
    if reason == StopReason.STOPPED:
        _evaluate_at_stop(state, run)  # collective
    if _is_worth_saving(state, reason) and (
        is_kept or _due(state.config.checkpoint.every, state, run, reason)
    ):
        _save(state, run)  # collective
    state.outcome = None
    return reason or (StopReason.REGROUPED if outcome.regroup_wanted else None)


def _settle_lost_step(state: State, run: Run, pace: AttemptPace) -> StopReason | None:
    """Completes the newest step if its world was lost before all that follows was done. Collective then."""
    run.stepper.close_round()  # collective when due
    run.phases.discard()
    if not state.outcome:
        return None
    outcome = state.outcome._replace(regroup_wanted=False)
    return _settle(state, outcome, run, pace)  # collective


def _is_worth_saving(state: State, reason: StopReason | None) -> bool:
    """False while steps are bad: the weights may be useless, and saving them would remove good ones."""
    return not state.bad_in_a_row or reason in (StopReason.FINISHED, StopReason.STOPPED)


def _due(every: int, state: State, run: Run, reason: StopReason | None) -> bool:
    return state.step % run.stepper.whole_rounds(every) == 0 or reason is not None


def _needs_evaluation_first(state: State, run: Run) -> bool:
    """Is an evaluation due before the first step of an attempt?

    A model that has learnt elsewhere is scored as it is. A run that was stopped at a step with an evaluation
    did not make it there, because stopping must not take long.
    """
    is_learnt = state.step > 0 or run.begins_learnt
    return is_learnt and not state.is_scored and _due(state.config.evaluate.every, state, run, None)


def _show(state: State, outcome: StepOutcome, run: Run, pace: AttemptPace, is_interval: bool) -> None:
    """Shows progress. Not collective: only rank 0 has a view."""
    left = Left.of(state, pace, run.stepper.whole_rounds(state.config.evaluate.every))
    run.view.tick(state.step, left)
    if outcome.is_bad:
        run.view.say(f"step {state.step:,}: the gradient is not finite; the update was skipped")
    if outcome.is_rescaled:
        run.view.say(f"step {state.step:,}: too large a gradient for fp16; skipped, with half the loss scale")
    if is_interval:
        loss, tokens_per_second = pace.interval()
        run.curves.step(state.step, loss, outcome.learning_rate, outcome.gradient_norm, tokens_per_second)
        for written in run.saver.take_written():
            run.recorder.event("writing", *written)
        run.view.step(state.step, loss, outcome, tokens_per_second, left)


def _evaluate(state: State, run: Run, pace: AttemptPace) -> None:
    """Scores the model. Collective."""
    began = clock.seconds()
    run.membership.at(state.step, "evaluation")
    with run.recorder.standing_still("evaluation", state.step):
        evaluation, samples = run.evaluator.evaluate(state)
        _note(evaluation, samples, state, run)
    pace.evaluation(clock.seconds() - began)


def _evaluate_at_stop(state: State, run: Run) -> None:
    """Scores the model after Ctrl-C, so that it can be `best`; gives up if that takes long. Collective."""
    if state.step == state.config.train.stop_at or state.is_scored:
        return
    began, usual = clock.seconds(), state.history[-1].seconds if state.history else 0.0

    def is_enough() -> bool:
        is_late = max(usual, clock.seconds() - began) > _STOP_SECONDS
        is_hurried = run.interrupt.is_hurried or run.membership.is_orphan
        return is_late or is_hurried or run.saver.has_failed

    if not is_enough():
        run.view.say("Stopping after a last evaluation. Press Ctrl-C again to skip it.")
    with run.recorder.standing_still("evaluation", state.step):
        if evaluated := run.evaluator.evaluate_until(is_enough, state):
            evaluation, samples = evaluated
            is_due = _due(state.config.evaluate.every, state, run, None)
            _note(evaluation.model_copy(update={"at_stop": not is_due}), samples, state, run)


def _note(evaluation: Evaluation, samples: Sequence[Sample], state: State, run: Run) -> None:
    run.recorder.evaluation(evaluation)
    state.history.append(evaluation)
    run.curves.evaluation(evaluation, samples)
    run.view.evaluation(evaluation, samples, is_best=state.best() is evaluation)


def _save(state: State, run: Run) -> None:
    """Begins to save a checkpoint. Collective, also for ranks with nothing to save."""
    run.membership.at(state.step, "checkpoint")
    with run.recorder.standing_still("checkpoint", state.step):
        run.stepper.note_loss_scale()
        run.saver.save(state)
    run.recorder.checkpoint_files(run.saver.files)


def _row(
    state: State, batch: StepBatch, outcome: StepOutcome, phases: np.ndarray, counted: np.ndarray
) -> StepRow:
    return StepRow(
        step=state.step,
        loss=outcome.loss,
        target_tokens=outcome.target_tokens,
        pairs=batch.pairs,
        learning_rate=outcome.learning_rate,
        gradient_norm=outcome.gradient_norm,
        is_bad=outcome.is_bad,
        is_rescaled=outcome.is_rescaled,
        ended=clock.seconds(),
        phases=phases,
        counted=counted,
    )
