"""What to train, and whether it can be trained: checked before any rank is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dragoman import config, kinds
from dragoman.checkpoint import saved_model
from dragoman.config import Training
from dragoman.data.store import DataSet
from dragoman.errors import ConfigError, DataSetError
from dragoman.rundir import RunFolder
from dragoman.train import fitting

# These decide which pairs a step holds and what the weights are: another value makes another run.
_FIXED = ("model.", "data.unit", "data.step", "data.microbatch", "train.seed", "train.optimizer")


@dataclass(frozen=True)
class TrainingJob:
    """What to train."""

    settings: Training
    data: Path
    folder: RunFolder
    start_from: Path | None = None  # another model's weights
    command: str = ""  # as typed, to tell how to go on
    is_forwarded: bool = False  # what is said goes through another program: plain lines, terminal or not


class CheckedSettings(BaseModel):
    """Settings that a run can be trained with."""

    model_config = ConfigDict(frozen=True)

    settings: Training
    changes: list[str]  # how they differ from those the run had, a line each


def check(job: TrainingJob) -> None:
    """Raises whatever can be known to be wrong before a rank is started."""
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
    checked_settings(job.folder, job.settings)
    if job.start_from and not job.folder.checkpoint_steps():  # a run that continues has weights of its own
        saved_model.check_fits(job.start_from, job.settings.model, data.tokenizer)


def checked_settings(folder: RunFolder, settings: Training) -> CheckedSettings:
    """The settings to train this run with; an error if they would make it another run.

    What the run chose for `train.minutes` stays: its own config has it.
    """
    if not folder.config.exists():
        return CheckedSettings(settings=settings, changes=[])
    saved = config.load(Training, folder.config)
    settings, before = fitting.kept(settings, saved), dict(config.flat(saved))
    changed = {key: value for key, value in config.flat(settings) if before.get(key) != value}
    refused = [key for key in changed if key.startswith(_FIXED)]
    if refused:
        what = ", ".join(f"{key} ({before[key]} in the run, {changed[key]} now)" for key in refused)
        raise ConfigError(
            f"this run cannot go on with another {what}",
            path=folder.path,
            hint="use the run's own value, or another --run for a new run (--from takes over its weights)",
        )
    changes = [f"changed: {key} = {value} (was {before[key]})" for key, value in changed.items()]
    return CheckedSettings(settings=settings, changes=changes)
