"""The run folder. Every path inside it is spelled here only.

RUN/
  config.toml         the filled-in config
  provenance.json     versions, hosts, command line, data fingerprint
  records.db          every measurement (measure/database.py)
  log.txt             one line per interval, as on the terminal
  tensorboard/        curves
  checkpoints/        step-00001000/ and so on
  best                link to the best checkpoint
"""

from __future__ import annotations

import fcntl
import re
from pathlib import Path
from typing import IO

from dragoman.errors import UsageError

_STEP = re.compile(r"step-(\d{8,})")


class RunFolder:
    """Where things are. Makes nothing by itself."""

    def __init__(self, path: Path):
        self.path = path
        self.config = path / "config.toml"
        self.provenance = path / "provenance.json"
        self.records = path / "records.db"
        self.log = path / "log.txt"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.best = path / "best"

    def lock(self) -> IO[str]:
        """Held for as long as the result is open: one training at a time writes to a run folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = open(self.path / ".lock", "a")  # noqa: SIM115  closed by its holder, or with its process
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise UsageError(
                "another process is training this run", path=self.path, hint="wait for it, or another --run"
            ) from None
        return file

    def checkpoint(self, step: int) -> Path:
        return self.checkpoints / f"step-{step:08d}"

    def checkpoint_steps(self) -> list[int]:
        """Steps with a checkpoint, the newest last."""
        if not self.checkpoints.is_dir():
            return []
        names = (_STEP.fullmatch(path.name) for path in self.checkpoints.iterdir())
        return sorted(int(name[1]) for name in names if name)
