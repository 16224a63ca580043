"""What every format of document has in common: units to translate, and those that are left as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Translate = Callable[[Sequence[str]], list[str]]  # the translation of each text, in order


@dataclass
class UnitTally:
    """Units of a document, or of several."""

    translated: int = 0
    left: int = 0  # translated before, or not to be translated

    def add(self, other: UnitTally) -> None:
        self.translated += other.translated
        self.left += other.left


class OutputWriter(Protocol):
    """Of bytes: a file, plain or compressed, or a pipe."""

    def write(self, content: bytes, /) -> object: ...


class Format(Protocol):
    """Copies a document with its targets filled in; those that have a translation only if asked `again`."""

    def __call__(self, source: Path, out: OutputWriter, translate: Translate, again: bool) -> UnitTally: ...
