"""Damaged and hostile files of a run: each is read, or refused by an error of ours that names the file."""

from __future__ import annotations

import io
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from dragoman.errors import RecordsError
from dragoman.explain.compare import compare
from dragoman.explain.run import explain
from dragoman.measure import database, provenance
from dragoman.measure.database import RecordsFile
from dragoman.plan import document
from dragoman.report import compare_text, page, planned, text
from dragoman.report import provenance as shown
from dragoman.rundir import RunFolder
from tests.facts import failed
from tests.measure import damage

SOUND = Path(__file__).parents[1] / "runs" / "too-short.db"
DEEP = "[" * 100_000


def changed(path: Path, *statements: str) -> Path:
    shutil.copyfile(SOUND, path)
    with closing(sqlite3.connect(path)) as file:
        damage.add_faults(file)
        for statement in statements:
            file.execute(statement)
        file.commit()
    return path


def show(path: Path) -> None:
    """All that `report` and `compare` do, but for the files they write."""
    records = database.read(path)
    findings = explain(records)
    assert not failed(findings)
    comparison = planned.compare(path.parent, records, findings)
    page.render(records, findings, shown.load(path.parent), comparison)
    console = Console(file=io.StringIO())
    text.show(records, findings, console, comparison)
    compare_text.show(compare(database.read(SOUND), records), console)


@pytest.mark.parametrize("seed", range(24))
def test_damaged_records_are_answered_or_refused_by_name(seed: int, tmp_path: Path) -> None:
    """It held with 1,500 other seeds as well."""
    path = changed(tmp_path / "records.db")
    how = damage.damage(path, seed)
    try:
        show(path)
    except RecordsError as error:
        assert error.path == str(path), how


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE steps", f"CREATE VIEW steps AS {damage.BOMB} i AS step FROM n"],
        ["DROP TABLE events", f"CREATE VIEW events AS {damage.BOMB} count(*) AS row FROM n"],
        [f"CREATE VIEW beside AS {damage.BOMB} i FROM n"],
        ["CREATE TRIGGER t AFTER INSERT ON steps BEGIN DELETE FROM steps; END"],
        ["CREATE VIRTUAL TABLE beside USING fts5(row)"],
        ["INSERT INTO events VALUES (CAST(zeroblob(100000000) AS TEXT))"],
        ["UPDATE facts SET value = '2' WHERE key = 'schema'"],
        ["DELETE FROM facts"],
        ["UPDATE facts SET value = '1' || printf('%.5000c', '0') WHERE key = 'ranks'"],
        [f"UPDATE facts SET value = '{DEEP}' WHERE key = 'settings'"],
        ["UPDATE steps SET ended = 9e999 WHERE rowid = 3"],
        ["UPDATE steps SET loss = 'low' WHERE rowid = 3"],
        ["UPDATE hosts SET core_shares = x'ff' WHERE rowid = 1"],
        ["UPDATE attempts SET row = json_set(row, '$.started', 'Infinity')"],
        ["UPDATE faults SET row = json_set(row, '$.time', -5.0)"],
        ["UPDATE faults SET row = json_set(row, '$.noticed_seconds', -1.0)"],
        ["UPDATE faults SET row = json_set(row, '$.steps_lost', -1)"],
        ["UPDATE faults SET row = json_set(row, '$.kind', 'bewitched')"],
        ["UPDATE faults SET row = json_set(row, '$.stacks', '/etc/passwd')"],
        ["UPDATE faults SET row = json_set(row, '$.stacks', 'a/../../b')"],
    ],
    ids=lambda statements: statements[-1][:50],
)
def test_a_hostile_file_is_refused_by_name_in_little_time(statements: list[str], tmp_path: Path) -> None:
    path = changed(tmp_path / "records.db", *statements)
    with pytest.raises(RecordsError, match="records.db"):
        database.read(path)


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END"],
        ["UPDATE attempts SET row = 'nonsense'"],
        ["DROP TABLE attempts", f"CREATE VIEW attempts AS {damage.BOMB} i AS row FROM n"],
        ["UPDATE facts SET value = '2' WHERE key = 'schema'"],
    ],
    ids=lambda statements: statements[-1][:50],
)
def test_a_run_does_not_continue_with_such_records_and_leaves_them_alone(
    statements: list[str], tmp_path: Path
) -> None:
    path = changed(tmp_path / "records.db", *statements)
    with closing(sqlite3.connect(path)) as file:
        before = sorted(file.iterdump()) if "VIEW" not in statements[-1] else []
    with pytest.raises(RecordsError, match="records.db"):
        RecordsFile(path)
    with closing(sqlite3.connect(path)) as file:
        assert not before or sorted(file.iterdump()) == before
    assert database.attempts(path) >= 0


DAMAGED_JSON = (
    b"",
    b"{",
    b"[]",
    b"7",
    b"\xff\xfe",
    DEEP.encode(),
    b'{"a":' * 500 + b"1" + b"}" * 500,
    b'{"a": 1e400}',
)


@pytest.mark.parametrize("content", DAMAGED_JSON, ids=range(len(DAMAGED_JSON)))
def test_a_damaged_provenance_or_plan_is_named_and_spoils_no_report(content: bytes, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    changed(run.records)
    for path in (run.provenance, run.plan):
        path.write_bytes(content)
    with pytest.raises(RecordsError, match="plan.json"):
        document.load(run.plan)
    if b"1e400" not in content:  # a number may be anything here
        with pytest.raises(RecordsError, match="provenance.json"):
            provenance.load(run.provenance)
    assert shown.flat(shown.load(tmp_path))
    comparison = planned.compare(tmp_path, database.read(run.records), [])
    assert comparison and "plan.json" in comparison.note


def test_without_provenance_and_plan_nothing_is_known(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert provenance.load(run.provenance) == {}
    assert document.load(run.plan) is None


@pytest.mark.parametrize(
    "change",
    [
        '"value": 100.0|"value": 0',
        '"value": 100.0|"value": NaN',
        '"value": 100.0|"value": 1e300',
        '"ranks": 2|"ranks": -1',
    ],
)
def test_a_plan_with_impossible_numbers_is_refused(change: str, tmp_path: Path) -> None:
    number = '{"value": 100.0, "low": 90.0, "high": 110.0}'
    names = ("steps", "step_seconds", "seconds", "disk_bytes")
    sound = ", ".join(f'"{name}": {number}' for name in names)
    sound += ', "step_parts_seconds": {"nonsense": ' + number + '}, "run_parts_seconds": {}, "ranks": 2'
    sound = '{"schema_version": 1, "cluster": "one", ' + sound + "}"
    run = RunFolder(tmp_path)
    changed(run.records)
    run.plan.write_text(sound)
    show(run.records)
    run.plan.write_text(sound.replace(*change.split("|")))
    with pytest.raises(RecordsError, match="plan.json"):
        document.load(run.plan)
