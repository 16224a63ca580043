"""Records written in the background: in order, all before the end, and never at the cost of training."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.measure.database import RecordsFile, read
from dragoman.measure.records import Attempt, Event
from dragoman.measure.writer import FileWriter, RecordWriter
from dragoman.rundir import RunFolder
from dragoman.train.stopping import StopReason
from tests.facts import only
from tests.train.conftest import Here


def event(step: int, detail: str = "") -> Event:
    return Event(time=1.0, attempt=0, step=step, kind="checkpoint", detail=detail)


def write(writer: RecordWriter, step: int, detail: str = "") -> None:
    writer.do(lambda file: file.add_row("events", event(step, detail)))


@contextmanager
def files_of_at_most(nbytes: int) -> Iterator[None]:
    """A disk that fails for this process, and needs no root: no file may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_nobody_waits_for_a_write_but_the_end_waits_for_all(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path / "records.db")
    gate = threading.Event()
    writer.do(lambda file: gate.wait(30))
    began = time.monotonic()
    for step in range(100):
        write(writer, step)
    assert time.monotonic() - began < 1.0
    assert read(tmp_path / "records.db").events == []
    threading.Timer(0.2, gate.set).start()
    writer.close()
    assert [row.step for row in read(tmp_path / "records.db").events] == list(range(100))
    assert writer.failure is None


def test_a_failing_disk_is_remembered_once_and_writing_continues_with_room(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path / "records.db")
    write(writer, 1)
    done = threading.Event()
    with files_of_at_most(200_000):
        for step in (2, 3):
            write(writer, step, "x" * 500_000)
        writer.do(lambda file: done.set())
        assert done.wait(30)
    first = writer.failure
    assert first is not None and ("disk" in first or "full" in first)
    writer.do(lambda file: 1 // 0)
    write(writer, 4)
    writer.close()
    assert writer.failure == first, "the first failure explains the others"
    assert [row.step for row in read(tmp_path / "records.db").events] == [1, 4]


def test_training_continues_without_its_records_and_says_so_once(
    here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The largest file of a checkpoint takes 0.2 MB; what is written to the records, much more."""
    with files_of_at_most(300_000):
        reason = here.train(tmp_path / "run", "train.steps=24", "evaluate.every=24")
    assert reason == StopReason.FINISHED
    only(capsys.readouterr().out.splitlines(), "records")
    assert RunFolder(tmp_path / "run").checkpoint_steps()[-1] == 24
    assert 0 < len(read(tmp_path / "run" / "records.db").steps["step"]) < 24


def test_a_second_start_knows_of_the_first(tmp_path: Path) -> None:
    first = FileWriter(tmp_path / "records.db")
    assert (list(first.attempts), first.spent) == ([], 0.0)
    first.do(lambda file: file.replace_attempt(Attempt(number=0, started=1, first_step=1, ranks=1)))
    first.do(lambda file: file.write_facts({"recording_seconds": 2.5}))
    first.close()
    second = FileWriter(tmp_path / "records.db")
    second.close()
    assert (len(second.attempts), second.last_time, second.spent) == (1, 1, 2.5)


def test_records_that_cannot_be_opened_are_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "records.db").write_bytes(b"this was a database before the disk broke" * 100)
    with pytest.raises(DataError, match="records"):
        RecordsFile(tmp_path / "records.db")
