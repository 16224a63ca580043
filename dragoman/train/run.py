"""Runs one rank of a training from start to end: the list of its stages."""

from __future__ import annotations

import gc
import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import torch

from dragoman import stacks, terminal
from dragoman.checkpoint import exportable
from dragoman.data.store import DataSet
from dragoman.doctor import at_start
from dragoman.doctor.at_start import StartCheck
from dragoman.errors import DataError
from dragoman.launch import environment, membership
from dragoman.launch.membership import Invitation, Membership
from dragoman.measure import clock
from dragoman.measure.recorder import Recorder
from dragoman.measure.records import PHASES
from dragoman.model import kernels
from dragoman.sync import shards, silence, topology
from dragoman.sync.agree import done_by_main
from dragoman.sync.failures import LostRank, explained
from dragoman.sync.topology import Placement
from dragoman.train import begin, build_exchange, farewell, fitting, handover, open_records, precision
from dragoman.train.begin import Beginning
from dragoman.train.counterfactual import Counterfactual
from dragoman.train.evaluation import Evaluator
from dragoman.train.handover import Handover
from dragoman.train.interrupt import Interrupt, die_at_once
from dragoman.train.job import TrainingJob
from dragoman.train.loop import Run, train
from dragoman.train.open_records import LostWorld
from dragoman.train.outputs import Outputs, open_outputs
from dragoman.train.precision import SettledPrecision
from dragoman.train.reconcile import reconcile
from dragoman.train.run_folders import RunFolders
from dragoman.train.state import State
from dragoman.train.step import Stepper
from dragoman.train.stopping import StopReason

_OTHER_DATA = "copy the run's own data set to this host: dragoman launch copy"


