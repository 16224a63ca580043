"""SQLite files with their rows, cells and tables changed, and with the JSON in their cells changed."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing, suppress

from tests.fuzz.mutate_documents import change, json_text, some

_CELLS = (
    None, 0, 1, -1, 2**62, -(2**62), 0.5, 1e308, -1e308, 1e-308, float("inf"), "", "x", "nan", "inf",
    b"\xff\x00", "1",
    "[1]", "x" * 10_000,
)  # fmt: skip


def database(data: bytes, other: bytes, draw: random.Random) -> bytes:
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.deserialize(data)
        for _ in range(some(draw)):
            with suppress(sqlite3.Error):  # a column that an index or an earlier change stands against
                _change_tables(opened, draw)
        opened.commit()
        return opened.serialize()


def _change_tables(database: sqlite3.Connection, draw: random.Random) -> None:
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = draw.choice([*names, "facts", "steps", "events", "evaluations", "attempts", "probes", "faults"])
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    if not columns:  # gone by an earlier change
        return
    column = draw.choice(columns)
    rows = [row for (row,) in database.execute(f"SELECT rowid FROM {table}")]
    which = f"WHERE rowid = {draw.choice(rows or [0])}"
    if draw.random() < 0.2:
        which = f"WHERE rowid % {draw.choice((1, 2, 7))} = 0"
    if column in ("row", "value") and draw.random() < 0.8:
        _change_documents(database, table, column, which, draw)
        return
    match draw.choice(
        ("cell", "cell", "cell", "cell", "scale", "delete", "double", "empty", "drop", "columns")
    ):
        case "scale":
            factor = draw.choice(("-1", "0", "1e12", "1e300", "1e-12"))
            database.execute(f"UPDATE {table} SET {column} = {column} * {factor} {which}")
        case "delete":
            database.execute(f"DELETE FROM {table} {which}")
        case "double":
            database.execute(f"INSERT INTO {table} SELECT * FROM {table} {which}")
        case "empty":
            database.execute(f"DELETE FROM {table}")
        case "drop" if draw.random() < 0.3:
            database.execute(f"DROP TABLE {table}")
        case "columns" if draw.random() < 0.3:
            database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        case "columns":
            database.execute(f"ALTER TABLE {table} ADD COLUMN x")
        case _:
            database.execute(f"UPDATE {table} SET {column} = ? {which}", (draw.choice(_CELLS),))


def _change_documents(
    database: sqlite3.Connection, table: str, column: str, which: str, draw: random.Random
) -> None:
    """Cells that hold JSON."""
    for number, text in database.execute(f"SELECT rowid, {column} FROM {table} {which}").fetchall():
        with suppress(ValueError, TypeError, RecursionError, OverflowError):  # an earlier change stands there
            changed = json_text(change(json.loads(text), draw)).encode("utf-8", "replace").decode()
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, number))
