"""Opens an SQLite file from an untrusted source for reading, even in a folder that is not writable.

The file cannot make SQLite run code (views, triggers and virtual tables are refused) or read for ever, and
nothing in its folder changes except SQLite's own -shm.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from dragoman import temporary
from dragoman.errors import RecordsError

_LONGEST_VALUE = 16 << 20  # bytes; our own values are far shorter
_CHECK_EVERY = 10_000  # instructions of SQLite
# Reading a table takes about one instruction per column of a row, and a column has at least one byte.
_INSTRUCTIONS_PER_BYTE, _INSTRUCTIONS = 20, 5_000_000
_COPY_TRIES, _COPY_AGAIN_SECONDS = 20, 0.05


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for reading. It works while a run writes, and in folders that are not writable."""
    with ExitStack() as stack:
        connection = stack.enter_context(closing(_connect(path, stack)))
        guard(connection, path)
        connection.execute("PRAGMA query_only=ON")
        yield connection


def guard(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses a file with anything but plain tables, and limits how long reading it may take."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    left = _INSTRUCTIONS + _INSTRUCTIONS_PER_BYTE * path.stat().st_size

    def is_too_much() -> bool:
        nonlocal left
        left -= _CHECK_EVERY
        return left < 0

    connection.set_progress_handler(is_too_much, _CHECK_EVERY)
    connection.execute("PRAGMA trusted_schema=OFF")
    for kind, name, made_by in connection.execute("SELECT type, name, sql FROM sqlite_schema"):
        is_plain = (
            kind == "index" or kind == "table" and not str(made_by).upper().startswith("CREATE VIRTUAL")
        )
        if not is_plain:
            raise RecordsError(f"contains a {kind} {name!r}; only plain tables are allowed", path=path)


def _connect(path: Path, stack: ExitStack) -> sqlite3.Connection:
    if os.access(path.parent, os.W_OK):
        return connect(path, "mode=ro")  # also sees the newest rows of a run that is writing
    if not _wal(path).exists():  # nobody is writing: a writer keeps this file until it ends
        return connect(path, "mode=ro&immutable=1")
    folder = stack.enter_context(temporary.folder("dragoman-"))
    return connect(_copied(path, folder), "mode=rw")


def connect(path: Path, options: str) -> sqlite3.Connection:
    """Connects to an existing file. Its path becomes part of a URI, in which # ? and % must be quoted."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True)


def _wal(path: Path) -> Path:
    """The file with the newest rows (the write-ahead log)."""
    return path.with_name(path.name + "-wal")


def _copied(path: Path, folder: Path) -> Path:
    """A copy of the database with its newest rows, both from the same moment.

    A run on another machine may be writing meanwhile.
    """
    for _ in range(_COPY_TRIES):
        before = _state(path)
        for source in (path, _wal(path)):
            if source.exists():
                shutil.copyfile(source, folder / source.name)
        if _state(path) == before:
            return folder / path.name
        time.sleep(_COPY_AGAIN_SECONDS)
    raise RecordsError(
        "changes faster than it can be read", path=path, hint="read it on the machine of the run"
    )


def _state(path: Path) -> list[tuple[int, int]]:
    files = [file.stat() for file in (path, _wal(path)) if file.exists()]
    return [(file.st_size, file.st_mtime_ns) for file in files]
