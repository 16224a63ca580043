"""Before anything is built: checks the job and brings all hosts to the same state of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from dragoman.sync.agree import done_by_main, ranks_that
from dragoman.sync.topology import Placement
from dragoman.train.job import TrainingJob, check
from dragoman.train.run_folders import RunFolders


@dataclass(frozen=True)
class Reconciled:
    """What to train and where to begin, the same on every rank."""

    job: TrainingJob  # with the settings to train with
    step: int | None  # of the checkpoint to continue from, sound on every host; None: begin at step 0
    lines: list[str]  # for people


@contextmanager
def reconcile(
    job: TrainingJob, folders: RunFolders, data_fingerprint: str, placement: Placement
) -> Iterator[Reconciled]:
    """Checks the job and brings the run's folders on all hosts to the same state. Collective.

    The folders are locked while the block lasts, so only one training writes to them.
    """
    world = placement.world
    if ranks_that(world, bool(job.folder.checkpoint_steps())):  # collective
        job = replace(job, start_from=None)  # a run that continues has weights of its own
    done_by_main(world, lambda: check(job))  # collective; torchrun checks nothing before it starts ranks
    checked = folders.check_settings(job.settings)  # collective
    with folders.lock() or nullcontext():  # collective
        step, lines = folders.bring_together(checked.settings, data_fingerprint)  # collective
        yield Reconciled(replace(job, settings=checked.settings), step, [*checked.changes, *lines])
