"""Ranks that record, without a training: `python -m tests.measure.ranks FOLDER` under torchrun.

Two hosts, in name: ranks 0 and 1 on one, rank 2 on the other, each host with a meter of its own. A first
attempt makes steps 1 to 10 and is given up; the second begins again at step 7 and ends by itself.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from dragoman.measure import clock
from dragoman.measure.clock import RunClock
from dragoman.measure.meters import HostMeter
from dragoman.measure.phases import Phases
from dragoman.measure.quality import Evaluation, Score
from dragoman.measure.recorder import Recorder, StepRow
from dragoman.measure.records import PHASES, Attempt
from dragoman.measure.writer import FileWriter, RecordWriter
from dragoman.sync import world as worlds
from dragoman.sync.topology import Placement, Topology
from dragoman.sync.world import World

TOPOLOGY = Topology(["a", "b"], [0, 0, 1], ["lo", "lo"])
HOST_A_EARLIER_SECONDS = 2.0
PROBED_EARLIER_SECONDS = 100.0
SAVE_SECONDS = 0.5


def step_row(step: int, attempt: int, rank: int) -> StepRow:
    """Every number tells where it comes from: phase p of rank r takes (p + 1) * 10 + r milliseconds."""
    return StepRow(
        step=step,
        loss=100.0 * attempt + step,
        target_tokens=1000 + step,
        pairs=50,
        learning_rate=0.5,
        gradient_norm=1.5,
        is_bad=False,
        is_rescaled=False,
        ended=clock.seconds(),
        phases=np.array([((phase + 1) * 10 + rank) / 1e3 for phase in range(len(PHASES))]),
        counted=np.array([1e6, np.nan if rank == 1 else 2e6, 0.1 + rank, 0.2, 0.5]),
    )


def evaluation(step: int, loss: float) -> Evaluation:
    score = Score(value=12.5, signature="made up")
    return Evaluation(step=step, eval_loss=loss, train_sample_loss=2.0, bleu=score, chrf=score, seconds=0.5)


def record(world: World, folder: Path, first: int, last: int) -> Recorder:
    """One attempt up to its last step, sent in two parts of unequal length."""
    writer = FileWriter(folder / "records.db") if world.is_main else RecordWriter()
    meter = (
        HostMeter("lo", Phases()) if world.rank in TOPOLOGY.leaders else None
    )  # and only then a collective
    number = int(world.most([len(writer.attempts)])[0])
    run_clock = RunClock()
    attempt = Attempt(number=number, started=run_clock.now(), first_step=first, ranks=world.size)
    recorder = Recorder(Placement(world, TOPOLOGY), attempt, writer, meter, run_clock)
    recorder.facts(ranks=world.size, hosts=TOPOLOGY.hosts, rank_hosts=TOPOLOGY.rank_hosts)
    for step in range(first, last + 1):
        recorder.step(step_row(step, number, world.rank))
        if step == first + 2:
            recorder.flush()
    time.sleep(1.2)  # a row of every meter
    recorder.flush()
    return recorder


def save_on_rank_0(world: World, recorder: Recorder) -> None:
    """And a probe of how long the others then wait for it in what follows."""
    with recorder.standing_still("checkpoint", 12):
        if world.is_main:
            time.sleep(SAVE_SECONDS)
    began = clock.seconds()
    world.sum([0.0])  # collective, as the next step's exchange
    waited = world.most([clock.seconds() - began])[0]
    recorder.probe("all_reduce", 12, began, waited)


def main(folder: Path) -> None:
    with worlds.join(60) as world:
        if world.rank == 2:
            time.sleep(HOST_A_EARLIER_SECONDS)
        abandoned = record(world, folder, 1, 10)
        abandoned.evaluation(evaluation(4, 3.0))
        abandoned.evaluation(evaluation(8, 2.0))
        abandoned.abandon()
        world.sum([0.0])  # collective: rank 0 has written what it has
        ended = record(world, folder, 7, 12)
        ended.evaluation(evaluation(8, float("nan")))
        ended.probe(
            "peak", 6, began=clock.seconds() - PROBED_EARLIER_SECONDS, seconds=0.25, flops_per_second=1e9
        )
        ended.fault("killed", 10, clock.seconds() - PROBED_EARLIER_SECONDS, attempt=0, host="b", rank=2)
        ended.event("joined", 10, clock.seconds(), 0.0, "b")
        save_on_rank_0(world, ended)
        ended.close("finished")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
