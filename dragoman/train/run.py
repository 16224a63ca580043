"""A rank of a run, from the first line to the last: join, build or restore, train, say how it ended."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from dragoman import atomic, config, kinds
from dragoman.checkpoint import exportable, saved_model
from dragoman.config import Training
from dragoman.data.batches import Batches, StepSize
from dragoman.data.store import DataSet
from dragoman.doctor import at_start
from dragoman.doctor.at_start import StartCheck
from dragoman.errors import DataSetError, DragomanError
from dragoman.measure import clock, database, provenance
from dragoman.measure.recorder import Recorder
from dragoman.measure.tensorboard import Curves, TensorBoardCurves
from dragoman.measure.writer import FileWriter, RecordWriter
from dragoman.model import Transformer
from dragoman.rundir import RunFolder
from dragoman.sync import diloco, topology
from dragoman.sync import world as worlds
from dragoman.sync.agree import decided_by_main, done_by, done_by_main, ranks_that
from dragoman.sync.topology import Placement
from dragoman.sync.world import World
from dragoman.train import build_exchange, fitting, open_records, optimizer, resume, stopping
from dragoman.train.counterfactual import Counterfactual
from dragoman.train.evaluation import Evaluator
from dragoman.train.fitting import Costs, Fitting, TimedFitting
from dragoman.train.interrupt import Interrupt, die_at_once
from dragoman.train.loop import Run, train
from dragoman.train.reconcile import Whereabouts
from dragoman.train.saver import Saver, main_saver, replica_saver
from dragoman.train.state import State
from dragoman.train.step import Stepper
from dragoman.train.stopping import StopReason
from dragoman.train.view import View, view


@dataclass(frozen=True)
class TrainingJob:
    """What to train."""

    settings: Training
    data: Path
    folder: RunFolder
    start_from: Path | None = None  # another model's weights
    command: str = ""  # as typed, to tell how to go on
    is_forwarded: bool = False  # what is said goes through another program: plain lines, terminal or not


def check(job: TrainingJob) -> None:
    """Everything that can be known to be wrong before a rank is started."""
    data = DataSet(job.data)
    data.check_contents()
    if "dev" not in data.parts:
        raise DataSetError(
            "the data set has no dev part",
            path=job.data,
            hint="prepare it again: with --dev, or without, then some pairs are held out",
        )
    job.folder.check_place()
    kinds.check_for_run(job.folder.path)
    resume.check_settings(job.folder, job.settings)


def check_beginning(job: TrainingJob) -> None:
    """And the model to begin with, which a run that goes on no longer needs."""
    if job.start_from and not job.folder.checkpoint_steps():
        saved_model.check_fits(job.start_from, job.settings.model, DataSet(job.data).tokenizer)


def run(job: TrainingJob) -> StopReason:
    """One rank's whole life. Raises what rank 0 has to report."""
    die_at_once()
    with (
        worlds.explained(),
        topology.join(job.settings.sync.timeout_seconds) as placement,
        ExitStack() as stack,
    ):
        interrupt, world = Interrupt(), placement.world
        start = at_start.check(placement, job.data, job.folder.path, job.settings)
        data = DataSet(job.data)
        done_by_main(world, lambda: check(job))  # also where torchrun started us
        if not ranks_that(world, bool(job.folder.checkpoint_steps())):  # on no host
            done_by_main(world, lambda: check_beginning(job))
        whereabouts = Whereabouts(job.folder, placement)
        is_home = world.rank == whereabouts.home
        done_by(world, is_home, lambda: resume.check_settings(job.folder, job.settings))
        if lock := whereabouts.lock():
            stack.enter_context(lock)
        replicas = diloco.replicas(job.settings.sync, placement.topology)
        step, moved = whereabouts.bring_together(job.settings, data.card.fingerprint, replicas)
        changes = done_by_main(world, lambda: resume.check_settings(job.folder, job.settings)) or []
        kept = resume.settings_of(job.folder, job.settings) if world.is_main else job.settings
        settings = Training.model_validate_json(decided_by_main(world, kept.model_dump_json()))
        job = replace(job, settings=settings)
        torch.manual_seed(job.settings.train.seed)
        model = Transformer(job.settings.model, len(data.tokenizer))
        state = State(job.settings, model.to(world.device), optimizer.build(model, job.settings.train))
        said = [*start.lines, *exportable.warnings(data.tokenizer), *changes, *moved]
        if step is not None:
            said += resume.restore(state, job.folder, step, replicas, world)
        elif origin := job.start_from:  # the exchange sends them to all
            begun = done_by_main(world, lambda: saved_model.load([origin], world.device).model.state_dict())
            if begun:
                model.load_state_dict(begun)
                said += saved_model.note_on_newer(origin)
            said.append(f"weights from {origin}")
        return _run(job, state, data, placement, start, interrupt, said)


