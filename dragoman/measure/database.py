"""records.db: the records of a run in SQLite, schema 1, written by rank 0 only.

    facts        key, value (JSON): facts about the run as a whole (RunFacts)
    attempts     one row per start of the run
    steps        one row per step: mean, least and most of each phase over all ranks, and the slowest rank
    windows      one row per rank and log interval: the summed seconds of each phase
    evaluations  one row per evaluation
    events       evaluation, checkpoint, start-up, hosts that joined, stop: when, how long
    faults       what went wrong: when, where, when it was noticed, steps that had to be repeated
    probes       separate measurements: steps without exchange, link, device peak
    nics         per host and interface: bytes in and out; per second for the last hour, per minute before
    hosts        per host: CPU, memory, disk, at the same times
    gpus         per GPU: utilisation, power, clocks, memory, temperature, at the same times
    programs     per host: other programs that used the cores while ranks waited for one
    lens         short bursts of samples at 20 Hz or more: bytes on the gradients' interface, step, phase

attempts, evaluations, events, faults and probes hold each row as JSON; the others have a column per number
(records.COLUMNS). Columns that end in _us hold whole microseconds in 3 to 4 bytes instead of 8, so that
300,000 steps on 64 ranks stay under 100 MB.

All times are on one time line (clock.py), which does not move when the wall clock is set.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel
from pydantic_core import from_json

from dragoman import atomic, kinds
from dragoman.errors import RecordsError, reading
from dragoman.measure import plausible, untrusted
from dragoman.measure.records import (
    ADDED_TABLES,
    COLUMNS,
    TEXT_COLUMNS,
    Attempt,
    EvaluationRow,
    Event,
    Fault,
    Probe,
    Records,
    RunFacts,
    Table,
    column,
)

SCHEMA = 1
_MODELS: dict[str, type[BaseModel]] = {
    "attempts": Attempt,
    "evaluations": EvaluationRow,
    "events": Event,
    "faults": Fault,
    "probes": Probe,
}


class RecordsFile:
    """records.db, open for writing. Only rank 0 opens it."""

    past: list[Attempt]  # the earlier attempts of the run
    last_time: float  # time of the newest row; -inf if there is none

    def __init__(self, path: Path):
        hint = "check whether the disk is full; if the file is damaged, move it away, and a new one is begun"
        with reading(path, RecordsError, hint):
            self._database = sqlite3.connect(path, check_same_thread=False)
            untrusted.guard(self._database, path)
            self._create()
            self.past = self._attempts()
            self.last_time = self._last_time()
            self._add_columns()
            self._database.set_progress_handler(None, 0)

    def _create(self) -> None:
        """Creates the tables and indexes that are missing."""
        # WAL: a report may read while the run writes. NORMAL: a power cut may lose rows, but not the file.
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
        with self._database:
            self._database.execute("CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT)")
            if (schema := self.fact("schema")) not in (None, SCHEMA):
                raise ValueError(f"schema {schema}, not {SCHEMA}")
            for table in COLUMNS.keys() - ADDED_TABLES:
                self._create_table(table)
            for table in _MODELS:
                self._database.execute(f"CREATE TABLE IF NOT EXISTS {table} (row TEXT)")
            self._database.execute("CREATE INDEX IF NOT EXISTS steps_by_step ON steps (step)")
        self.write_facts({"schema": SCHEMA})

    def _create_table(self, table: str) -> None:
        spec = ", ".join(f"{name} {kind}" for name, kind in COLUMNS[table].items())
        self._database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({spec})")

    def _add_columns(self) -> None:
        """Adds the tables and columns that the version that began the file did not have."""
        with self._database:
            for table in COLUMNS.keys() & ADDED_TABLES:
                self._create_table(table)
            for table, columns in COLUMNS.items():
                present = _columns(self._database, table)
                for name, kind in columns.items():
                    if name not in present:
                        self._database.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")

    def _attempts(self) -> list[Attempt]:
        return sorted(_models(self._database, "attempts", Attempt), key=lambda attempt: attempt.number)

    def _last_time(self) -> float:
        queries = ("SELECT max(ended) FROM steps", "SELECT max(time + span) FROM hosts")
        times = [self._database.execute(query).fetchone()[0] for query in queries]
        for attempt in self.past:
            times += [attempt.started, attempt.ended]
        times += [event.time + event.seconds for event in _models(self._database, "events", Event)]
        times += [fault.time for fault in _models(self._database, "faults", Fault)]
        return max((float(time) for time in times if time is not None), default=-math.inf)

    def fact(self, key: str) -> Any:
        row = self._database.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
        return from_json(row[0]) if row else None

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        rows = [(key, json.dumps(value)) for key, value in facts.items()]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def add(self, table: str, columns: Table) -> None:
        """Appends rows, given as columns in the units of memory (seconds)."""
        values = []
        for name in COLUMNS[table]:
            data = np.asarray(columns[column(name)])
            if name.endswith("_us"):
                data = np.round(data * 1e6)
            values.append([_plain(value) for value in data.tolist()])
        names, marks = ", ".join(COLUMNS[table]), ", ".join("?" * len(values))
        query = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        with self._database:
            self._database.executemany(query, zip(*values, strict=True))

    def add_row(self, table: str, row: BaseModel) -> None:
        with self._database:
            self._database.execute(f"INSERT INTO {table} VALUES (?)", (row.model_dump_json(),))

    def replace_attempt(self, attempt: Attempt) -> None:
        with self._database:
            query = "DELETE FROM attempts WHERE json_extract(row, '$.number') = ?"
            self._database.execute(query, (attempt.number,))
        self.add_row("attempts", attempt)

    def thin(self, before: float) -> None:
        """Merges rows per second older than `before` into rows per minute, to keep a run of weeks small."""
        with self._database:
            for table, keys in (("nics", "host, interface"), ("hosts", "host"), ("gpus", "host, gpu")):
                names = [name for name in COLUMNS[table] if name not in ("time", "span", *keys.split(", "))]
                means = ", ".join(_by_the_minute(name) for name in names)
                self._database.execute(f"CREATE TEMP TABLE thinned AS SELECT * FROM {table} LIMIT 0")
                self._database.execute(
                    f"INSERT INTO thinned ({keys}, time, span, {', '.join(names)}) "
                    f"SELECT {keys}, min(time), sum(span), {means} FROM {table} "
                    f"WHERE time < ? AND span < 30 GROUP BY {keys}, CAST(time / 60 AS INTEGER)",
                    (before,),
                )
                self._database.execute(f"DELETE FROM {table} WHERE time < ? AND span < 30", (before,))
                self._database.execute(f"INSERT INTO {table} SELECT * FROM thinned")
                self._database.execute("DROP TABLE thinned")

    def close(self) -> None:
        self._database.close()


def attempts(path: Path) -> int:
    """How often a run was started; 0 if there are no readable records."""
    return _counted(path, "SELECT count(*) FROM attempts")


def newest_step(path: Path) -> int:
    """The newest step in the records; 0 if there are none."""
    return _counted(path, "SELECT coalesce(max(step), 0) FROM steps")


def _counted(path: Path, query: str) -> int:
    if not path.exists():
        return 0
    # rw: a connection that may write removes SQLite's extra files again; a read-only one leaves them behind
    with suppress(sqlite3.DatabaseError, RecordsError), closing(untrusted.connect(path, "mode=rw")) as file:
        untrusted.guard(file, path)
        return int(file.execute(query).fetchone()[0])
    return 0


def last_reason(path: Path) -> str | None:
    """Why a run's newest attempt ended; None if it has not ended or is not known."""
    with suppress(RecordsError):
        if attempts := read(path).attempts:
            return attempts[-1].reason
    return None


