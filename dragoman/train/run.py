"""A rank of a run, from the first line to the last: the list of its stages."""

from __future__ import annotations

from contextlib import ExitStack

from dragoman.checkpoint import exportable
from dragoman.data.store import DataSet
from dragoman.doctor import at_start
from dragoman.sync import topology
from dragoman.sync import world as worlds
from dragoman.train import build_exchange, farewell, fitting, open_records
from dragoman.train.begin import begin
from dragoman.train.counterfactual import Counterfactual
from dragoman.train.evaluation import Evaluator
from dragoman.train.interrupt import Interrupt, die_at_once
from dragoman.train.job import TrainingJob
from dragoman.train.loop import Run, train
from dragoman.train.outputs import open_outputs
from dragoman.train.reconcile import reconcile
from dragoman.train.step import Stepper
from dragoman.train.stopping import StopReason


def run(job: TrainingJob) -> StopReason:
    """One rank from start to end; why it ended. Rank 0 raises what went wrong.

    A line marked collective waits for all ranks, so every rank has to reach the same ones in the same order.
    """
    die_at_once()
    with (
        worlds.explained(),
        topology.join(job.settings.sync.timeout_seconds) as placement,  # collective
        ExitStack() as stack,
    ):
        interrupt, world = Interrupt(), placement.world
        start = at_start.check(placement, job.data, job.folder.path, job.settings)  # collective
        data = DataSet(job.data)
        reconciled = stack.enter_context(reconcile(job, data.card.fingerprint, placement))  # collective
        job, settings = reconciled.job, reconciled.job.settings

        beginning = begin(reconciled, data, placement)  # collective
        state, batches = beginning.state, beginning.batches
        outputs = stack.enter_context(open_outputs(job, data, state, placement))  # collective
        for line in (*start.lines, *exportable.warnings(data.tokenizer), *reconciled.lines, *beginning.lines):
            outputs.view.say(line)
        link = open_records.probe(outputs.recorder, state, placement, start)  # collective
        exchange = build_exchange.build(  # collective: also sends rank 0's weights to all
            state, batches, world, placement.topology, link, outputs.phases, outputs.recorder, outputs.view
        )
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
