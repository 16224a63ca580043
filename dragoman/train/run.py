"""Runs one rank of a training from start to end: the list of its stages."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace

from dragoman import terminal
from dragoman.checkpoint import exportable
from dragoman.data.store import DataSet
from dragoman.doctor import at_start
from dragoman.launch import environment
from dragoman.model import kernels
from dragoman.sync import shards, silence, topology
from dragoman.sync.agree import done_by_main
from dragoman.sync.failures import explained
from dragoman.train import build_exchange, farewell, fitting, open_records, precision
from dragoman.train.begin import begin
from dragoman.train.counterfactual import Counterfactual
from dragoman.train.evaluation import Evaluator
from dragoman.train.interrupt import Interrupt, die_at_once
from dragoman.train.job import TrainingJob
from dragoman.train.loop import Run, train
from dragoman.train.outputs import open_outputs
from dragoman.train.reconcile import reconcile
from dragoman.train.run_folders import RunFolders
from dragoman.train.step import Stepper
from dragoman.train.stopping import StopReason


def run(job: TrainingJob) -> StopReason:
    """Trains as one rank and returns why it ended. Rank 0 raises what went wrong.

    A line marked collective waits for all ranks, so every rank must reach the same ones in the same order.
    """
    die_at_once()
    if job.settings.train.deterministic:
        os.environ.update(environment.for_deterministic_kernels())
    with (
        explained(),
        topology.join(job.settings.sync.timeout_seconds) as placement,  # collective
        kernels.deterministic(job.settings.train.deterministic),
        ExitStack() as stack,
    ):
        interrupt, world = Interrupt(), placement.world
        if job.settings.sync.mode == "sharded":
            done_by_main(world, lambda: shards.check(placement.topology))  # collective
        folders = RunFolders(job.folder, placement)  # collective
        wanted = folders.check_settings(job.settings).settings  # collective
        settled = precision.settle(wanted, job.settings.train.precision, placement)  # collective
        job = replace(job, settings=settled.settings)
        start = at_start.check(placement, job.data, job.folder.path, job.settings)  # collective
        data = DataSet(job.data)
        fingerprint = data.card.fingerprint
        reconciled = stack.enter_context(reconcile(job, folders, fingerprint, placement))  # collective
        job, settings = reconciled.job, reconciled.job.settings

        beginning = begin(reconciled, settled, data, placement)  # collective
        state, batches = beginning.state, beginning.batches
        # Collective.
        outputs = stack.enter_context(open_outputs(job, settled, data, state, placement))
        for line in (*start.lines, *exportable.warnings(data.tokenizer), *reconciled.lines, *beginning.lines):
            outputs.view.say(line)
        link = open_records.probe(outputs.recorder, state, placement, start)  # collective
        if not environment.is_watched():
            tell = outputs.view.say if world.is_main else terminal.warn
            stack.enter_context(silence.told(placement, tell))
        # Collective: also sends rank 0's weights to all.
        exchange = build_exchange.build(beginning, placement, link, outputs)
        stack.callback(exchange.close)

        stepper = Stepper(state, exchange, batches, world, outputs.phases)
        evaluator = Evaluator(data, settings.evaluate, settings.train.label_smoothing, world)
        reason = train(  # collective
            state,
            Run(
                batches=batches,
                stepper=stepper,
                evaluator=evaluator,
                interrupt=interrupt,
                phases=outputs.phases,
                recorder=outputs.recorder,
                counterfactual=Counterfactual(stepper, outputs.recorder, world),
                saver=outputs.saver,
                curves=outputs.curves,
                view=outputs.view,
                begins_learnt=job.start_from is not None,
                fitting=fitting.build(settings, evaluator, world, outputs.tell_fitted),
            ),
        )
        farewell.end(job, state, reason, outputs, world)  # collective
        return reason
