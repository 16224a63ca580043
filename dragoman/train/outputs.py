"""The outputs of a rank (records, log, curves, checkpoints), open from before its first step to its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dragoman import atomic, config
from dragoman.config import Training
from dragoman.data.store import DataSet
from dragoman.measure import database, provenance
from dragoman.measure.phases import Phases
from dragoman.measure.recorder import Recorder
from dragoman.measure.tensorboard import Curves, TensorBoardCurves
from dragoman.measure.writer import FileWriter, RecordWriter
from dragoman.sync import diloco
from dragoman.sync.agree import done_by
from dragoman.sync.topology import Placement
from dragoman.sync.world import World
from dragoman.train import fitting, open_records, stopping
from dragoman.train.fitting import Costs
from dragoman.train.job import TrainingJob
from dragoman.train.open_records import LostWorld
from dragoman.train.precision import SettledPrecision
from dragoman.train.saver import Saver, SeveralSavers, main_saver, replica_saver
from dragoman.train.state import State
from dragoman.train.view import QuietView, View, view


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where a rank records, shows and saves.

    Curves and view do nothing on ranks other than 0. The saver also works on the first rank of each DiLoCo
    replica.
    """

    saver: Saver
    curves: Curves
    view: View
    phases: Phases
    recorder: Recorder
    settings_file: Path | None  # the run's config; None on ranks other than 0

    def tell_fitted(self, settings: Training, costs: Costs) -> None:
        """Saves and shows the settings fitted to `train.minutes`, before the first checkpoint with them."""
        if self.settings_file:
            atomic.write(self.settings_file, config.text(settings).encode())
        self.recorder.facts(settings=dict(config.flat(settings)))
        self.view.plan(settings.train.steps)
        for line in fitting.lines(settings, costs):
            self.view.say(line)


@contextmanager
def open_outputs(
    job: TrainingJob,
    settled: SettledPrecision,
    data: DataSet,
    state: State,
    placement: Placement,
    keepers: Sequence[int],
    before: LostWorld | None,
) -> Iterator[Outputs]:
    """The outputs of this rank, open while the block lasts. Collective.

    `keepers` are rank 0 and, if there is one, the rank of another host that keeps what a restart needs.
    """
    world = placement.world
    is_keeper = world.rank in keepers
    writer = done_by(world, is_keeper, lambda: _open_folder(job, settled, data, state, world))  # collective
    shows = done_by(world, is_keeper, lambda: _open_shown(job, state, world))  # collective
    curves, shown = shows or (Curves(), View())
    phases = open_records.phases(placement)
    recorder = open_records.recorder(  # collective
        job.folder.path.name, state, data, placement, phases, writer or RecordWriter(), keepers, before
    )
    recorder.placement(precision=settled.words, precision_why=settled.why)
    saver = _saver(job, data, placement, is_keeper)
    try:
        yield Outputs(
            saver=saver,
            curves=curves,
            view=shown,
            phases=phases,
            recorder=recorder,
            settings_file=job.folder.config if world.is_main else None,
        )
    except BaseException:
        recorder.abandon()
        with suppress(Exception):  # the error on its way out is the one to tell
            saver.wait()  # for this host's disk, not for other ranks: the run continues from this checkpoint
        raise
    finally:
        curves.close()
        shown.close()
        phases.close()


def _open_folder(
    job: TrainingJob, settled: SettledPrecision, data: DataSet, state: State, world: World
) -> RecordWriter:
    """Opens what every keeper writes, besides checkpoints."""
    folder, parameters = job.folder, sum(parameter.numel() for parameter in state.model.parameters())
    folder.path.mkdir(parents=True, exist_ok=True)
    atomic.write(folder.config, config.text(job.settings).encode())
    came_from = provenance.describe(job.command, world, data, parameters, str(settled))
    atomic.write(folder.provenance, came_from.encode())
    # The records of a run that has ended by itself are complete: running it again must not move its end.
    reason = stopping.before_first_step(state)
    is_over = state.outcome is None and reason is not None and reason == database.last_reason(folder.records)
    return RecordWriter() if is_over else FileWriter(folder.records)


def _open_shown(job: TrainingJob, state: State, world: World) -> tuple[Curves, View]:
    """Opens the curves and the log, which only rank 0 also shows."""
    folder, steps = job.folder, job.settings.train.steps
    curves = TensorBoardCurves(folder.tensorboard, state.step + 1)
    shown = (
        view(folder.log, steps, state.step, job.is_forwarded)
        if world.is_main
        else QuietView(folder.log, steps)
    )
    return curves, shown


def _saver(job: TrainingJob, data: DataSet, placement: Placement, is_keeper: bool) -> Saver:
    """The saver of this rank: keepers save the model, the first rank of each other replica its own state."""
    world, savers = placement.world, list[Saver]()
    replicas = diloco.replicas(job.settings.sync, placement.topology)
    own = replicas[world.rank] if replicas else 0
    if is_keeper:
        savers.append(main_saver(job.folder, data.tokenizer.model, world, data.card.fingerprint, own))
    if own > 0 and replicas.index(own) == world.rank:
        savers.append(replica_saver(job.folder, own))
    return SeveralSavers(savers) if len(savers) > 1 else savers[0] if savers else Saver()