@contextmanager
def snapshot(path: Path) -> Iterator[Path]:
    """A complete copy of the database in one file, removed after the block.

    The original may keep its newest rows in another file (-wal).
    """
    whole = path.with_name(path.name + atomic.UNFINISHED)
    whole.unlink(missing_ok=True)
    try:
        with (
            reading(path, RecordsError, hint="move it away"),
            closing(sqlite3.connect(path)) as database,
            closing(sqlite3.connect(whole)) as copy,
        ):
            database.backup(copy)
        yield whole
    finally:
        whole.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Removes the database and SQLite's extra files: rows left in -wal would end up in the next database."""
    for ending in ("-wal", "-shm", ""):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _by_the_minute(name: str) -> str:
    """The SQL expression that merges a minute of this column into one value."""
    if name in TEXT_COLUMNS:
        return "''"
    return f"max({name})" if name.endswith("_most") else f"avg({name})"


def read(path: Path) -> Records:
    """The records of a run, which may still be running."""
    if not path.exists():
        raise kinds.refused(path.parent, "run")
    with reading(path, RecordsError), untrusted.opened(path) as database:
        # Not json.loads: it accepts lone surrogates, which cannot be printed or written as UTF-8.
        facts = {key: from_json(value) for key, value in database.execute("SELECT key, value FROM facts")}
        if (schema := facts.pop("schema", None)) != SCHEMA:
            raise RecordsError(f"the records have schema {schema}, this version reads {SCHEMA}", path=path)
        rows = {name: _models(database, name, model) for name, model in _MODELS.items()}
        tables = {name: _table(database, name) for name in COLUMNS}
        return _assembled(facts, rows, tables)


