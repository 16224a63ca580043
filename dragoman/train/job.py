"""What to train, and the checks on it before any rank is started."""

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
from dragoman.train import fitting, precision

# These settings decide the pairs of a step and the weights: with another value it is another run.
_FIXED = ("model.", "data.unit", "data.step", "data.microbatch", "train.seed", "train.optimizer")


@dataclass(frozen=True)
class TrainingJob:
    """The settings, data and run folder of a training, and how it was started."""

    settings: Training
    data: Path
    folder: RunFolder
    start_from: Path | None = None  # another model's weights
    command: str = ""  # as typed, to say how to continue
    is_forwarded: bool = False  # another program forwards the output: plain lines, even on a terminal


class CheckedSettings(BaseModel):
    """Settings that fit the run, and how they differ from those it had."""

    model_config = ConfigDict(frozen=True)

    settings: Training
    changes: list[str]  # a line for each difference


def check(job: TrainingJob) -> None:
    """Raises everything that can be found wrong before a rank is started."""
    data = DataSet(job.data)
    data.check_contents()
    if "dev" not in data.parts:
        raise DataSetError(
            "the data set has no dev part",
            path=job.data,
            hint="prepare it again: give a dev set with --dev, or let prepare hold out some pairs",
        )
    job.folder.check_place()
    kinds.check_for_run(job.folder.path)
    checked_settings(job.folder, job.settings)
    if job.start_from and not job.folder.checkpoint_steps():  # a run that continues has weights of its own
        saved_model.check_fits(job.start_from, job.settings.model, data.tokenizer)


def checked_settings(folder: RunFolder, settings: Training) -> CheckedSettings:
    """The settings to train this run with; an error if they would make it another run.

    What the run chose for `train.minutes` and `train.precision = "auto"` is kept from its own config.
    """
    if not folder.config.exists():
        return CheckedSettings(settings=settings, changes=[])
    saved = config.load(Training, folder.config)
    settings = precision.kept(fitting.kept(settings, saved), saved)
    before = dict(config.flat(saved))
    changed = {key: value for key, value in config.flat(settings) if before.get(key) != value}
    refused = [key for key in changed if key.startswith(_FIXED)]
    if settings.data.microbatch_size == saved.data.microbatch_size:
        refused = [key for key in refused if key != "data.microbatch"]
    if refused:
        differences = ", ".join(f"{key} ({before[key]} in the run, {changed[key]} now)" for key in refused)
        raise ConfigError(
            f"this run cannot continue with a different {differences}",
            path=folder.path,
            hint="use the run's value, or start a new run with another --run (--from takes over the weights)",
        )
    changes = [f"changed: {key} = {value} (was {before[key]})" for key, value in changed.items()]
    return CheckedSettings(settings=settings, changes=changes)
