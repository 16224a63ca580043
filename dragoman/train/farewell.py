"""The end of a run: the last writes, the closing lines, and the error of a run that failed."""

from __future__ import annotations

import shlex

from dragoman.errors import DragomanError
from dragoman.measure import clock
from dragoman.sync.agree import stop_all_if_one_failed
from dragoman.sync.world import World
from dragoman.train.job import TrainingJob
from dragoman.train.outputs import Outputs
from dragoman.train.state import State
from dragoman.train.stopping import StopReason
from dragoman.train.view import View


def end(
    job: TrainingJob, state: State, reason: StopReason, recorded: str, outputs: Outputs, world: World
) -> None:
    """Waits until everything is written and prints the closing lines; raises what went wrong. Collective.

    `recorded` is the reason in the records.
    """
    _complete(outputs, recorded, state.step, world)  # collective
    stop_all_if_one_failed(world, outputs.saver.failure)  # collective
    if reason == StopReason.REGROUPED:
        return
    _say_end(job, state, reason, outputs.view)
    if reason == StopReason.DIVERGED:  # every rank fails: one that ended well would wait for rank 0
        raise _diverged(state, job) if world.is_main else SystemExit(1)


def _complete(outputs: Outputs, reason: str, step: int, world: World) -> None:
    """Waits until the last checkpoint and the last rows are on disk. Collective."""
    saver, recorder = outputs.saver, outputs.recorder
    saver.wait()
    for written in saver.take_written():
        recorder.event("writing", *written)
    recorder.checkpoint_files(saver.files)
    # Collective: the records on a full disk may miss it, those on a second host have it.
    for failure in world.gather_text(saver.failure.what if saver.failure else ""):
        if failure:
            recorder.fault("disk_full", step, clock.seconds(), detail=failure)
    recorder.close(reason)  # collective
    if recorder.failure:
        outputs.view.say(f"warning: the records are incomplete: {recorder.failure}")


def _say_end(job: TrainingJob, state: State, reason: StopReason, shown: View) -> None:
    if reason == StopReason.PATIENCE:
        shown.say(
            f"No improvement in {state.config.evaluate.patience} evaluations (evaluate.patience): stopping."
        )
    if reason in (StopReason.FINISHED, StopReason.PATIENCE):
        shown.say(f"Finished training: {state.step:,} steps, {state.pairs:,} pairs")
    if state.step:
        shown.say(
            f"Average time per step {state.seconds / state.step:.4f} s, "
            f"{state.target_tokens / state.seconds:,.0f} target tokens/s"
        )
    if best := state.best():
        shown.say(best.best_by(state.config.evaluate.metric))
    run = shlex.quote(str(job.folder.path))
    if best and reason == StopReason.STOPPED and not state.is_scored:
        newest = shlex.quote(str(job.folder.checkpoint(state.step)))
        shown.say(f"Step {state.step:,} was not evaluated. To use it: dragoman translate {newest}")
    shown.say(f"How it went: dragoman report {run}")
    if reason != StopReason.DIVERGED:
        shown.say(f'Try it: echo "..." | dragoman translate {run}')
    if reason == StopReason.STOPPED:
        is_planned = state.step == state.config.train.stop_at
        ending = ", as train.stop_at says" if is_planned else f". To continue: {job.command}"
        shown.say(f"Stopped at step {state.step:,}, saved{ending}")


def _diverged(state: State, job: TrainingJob) -> DragomanError:
    steps = job.folder.checkpoint_steps()
    saved = f"the checkpoint of step {steps[-1]:,} is intact" if steps else "there is no checkpoint yet"
    rate = state.config.train.rate
    return DragomanError(
        f"diverged: {state.bad_in_a_row} steps in a row had a gradient that is not finite; {saved}",
        path=job.folder.path,
        hint=f"lower train.rate (now {rate:g}), raise train.warmup_steps or set train.clip_norm=1.0",
    )
