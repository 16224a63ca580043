"""Two plain files: each line of one is the translation of the same line of the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from dragoman.data import drift, files
from dragoman.data.formats.pair import RawPair


def read(source: Path, target: Path) -> Iterator[RawPair]:
    """The pairs. If one file ends before the other, the error says where they drift apart."""
    both = itertools.zip_longest(files.lines(source), files.lines(target))
    for line, (source_line, target_line) in enumerate(both, start=1):
        if source_line is None or target_line is None:
            raise drift.error(source, target)
        yield RawPair(source_line, target_line, line)
