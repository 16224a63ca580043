"""Small files that are read whole: settings, cards, vocabularies, records of a run."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.errors import DataError, DragomanError

LARGEST_BYTES = 64 * 2**20


def read_whole(
    path: Path, kind: type[DragomanError] = DataError, largest_bytes: int = LARGEST_BYTES
) -> bytes:
    """The content of a regular file. A pipe or a device may have no end, and is refused before it is opened.

    A file that is not there, or may not be read, is an OSError, as everywhere.
    """
    size = path.stat().st_size
    if not os.path.isfile(path):
        what = "a directory" if os.path.isdir(path) else "a pipe or a device"
        raise kind(f"this is {what}, a regular file was expected", path=path)
    if size > largest_bytes:
        raise kind(f"{size:,} bytes, {largest_bytes:,} are the most for a file of this kind", path=path)
    with open(path, "rb") as file:
        return file.read(largest_bytes)  # bounded: some files of /proc and of networks know no size
