"""What every peer of slow_link_peers.py trains, and the clock it is timed by.

Imported by peers in their own environments as well: nothing here but the standard library.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Task:
    """Sentences lie in `folder` as numbers of subwords, without EOS: train.source, train.target, dev.*."""

    folder: Path
    vocabulary: int  # subwords, the first four of them pad, eos, bos and unk
    tokens: int  # of the target, per rank and step
    model: Mapping[str, int]  # as the section of our config
    rate: float
    dropout: float

    def save(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self) | {"folder": str(self.folder)}))

    @classmethod
    def load(cls, file: Path) -> Task:
        values = json.loads(file.read_text())
        return cls(**values | {"folder": Path(values["folder"])})

    def text(self, name: str) -> Path:
        return self.folder / name

    def sentences(self, name: str) -> list[list[int]]:
        return [[int(token) for token in line.split()] for line in self.text(name).read_text().splitlines()]


@dataclass
class Clock:
    """When the steps of this rank ended; rank 0 writes it down after the last one."""

    file: Path
    steps: int
    parameters: int  # that are trained
    ended: list[float] = field(default_factory=list)  # seconds of a clock that only goes forward
    target_tokens: list[int] = field(default_factory=list)  # of each step, on this rank

    @property
    def is_over(self) -> bool:
        return len(self.ended) >= self.steps

    def step(self, target_tokens: int) -> None:
        self.ended.append(time.perf_counter())
        self.target_tokens.append(target_tokens)
        if self.is_over and os.environ["RANK"] == "0":
            self.file.write_text(json.dumps(asdict(self) | {"file": str(self.file)}))