def _run(
    job: TrainingJob,
    state: State,
    data: DataSet,
    placement: Placement,
    start: StartCheck,
    interrupt: Interrupt,
    said: Sequence[str],
) -> StopReason:
    world, settings = placement.world, job.settings
    parameters = sum(p.numel() for p in state.model.parameters())
    written = done_by_main(world, lambda: _open_records(job, state, world, data, parameters))
    saver, curves, shown, writer = written or (Saver(), Curves(), View(), RecordWriter())
    size = StepSize(settings.data.step, settings.data.microbatch, settings.data.unit)
    for line in (*said, _size_line(size, world, parameters)):
        shown.say(line)
    batches = Batches(data, size, settings.train.seed)
    phases = open_records.phases(placement)
    recorder = open_records.recorder(job.folder.path.name, state, data, placement, phases, writer)
    link = open_records.probe(recorder, state, placement, start)
    # sends rank 0's weights to all
    exchange = build_exchange.build(state, batches, world, placement.topology, link, phases, recorder, shown)
    if not world.is_main and world.rank in _first_of_each(state.replicas):
        saver = replica_saver(job.folder, state.replicas[world.rank])
    stepper = Stepper(state, exchange, batches, world, phases)
    counterfactual = Counterfactual(stepper, recorder, world)
    evaluator = Evaluator(data, settings.evaluate, settings.train.label_smoothing, world)
    try:
        reason = train(
            state,
            Run(
                batches=batches,
                stepper=stepper,
                evaluator=evaluator,
                interrupt=interrupt,
                phases=phases,
                recorder=recorder,
                counterfactual=counterfactual,
                saver=saver,
                curves=curves,
                view=shown,
                begins_learnt=job.start_from is not None,
                fitting=_fitting(job, world, evaluator, recorder, shown),
            ),
        )
        saver.wait()
        for done in saver.take_written():
            recorder.event("writing", *done)
        recorder.checkpoint_files(saver.files)
        recorder.close(reason)
        if writer.failure:
            shown.say(f"the records are not complete: {writer.failure}")
        if not saver.failure:
            _say_end(job, state, reason, shown)
    except BaseException:
        recorder.abandon()
        raise
    finally:
        exchange.close()
        curves.close()
        shown.close()
    if saver.failure:
        raise saver.failure
    if reason == StopReason.DIVERGED and world.is_main:
        raise _diverged(state, job)
    return reason


def _fitting(
    job: TrainingJob, world: World, evaluator: Evaluator, recorder: Recorder, shown: View
) -> Fitting:
    """Off unless `train.minutes` asks for it and the run has not chosen yet."""
    if not job.settings.train.minutes or job.settings.train.fitted_at:
        return Fitting()

    def tell(settings: Training, costs: Costs) -> None:
        if world.is_main:  # before the first checkpoint that knows of it
            atomic.write(job.folder.config, config.text(settings).encode())
        recorder.facts(settings=dict(config.flat(settings)))
        shown.plan(settings.train.steps)
        for line in fitting.lines(settings, costs):
            shown.say(line)

    return TimedFitting(world, evaluator, clock.process_began(), tell)


def _open_records(
    job: TrainingJob, state: State, world: World, data: DataSet, parameters: int
) -> tuple[Saver, Curves, View, RecordWriter]:
    """All that is written, by rank 0 alone."""
    job.folder.path.mkdir(parents=True, exist_ok=True)
    atomic.write(job.folder.config, config.text(job.settings).encode())
    atomic.write(job.folder.provenance, provenance.describe(job.command, world, data, parameters).encode())
    saver = main_saver(job.folder, data.tokenizer.model, world.size, data.card.fingerprint)
    curves = TensorBoardCurves(job.folder.tensorboard, state.step + 1)
    shown = view(job.folder.log, job.settings.train.steps, state.step, job.is_forwarded)
    # A run that has ended by itself has its records: its end is not the time of a second look.
    reason = stopping.before_first_step(state)
    is_over = reason is not None and reason == database.last_reason(job.folder.records)
    return saver, curves, shown, RecordWriter() if is_over else FileWriter(job.folder.records)


def _first_of_each(replicas: Sequence[int]) -> list[int]:
    """The first rank of each replica."""
    return [replicas.index(replica) for replica in sorted(set(replicas))]


def _size_line(size: StepSize, world: World, parameters: int) -> str:
    """The arithmetic of a step, so that nobody has to guess it."""
    return (
        f"{parameters:,} parameters; a step is {size.step:,} {size.unit} in {size.microbatches} microbatches "
        f"over {world.size} rank{'s' if world.size > 1 else ''} on {world.device.type}"
        + _idle(world.size - size.microbatches)
    )


def _idle(ranks: int) -> str:
    return f": {ranks} rank{'s are' if ranks > 1 else ' is'} idle" if ranks > 0 else ""


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
        shown.say(f"Step {state.step:,} is not scored. To use it: dragoman translate {newest}")
    shown.say(f"How it went: dragoman report {run}")
    if reason != StopReason.DIVERGED:
        shown.say(f'Try it: echo "..." | dragoman translate {run}')
    if reason == StopReason.STOPPED:
        is_asked_for = state.step == state.config.train.stop_at
        why = ", as train.stop_at asks" if is_asked_for else f". To go on: {job.command}"
        shown.say(f"Stopped at step {state.step:,}, saved{why}")


def _diverged(state: State, job: TrainingJob) -> DragomanError:
    steps = job.folder.checkpoint_steps()
    kept = f"the checkpoint of step {steps[-1]:,} is intact" if steps else "there is no checkpoint yet"
    rate = state.config.train.rate
    return DragomanError(
        f"diverged: {state.bad_in_a_row} steps in a row had a gradient that is not finite; {kept}",
        path=job.folder.path,
        hint=f"a lower train.rate (now {rate:g}), more train.warmup_steps or train.clip_norm=1.0",
    )