@dataclass
class Memory:
    """What a rank keeps from one world to the next."""

    state: State | None = None
    settled: SettledPrecision | None = None
    data: DataSet | None = None
    lost: LostWorld | None = None
    is_joining: bool = False  # from the begin of a world until all its ranks have the state
    is_armed: bool = False  # can the launcher ask for this rank's stacks?


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What the stages before the outputs arrive at, from disk or from memory."""

    job: TrainingJob
    settled: SettledPrecision
    data: DataSet
    beginning: Beginning
    lines: list[str]
    keepers: list[int]
    start: StartCheck | None = None  # of a run that begins or continues from disk
    damaged: list[str] = field(default_factory=list)  # checkpoints that were set aside
    lacking_evaluations: int = 0  # the newest ones, which this rank has not recorded


def run(job: TrainingJob) -> StopReason:
    """Trains as one rank and returns why it ended. Rank 0 raises what went wrong.

    A rank that loses another meets the rest again in a new world, with what it has in memory, if a supervisor
    says which they are.
    """
    die_at_once()
    if job.settings.train.deterministic:
        os.environ.update(environment.for_deterministic_kernels())
    member, memory = membership.of_this_process(), Memory()
    interrupt: Interrupt | None = None
    while True:
        invitation = member.join(memory.state.step if memory.state else -1)
        try:
            with (
                explained(),
                topology.join(job.settings.sync.timeout_seconds, invitation.place) as placement,  # collective
                kernels.deterministic(job.settings.train.deterministic),
            ):
                if not interrupt:
                    interrupt = Interrupt(member.signalled)
                    member.on_stop(interrupt.note)
                reason = _in_one_world(job, memory, invitation, placement, member, interrupt)
        except BaseException as error:
            # Once the world is cut, anything may fail in any words.
            is_lost = isinstance(error, LostRank) or (member.is_cut and isinstance(error, Exception))
            # Another rank failed while it joined those that have the state. It alone is of no use.
            is_lost |= isinstance(error, SystemExit) and memory.is_joining and memory.state is not None
            if not is_lost or not member.is_supervised:
                member.failed(error)
                raise
            if torch.cuda.is_available():  # NCCL's communicators end only with their process
                member.begin_again()
            _forget_what_cannot_continue(memory)
            reason = StopReason.REGROUPED
        member.left()
        if reason != StopReason.REGROUPED:
            member.done(reason)
            return reason


def _forget_what_cannot_continue(memory: Memory) -> None:
    """Without all shards, or with the loss scale of a step that failed, only a checkpoint will do."""
    if state := memory.state:
        if shards.is_sharded(state.model) or state.config.train.precision == "fp16":
            memory.state = None
        else:
            state.optimizer.zero_grad(set_to_none=False)
    gc.collect()  # DDP refers to itself: left over, it would still answer to the gradients of its parameters


def _in_one_world(
    job: TrainingJob,
    memory: Memory,
    invitation: Invitation,
    placement: Placement,
    member: Membership,
    interrupt: Interrupt,
) -> StopReason:
    """Trains until the run ends or its ranks leave this world; the list of stages.

    A line marked collective waits for all ranks, so every rank must reach the same ones in the same order.
    """
    world = placement.world
    with ExitStack() as stack:
        memory.is_joining = True
        found = handover.find(memory.state, placement)  # collective
        prepare = _from_memory(job, memory, found, placement, stack) if found else None
        # Collective, both of them.
        prepared = prepare or _from_disk(job, placement, stack)
        state, settings, data = prepared.beginning.state, prepared.job.settings, prepared.data
        memory.settled, memory.data = prepared.settled, data
        before, memory.lost = memory.lost, None
        outputs = stack.enter_context(  # collective
            open_outputs(prepared.job, prepared.settled, data, state, placement, prepared.keepers, before)
        )
        if member.is_supervised and not memory.is_armed:
            stacks.arm(job.folder.stacks_of(os.getpid()))
            memory.is_armed = True
        stack.callback(_note_left, memory, outputs)
        member.note_phase(lambda: _phase(outputs))
        _tell(prepared, invitation, outputs)
        link = None
        if prepared.start:
            link = open_records.probe(outputs.recorder, state, placement, prepared.start)  # collective
        if not member.is_supervised:
            tell = outputs.view.say if world.is_main else terminal.warn
            stack.enter_context(silence.told(placement, tell))
        exchange = build_exchange.build(prepared.beginning, placement, link, outputs)  # collective
        stack.callback(exchange.close)
        # Not before: a state from disk lacks its weights on other ranks until the exchange has sent rank 0's.
        memory.state, memory.is_joining = state, False

        stepper = Stepper(state, exchange, prepared.beginning.batches, world, outputs.phases)
        evaluator = Evaluator(data, settings.evaluate, settings.train.label_smoothing, world)
        reason = train(  # collective
            state,
            Run(
                batches=prepared.beginning.batches,
                stepper=stepper,
                evaluator=evaluator,
                interrupt=interrupt,
                phases=outputs.phases,
                recorder=outputs.recorder,
                counterfactual=Counterfactual(stepper, outputs.recorder, world),
                saver=outputs.saver,
                curves=outputs.curves,
                view=outputs.view,
                membership=member,
                begins_learnt=prepared.job.start_from is not None,
                fitting=fitting.build(settings, evaluator, world, outputs.tell_fitted),
            ),
        )
        if member.is_orphan:
            outputs.recorder.fault("launcher_dead", state.step, clock.seconds())
        recorded = "its launcher was gone" if member.is_orphan else str(reason)
        farewell.end(prepared.job, state, reason, recorded, outputs, world)  # collective
        return reason


def _from_disk(job: TrainingJob, placement: Placement, stack: ExitStack) -> Prepared:
    """The state of a new run, or of its newest checkpoint. Collective."""
    world = placement.world
    if job.settings.sync.mode == "sharded":
        done_by_main(world, lambda: shards.check(placement.topology))  # collective
    folders = RunFolders(job.folder, placement)  # collective
    wanted = folders.check_settings(job.settings).settings  # collective
    settled = precision.settle(wanted, job.settings.train.precision, placement)  # collective
    job = replace(job, settings=settled.settings)
    start = at_start.check(placement, job.data, job.folder.path, job.settings)  # collective
    data = DataSet(job.data)
    reconciled = stack.enter_context(reconcile(job, folders, data.card.fingerprint, placement))  # collective
    beginning = begin.begin(reconciled, settled, data, placement)  # collective
    return Prepared(
        job=reconciled.job,
        settled=settled,
        data=data,
        beginning=beginning,
        lines=[*start.lines, *exportable.warnings(data.tokenizer), *reconciled.lines, *beginning.lines],
        keepers=folders.keepers,
        damaged=folders.damaged,
        start=start,
    )


def _from_memory(
    job: TrainingJob, memory: Memory, found: Handover, placement: Placement, stack: ExitStack
) -> Prepared:
    """The state that ranks still have in memory; those that joined get it from them. Collective."""
    world, data = placement.world, memory.data or DataSet(job.data)
    known = len(memory.state.history) if memory.state else None
    own = handover.account(memory.state, memory.settled, data, placement)
    mine = memory.state
    if world.rank in found.givers:  # half taken over, a state is neither the old one nor the new one
        memory.state = None
    given = handover.give(mine, own, found, data, world)  # collective
    state = given.state
    if given.data_fingerprint != data.card.fingerprint:  # this rank alone fails, and its host is left out
        raise DataError("not the data set that this run is trained on", path=job.data, hint=_OTHER_DATA)
    folders = RunFolders(job.folder, placement)  # collective
    stack.enter_context(folders.lock() or ExitStack())  # collective
    lines = folders.follow(state)  # collective
    return Prepared(
        job=replace(job, settings=state.config, start_from=None),
        settled=given.settled,
        data=data,
        beginning=Beginning(state, begin.batches(state.config, data), [], is_from_memory=True),
        lines=lines,
        keepers=folders.keepers,
        lacking_evaluations=0 if known is None else len(state.history) - known,
    )


def _tell(prepared: Prepared, invitation: Invitation, outputs: Outputs) -> None:
    """Shows and records how this world came about."""
    state, recorder = prepared.beginning.state, outputs.recorder
    _record_faults(prepared, invitation, recorder)
    if invitation.joined:
        recorder.event("joined", state.step, clock.seconds(), 0.0, ", ".join(invitation.joined))
    for evaluation in state.history[len(state.history) - prepared.lacking_evaluations :]:
        recorder.evaluation(evaluation)
    for line in prepared.lines:
        outputs.view.say(line)
    if prepared.beginning.is_from_memory:
        outputs.view.say(f"continuing after step {state.step:,} with what the ranks have in memory")


def _record_faults(prepared: Prepared, invitation: Invitation, recorder: Recorder) -> None:
    """Records what ended the world before, and the checkpoints that turned out to be damaged."""
    state = prepared.beginning.state
    in_memory = prepared.beginning.is_from_memory
    for number, fault in enumerate(invitation.faults):
        step = (
            state.step if in_memory and fault.ended_world else max(fault.step, state.step * (not in_memory))
        )
        recorder.fault(
            fault.kind,
            step,
            invitation.received - fault.age_seconds,
            attempt=max(0, state.attempt - 1),
            host=fault.host,
            rank=fault.rank,
            phase=fault.phase,
            detail=fault.detail,
            noticed_seconds=fault.noticed_seconds,
            steps_lost=step - state.step if number == 0 else 0,
            stacks=fault.stacks,
        )
    for damage in prepared.damaged:
        recorder.fault("checkpoint_damaged", state.step, clock.seconds(), detail=damage)


def _note_left(memory: Memory, outputs: Outputs) -> None:
    memory.lost = LostWorld(clock.seconds(), outputs.recorder.late_rows())


def _phase(outputs: Outputs) -> str:
    _, phase = outputs.phases.position()
    return PHASES[phase] if phase >= 0 else "between steps"
