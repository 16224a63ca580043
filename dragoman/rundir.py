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

import re
from pathlib import Path

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

    def checkpoint(self, step: int) -> Path:
        return self.checkpoints / f"step-{step:08d}"

    def checkpoint_steps(self) -> list[int]:
        """Steps with a checkpoint, the newest last."""
        if not self.checkpoints.is_dir():
            return []
        names = (_STEP.fullmatch(path.name) for path in self.checkpoints.iterdir())
        return sorted(int(name[1]) for name in names if name)
