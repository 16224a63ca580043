"""The run folder. Every path inside it is written here and nowhere else.

RUN/
  config.toml         the filled-in config
  plan.json           what `dragoman plan --for RUN` expected of the run
  provenance.json     versions, hosts, command line, data fingerprint
  records.db          every measurement (measure/database.py)
  log.txt             one line per interval, as on the terminal
  launcher.json       the process that trains the run, for the commands that join or stop it
  launcher.toml       the config that a detached run was started with from another machine
  output.txt          what a detached run prints
  tensorboard/        curves
  checkpoints/        step-00001000/ and so on
  best                link to the best checkpoint
  scores.json         the scores of its models, from `dragoman evaluate`
  stacks/             stacks of ranks that hung or crashed, on the disk of their host
  replicas/           DiLoCo only: replica-0001/step-00001000/ and so on, on the disk of that replica's host
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import IO

from dragoman import atomic
from dragoman.errors import UsageError

# A name as `StepFolders.at` makes it. At most 15 digits: ranks compare steps as floats, exact to 2^53.
_STEP = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,14})")


class RunFolder:
    """The paths inside a run folder. Building one creates nothing on disk."""

    def __init__(self, path: Path):
        self.path = path
        self.config = path / "config.toml"
        self.plan = path / "plan.json"
        self.provenance = path / "provenance.json"
        self.records = path / "records.db"
        self.log = path / "log.txt"
        self.launcher = path / "launcher.json"
        self.launcher_lock = path / ".launcher.lock"
        self.sent_config = path / "launcher.toml"
        self.output = path / "output.txt"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.best = path / "best"
        self.scores = path / "scores.json"
        self.replicas = path / "replicas"
        self.stacks = path / "stacks"

    def check_place(self) -> None:
        """Raises if the folder cannot be made or written to. `doctor` also asks this before a training."""
        existing = next(place for place in (self.path, *self.path.absolute().parents) if place.exists())
        if not existing.is_dir():
            raise UsageError("is a file, not a run folder", path=existing, hint="give another --run")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise UsageError("this folder is not writable", path=existing, hint="give another --run")

    def make(self) -> None:
        """Makes the folder if it is missing, for its owner alone: it holds texts of the corpus."""
        atomic.make_folder(self.path, 0o700)

    def lock(self) -> IO[str]:
        """Locks the run folder while the returned file is open, so that only one training writes to it."""
        self.make()
        file = open(self.path / ".lock", "a")  # noqa: SIM115  closed by the caller, or when its process ends
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise UsageError(
                "another process is training this run",
                path=self.path,
                hint="wait until it ends, or give another --run",
            ) from None
        return file

    def checkpoint(self, step: int) -> Path:
        return self.checkpoint_folders.at(step)

    def checkpoint_steps(self) -> list[int]:
        """The steps that have a checkpoint, the newest last."""
        return self.checkpoint_folders.steps()

    def model_step(self) -> int | None:
        """The step of the model that commands use from this run: its best, else its newest checkpoint."""
        if self.best.is_symlink() and self.best.exists():
            return self.checkpoint_folders.step_of(self.best.readlink())
        return next(reversed(self.checkpoint_steps()), None)

    @property
    def checkpoint_folders(self) -> StepFolders:
        return StepFolders(self.checkpoints)

    def accompanying(self) -> list[str]:
        """Files copied between hosts besides checkpoints and records, as paths relative to the run folder."""
        single = [
            path for path in (self.config, self.plan, self.provenance, self.scores, self.log) if path.exists()
        ]
        curves = sorted(path for path in self.tensorboard.rglob("*") if path.is_file())
        return [str(path.relative_to(self.path)) for path in (*single, *curves)]

    def stacks_of(self, pid: int) -> Path:
        """The file with the stacks of one process."""
        return self.stacks / f"process-{pid}.txt"

    def replica(self, number: int) -> StepFolders:
        """The folders of one DiLoCo replica's own state."""
        return StepFolders(self.replicas / f"replica-{number:04d}")


class StepFolders:
    """A folder with one folder per saved step."""

    def __init__(self, path: Path):
        self.path = path

    def at(self, step: int) -> Path:
        return self.path / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """The saved steps, the newest last."""
        if not self.path.is_dir():
            return []
        steps = (self.step_of(path) for path in self.path.iterdir())
        return sorted(step for step in steps if step is not None)

    def step_of(self, path: Path) -> int | None:
        """The step in a folder's name; None if it is not a step folder."""
        name = _STEP.fullmatch(path.name)
        return int(name[1]) if name else None
