"""What all document formats share: a function that fills in targets, and a tally of units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Translate = Callable[[Sequence[str]], list[str]]  # the translation of each text, in order


@dataclass
class UnitTally:
    """Counts the units of one or several documents."""

    translated: int = 0
    left: int = 0  # left as they were: already translated, or not to be translated

    def add(self, other: UnitTally) -> None:
        self.translated += other.translated
        self.left += other.left


class OutputWriter(Protocol):
    """Takes bytes: a file, plain or compressed, or a pipe."""

    def write(self, content: bytes, /) -> object: ...


class Format(Protocol):
    """Copies a document and fills in its targets; `again` also replaces existing translations."""

    def __call__(self, source: Path, out: OutputWriter, translate: Translate, again: bool) -> UnitTally: ...
