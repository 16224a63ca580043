"""Files and folders that appear under their name whole, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = ".unfinished"  # ending of what is still being written, or was when its writer was killed


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill; it takes its name only when the block ends well.

    The name must be free, or an empty folder. What a killed process left
    under the temporary name is removed by the next attempt.
    """
    unfinished = folder.with_name(folder.name + UNFINISHED)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        for path in [*unfinished.rglob("*"), unfinished]:
            sync(path)
        unfinished.rename(folder)
        sync(folder.parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def write(path: Path, content: bytes) -> None:
    """Replaces a file's content in one move: a reader sees the old or the new, never a part."""
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        unfinished.write_bytes(content)
        take_name(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def take_name(unfinished: Path, path: Path) -> None:
    """A file that is written to its end replaces the one of that name."""
    sync(unfinished)
    unfinished.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Until this returns, a power cut may leave a renamed file empty."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
