"""TSV: the source in the first column, the target in the second. Further columns are ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dragoman.data import files
from dragoman.data.formats.pair import RawPair
from dragoman.errors import DataError


def read(path: Path, source_language: str, target_language: str, skipped: Counter[str]) -> Iterator[RawPair]:
    for line, row in enumerate(files.lines(path), start=1):
        columns = row.split(b"\t", 2)
        if len(columns) < 2:
            raise DataError(
                f"no tab in this line: '{row[:60].decode(errors='replace')}'; expected two columns, "
                f"{source_language} and {target_language}",
                path=path,
                line=line,
                hint="remove lines without a translation, or put a tab between the two sentences",
            )
        yield RawPair(columns[0], columns[1], line)