def _assembled(facts: dict[str, Any], rows: dict[str, list[Any]], tables: dict[str, Table]) -> Records:
    plausible.check(facts)
    attempts: list[Attempt] = sorted(rows["attempts"], key=lambda attempt: attempt.number)
    known = {name: value for name, value in facts.items() if name in RunFacts.model_fields}
    first_repeated = _first_repeated(attempts)
    steps, repeated = _parted(tables["steps"], "step", first_repeated)
    windows, _ = _parted(tables["windows"], "last_step", first_repeated)

    def kept(rows: Sequence[Any]) -> list[Any]:
        return [row for row in rows if row.step < first_repeated.get(row.attempt, np.inf)]

    return Records(
        RunFacts(**known),
        attempts,
        steps=steps,
        windows=windows,
        evaluations=kept(rows["evaluations"]),
        events=rows["events"],
        probes=kept(rows["probes"]),
        nics=tables["nics"],
        hosts=tables["hosts"],
        gpus=tables["gpus"],
        lens=tables["lens"],
        programs=tables["programs"],
        faults=rows["faults"],
        repeated=repeated,
    )


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    """The names of the columns that the table has in this file."""
    return {name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")}


def _table(database: sqlite3.Connection, table: str) -> Table:
    """The columns of a table, without those that an earlier version did not write."""
    present = _columns(database, table)
    names = [name for name in COLUMNS[table] if name in present]
    if not names and table in ADDED_TABLES:
        return {}
    if not names:
        raise ValueError(f"no table {table}")
    rows = database.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY rowid").fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    result: Table = {}
    for name, values in zip(names, columns, strict=True):
        if name in TEXT_COLUMNS:
            if not all(isinstance(value, str) for value in values):
                raise ValueError(f"{name} is not text throughout")
            result[name] = np.array(values, dtype=str)
        else:
            numbers = np.array([np.nan if value is None else _number(value) for value in values])
            plausible.check_column(name, COLUMNS[table][name], numbers)
            result[column(name)] = numbers / 1e6 if name.endswith("_us") else numbers
    return result


def _models(database: sqlite3.Connection, table: str, model: type[BaseModel]) -> list[Any]:
    if table in ADDED_TABLES and not _columns(database, table):
        return []
    rows = [model.model_validate_json(row) for (row,) in database.execute(f"SELECT row FROM {table}")]
    for row in rows:
        plausible.check(vars(row))
    return rows


def _number(value: Any) -> float:
    if not isinstance(value, int | float):  # float() would also accept text and bytes
        raise ValueError(f"{str(value)[:20]!r} is not a number")
    return float(value)


def _first_repeated(attempts: Sequence[Attempt]) -> dict[int, float]:
    """The first step of each attempt that a later one repeated; infinity if none did."""
    begins: dict[int, int] = {}
    for attempt in attempts:
        begins[attempt.number] = min(attempt.first_step, begins.get(attempt.number, attempt.first_step))
    first: dict[int, float] = {}
    least = np.inf
    for number in sorted(begins, reverse=True):
        first[number] = least
        least = min(least, begins[number])
    return first


def _parted(table: Table, key: str, first_repeated: dict[int, float]) -> tuple[Table, Table]:
    """The rows that count, and those that a later attempt superseded. A row belongs to an attempt."""
    if np.isnan(table["attempt"]).any():
        raise ValueError("a row has no attempt")
    limits = np.full(len(table["attempt"]), np.inf)
    if first_repeated:
        numbers = np.array(sorted(first_repeated))
        places = np.clip(np.searchsorted(numbers, table["attempt"]), 0, len(numbers) - 1)
        is_known = numbers[places] == table["attempt"]
        limits[is_known] = np.array([first_repeated[number] for number in numbers.tolist()])[places][is_known]
    kept, superseded = table[key] < limits, table[key] >= limits
    return (
        {name: values[kept] for name, values in table.items()},
        {name: values[superseded] for name, values in table.items()},
    )


def _plain(value: Any) -> Any:
    """The value as SQLite can store it: None for NaN and infinity."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
