"""Damages a records.db in as many ways as there are seeds: bytes, rows, values, tables, JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from dragoman.measure.records import COLUMNS

ROWS = ("attempts", "evaluations", "events", "probes", "faults")
IN_A_COLUMN = (
    None,
    "text",
    "",
    b"\xff\x00",
    "9e999",
    "-9e999",
    -1,
    0,
    2**62,
    -(2**62),
    1e300,
    -1e300,
    0.5,
    "1e400",
)
IN_JSON = (
    *(
        None,
        True,
        "",
        "text",
        "<script>",
        "NaN",
        "Infinity",
        -1,
        0,
        0.5,
        2**70,
        -(2**70),
        1e300,
        -1e300,
        10**400,
    ),
    *([], {}, [1, "a", None], {"a": {"b": []}}, [[[]]], "x" * 10_000),
)
BOMB = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


FAULTS = (
    {"kind": "killed", "rank": 1, "host": "b", "noticed_seconds": 0.3, "steps_lost": 2, "phase": "exchange"},
    {"kind": "host_unreachable", "host": "b", "detail": "no answer", "stacks": "stacks/a-0.txt"},
)


def add_faults(database: sqlite3.Connection) -> None:
    """Adds faults after the last step of the first attempt, and a second attempt."""
    database.execute("CREATE TABLE IF NOT EXISTS faults (row TEXT)")
    ended, step = database.execute("SELECT max(ended), max(step) FROM steps").fetchone()
    (text,) = database.execute("SELECT row FROM attempts").fetchone()
    first = json.loads(text)
    again = {"number": first["number"] + 1, "started": ended + 5, "first_step": int(step) - 1}
    database.execute("INSERT INTO attempts VALUES (?)", (json.dumps({**first, **again}),))
    for row in FAULTS:
        where = {"time": ended, "attempt": first["number"], "step": int(step)}
        database.execute("INSERT INTO faults VALUES (?)", (json.dumps({**where, **row}),))


def damage(path: Path, seed: int) -> str:
    """Changes the file in place; says how."""
    random = Random(seed)
    way = random.choice([_bytes, _cut, _rows, *[_value] * 6, *[_json] * 8, _table, _column, _other_thing])
    return f"{way.__name__[1:]}: {way(path, random)}"


def _bytes(path: Path, random: Random) -> str:
    content = bytearray(path.read_bytes())
    places = [random.randrange(len(content)) for _ in range(random.choice([1, 10, 1000]))]
    if random.random() < 0.3:
        places = [place % 100 for place in places]  # the file's own header
    for place in places:
        content[place] = random.randrange(256)
    path.write_bytes(content)
    return f"{len(places)} changed"


def _cut(path: Path, random: Random) -> str:
    length = random.randrange(path.stat().st_size)
    path.write_bytes(path.read_bytes()[:length])
    return f"to {length} bytes"


def _changed(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> str:
    with closing(sqlite3.connect(path)) as database:
        for statement, values in statements:
            database.execute(statement, values)
        database.commit()
    return "; ".join(f"{statement} {str(values)[:80]}" for statement, values in statements)


def _columns(path: Path) -> dict[str, list[str]]:
    """Of the tables of numbers: an older file does not have them all."""
    with closing(sqlite3.connect(path)) as database:
        found = {
            table: [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
            for table in COLUMNS
        }
    return {table: names for table, names in found.items() if names}


def _rows(path: Path, random: Random) -> str:
    table = random.choice([*_columns(path), *ROWS, "facts"])
    which = random.choice(["1", "rowid % 2", "rowid > 1", f"rowid = {random.randint(1, 9)}"])
    return _changed(path, (f"DELETE FROM {table} WHERE {which}", ()))


def _value(path: Path, random: Random) -> str:
    columns = _columns(path)
    table = random.choice(list(columns))
    column = random.choice(columns[table])
    value = random.choice(IN_A_COLUMN)
    new = f"{value}" if isinstance(value, str) and value.endswith("e999") else "?"
    which = random.choice(["1", "rowid % 2", "rowid = 1", f"rowid = (SELECT max(rowid) FROM {table})"])
    return _changed(
        path, (f"UPDATE {table} SET {column} = {new} WHERE {which}", (value,) if new == "?" else ())
    )


def _json(path: Path, random: Random) -> str:
    table, key, column = random.choice(
        [("facts", "key", "value"), *((name, "rowid", "row") for name in ROWS)]
    )
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute(f"SELECT {key}, {column} FROM {table}").fetchall()
    if not rows:
        return "nothing there"
    which, text = random.choice(rows)
    value = json.loads(text)
    new = random.choice(IN_JSON)
    changed, where = _replaced(value, new, random)
    written = random.choice([json.dumps(changed)] * 12 + [text[:-3], "[" * 100_000, "nonsense"])
    done = _changed(path, (f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (written, which)))
    return f"{table} {which} {where} = {str(new)[:30]} {done[:0]}"


def _replaced(value: Any, new: Any, random: Random, where: str = "") -> tuple[Any, str]:
    """The value with one thing in it, or itself, replaced or left out."""
    keys: list[Any] = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    if not keys or random.random() < 0.1:
        return new, where
    key = random.choice(keys)
    copy = value.copy()
    if random.random() < 0.1:
        del copy[key]
        return copy, f"{where}.{key} left out"
    copy[key], where = _replaced(value[key], new, random, f"{where}.{key}")
    return copy, where


def _table(path: Path, random: Random) -> str:
    return _changed(path, (f"DROP TABLE {random.choice([*_columns(path), *ROWS, 'facts'])}", ()))


def _column(path: Path, random: Random) -> str:
    columns = _columns(path)
    table = random.choice(list(columns))
    column = random.choice([name for name in columns[table] if name != "step"])
    return _changed(path, (f"ALTER TABLE {table} DROP COLUMN {column}", ()))


def _other_thing(path: Path, random: Random) -> str:
    columns = _columns(path)
    table = random.choice([*ROWS, "facts", *columns])
    names = list(columns.get(table, ["key", "value"] if table == "facts" else ["row"]))
    made: Callable[[], str] = random.choice(
        [
            lambda: (
                f"CREATE VIEW {table} AS {BOMB} {', '.join(f'count(*) AS {name}' for name in names)} FROM n"
            ),
            lambda: f"CREATE VIEW {table} AS {BOMB} {', '.join(f'i AS {name}' for name in names)} FROM n",
            lambda: f"CREATE TABLE {table} ({names[0]} AS (zeroblob(1000000000)), other)",
            lambda: f"CREATE VIRTUAL TABLE {table} USING fts5(row)",
        ]
    )
    statements = [(f"DROP TABLE {table}", ()), (made(), ())]
    if random.random() < 0.2:
        trigger = f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END"
        return _changed(path, (trigger, ()))
    if "zeroblob" in statements[1][0]:
        statements.append((f"INSERT INTO {table} (other) VALUES (1)", ()))
    return _changed(path, *statements)
