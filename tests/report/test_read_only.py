"""Reports of runs on a disk that cannot be written: a real read-only mount."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from dragoman.cli import runs as commands
from dragoman.measure import database
from dragoman.measure.database import RecordsFile
from dragoman.measure.records import Attempt
from dragoman.rundir import RunFolder
from tests.measure.test_database import steps_table
from tests.train.runs import snapshot, wait_until

PARTS, STEPS = 4, 10  # rows are added in so many parts of so many steps


@contextmanager
def read_only(folder: Path, at: Path) -> Iterator[Path]:
    """The same folder once more, where nothing can be written."""
    at.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", folder, at], capture_output=True).returncode:
        pytest.skip("a read-only disk needs root and the right to mount")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", at], check=True)
        yield at
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def record(folder: Path) -> RecordsFile:
    folder.mkdir(exist_ok=True)
    file = RecordsFile(RunFolder(folder).records)
    file.write_facts({"name": "mine", "ranks": 1})
    file.replace_attempt(Attempt(number=0, started=1e9, first_step=1, ranks=1))
    for part in range(PARTS):
        file.add("steps", steps_table(1 + part * STEPS, (part + 1) * STEPS, 0))
    return file


def record_until_killed(folder: Path, ready: Path) -> None:
    file = record(folder)
    ready.touch()
    number = PARTS
    while True:
        time.sleep(0.05)
        file.add("steps", steps_table(1 + number * STEPS, (number + 1) * STEPS, 0))
        number += 1


@contextmanager
def recording(folder: Path) -> Iterator[multiprocessing.process.BaseProcess]:
    """Another process that adds rows, and is killed at the end."""
    ready = folder.with_name("ready")
    process = multiprocessing.get_context("spawn").Process(target=record_until_killed, args=(folder, ready))
    process.start()
    try:
        wait_until("the first rows", ready.exists)
        yield process
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()


def answered(folder: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """Steps that `report --json` tells of; the page cannot be written, and that is said."""
    commands.report(folder, as_json=True)
    said = capsys.readouterr()
    assert str(folder) in said.err
    findings = {row["id"]: row for row in json.loads(said.out)["findings"]}
    commands.compare(folder, folder)
    capsys.readouterr()
    return int(findings["duration"]["numbers"]["steps"])


def test_a_sound_run_on_a_read_only_disk_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "run").close()
    before = snapshot(tmp_path / "run")
    with read_only(tmp_path / "run", tmp_path / "mounted") as folder:
        assert answered(folder, capsys) == PARTS * STEPS
    assert snapshot(tmp_path / "run") == before


def test_rows_that_a_killed_run_left_beside_its_database_are_not_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recording(tmp_path / "run"):
        pass
    run = RunFolder(tmp_path / "run")
    assert run.records.with_name("records.db-wal").stat().st_size
    run.records.with_name("records.db-shm").unlink()  # also where only the other two were copied
    before = snapshot(run.path)
    with read_only(run.path, tmp_path / "mounted") as folder:
        assert answered(folder, capsys) >= PARTS * STEPS
    assert snapshot(run.path) == before


def test_a_live_run_is_read_from_a_read_only_mount_and_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recording(tmp_path / "run") as process, read_only(tmp_path / "run", tmp_path / "mounted") as folder:
        first = answered(folder, capsys)
        wait_until("more rows", lambda: len(database.read(RunFolder(folder).records).steps["step"]) > first)
        steps = database.read(RunFolder(folder).records).steps["step"]
        assert steps.tolist() == np.arange(1, len(steps) + 1).tolist()
        assert process.is_alive()


def test_a_folder_that_can_be_written_gets_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "run").close()
    commands.report(tmp_path / "run")
    said = capsys.readouterr()
    assert str(tmp_path / "run" / "report.html") in said.out and not said.err
    assert (tmp_path / "run" / "report.html").is_file()
