"""Parallel text as the user names it: which files, which languages, in which format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class RawPair(NamedTuple):
    """A source and a target sentence as they stand in the file: bytes, so that bad UTF-8 can be counted."""

    source: bytes
    target: bytes
    line: int  # where the pair begins in its file, counted from 1


@dataclass(frozen=True)
class Files:
    """One piece of parallel text: two files line by line, or one file that holds both languages."""

    source: Path
    target: Path | None = None  # None: `source` holds both sides (TSV, TMX, XLIFF, PO)


@dataclass(frozen=True)
class Corpus:
    """Files that belong together and are drawn with one weight."""

    name: str
    source_language: str
    target_language: str
    files: tuple[Files, ...]
    weight: float = 1.0  # 2.0: each pair is seen twice as often as the size of the corpus alone would give


def read(corpus: Corpus, files: Files) -> Iterator[RawPair]:
    """The pairs of one piece of a corpus, in order."""
    raise NotImplementedError
