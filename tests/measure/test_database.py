"""records.db: what is written is what is read, superseded rows apart."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from dragoman.errors import DataError, UsageError
from dragoman.measure.database import RecordsFile, attempts, last_reason, read
from dragoman.measure.records import (
    COLUMNS,
    COUNTED,
    PHASES,
    Attempt,
    EvaluationRow,
    Event,
    Fault,
    Probe,
    Table,
    column,
    core_shares,
)


def steps_table(first: int, last: int, attempt: int, loss: float = 1.0) -> Table:
    count = last - first + 1
    table = {column(name): np.full(count, 0.25) for name in COLUMNS["steps"]}
    return {
        **table,
        "step": np.arange(first, last + 1),
        "attempt": np.full(count, attempt),
        "loss": np.full(count, loss),
    }


@pytest.fixture
def file(tmp_path: Path) -> RecordsFile:
    return RecordsFile(tmp_path / "records.db")


def test_numbers_come_back_in_seconds(file: RecordsFile, tmp_path: Path) -> None:
    file.add("steps", steps_table(1, 3, 0) | {"exchange_mean": np.array([0.1, 0.000123, 30.0])})
    records = read(tmp_path / "records.db")
    assert records.phase("exchange").tolist() == [0.1, 0.000123, 30.0]
    assert records.steps["step"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["a#2", "a?b", "100%25", "a run"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    path = tmp_path / name / "records.db"
    RecordsFile(path).replace_attempt(Attempt(number=0, started=0, first_step=1, ranks=2, reason="finished"))
    assert len(read(path).attempts) == attempts(path) == 1
    assert last_reason(path) == "finished"


def test_steps_made_again_supersede_the_old_ones(file: RecordsFile, tmp_path: Path) -> None:
    file.replace_attempt(Attempt(number=0, started=0, first_step=1, ranks=2))
    file.add("steps", steps_table(1, 10, 0, loss=1.0))
    file.add_row("evaluations", EvaluationRow(step=4, attempt=0, time=0, bleu=1.0))
    file.add_row("evaluations", EvaluationRow(step=8, attempt=0, time=0, bleu=2.0))
    file.replace_attempt(Attempt(number=1, started=9, first_step=7, ranks=2))
    file.add("steps", steps_table(7, 12, 1, loss=2.0))
    file.add_row("evaluations", EvaluationRow(step=8, attempt=1, time=0, bleu=3.0))
    records = read(tmp_path / "records.db")
    assert records.steps["step"].tolist() == list(range(1, 13))
    assert records.steps["loss"].tolist() == [1.0] * 6 + [2.0] * 6
    assert [(row.step, row.bleu) for row in records.evaluations] == [(4, 1.0), (8, 3.0)]


def test_steps_that_were_made_again_are_in_a_table_of_their_own(file: RecordsFile, tmp_path: Path) -> None:
    """Attempt 1 repeats the last two steps of attempt 0, and attempt 2 the last three of both."""
    for number, first, last in ((0, 1, 10), (1, 9, 12), (2, 8, 14)):
        file.replace_attempt(Attempt(number=number, started=number, first_step=first, ranks=2))
        file.add("steps", steps_table(first, last, number))
    records = read(tmp_path / "records.db")
    assert records.steps["step"].tolist() == list(range(1, 15))
    assert records.repeated["step"].tolist() == [8, 9, 10, 9, 10, 11, 12]
    assert records.repeated["attempt"].tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_faults_come_back_in_the_order_of_time(file: RecordsFile, tmp_path: Path) -> None:
    later = Fault(
        time=9.0, attempt=0, step=5, kind="killed", host="b", rank=1, detail="SIGKILL", steps_lost=2
    )
    sooner = Fault(time=3.0, attempt=0, step=2, kind="slow_rank", noticed_seconds=0.5, stacks="stacks/0.txt")
    file.add_row("faults", later)
    file.add_row("faults", sooner)
    assert read(tmp_path / "records.db").faults == [sooner, later]


def test_older_records_have_no_faults_until_they_are_continued(file: RecordsFile, tmp_path: Path) -> None:
    file.close()
    with sqlite3.connect(tmp_path / "records.db") as older:
        older.execute("DROP TABLE faults")
    older.close()
    assert read(tmp_path / "records.db").faults == []
    continued = RecordsFile(tmp_path / "records.db")
    continued.add_row("faults", Fault(time=3.0, attempt=0, step=2, kind="notice"))
    assert continued.last_time == -np.inf
    assert [fault.kind for fault in read(tmp_path / "records.db").faults] == ["notice"]
    assert RecordsFile(tmp_path / "records.db").last_time == 3.0


def test_an_attempt_is_updated_not_doubled(file: RecordsFile, tmp_path: Path) -> None:
    attempt = Attempt(number=0, started=1.0, first_step=1, ranks=2)
    file.replace_attempt(attempt)
    file.replace_attempt(attempt.model_copy(update={"ended": 5.0, "reason": "finished"}))
    assert [a.reason for a in read(tmp_path / "records.db").attempts] == ["finished"]


def test_what_is_not_a_number_comes_back_as_nan(file: RecordsFile, tmp_path: Path) -> None:
    file.add("steps", steps_table(1, 2, 0) | {"loss": np.array([np.nan, np.inf])})
    assert np.isnan(read(tmp_path / "records.db").steps["loss"]).all()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2.5, None])
def test_a_loss_that_is_no_number_is_told_from_one_that_was_not_scored(
    value: float | None, file: RecordsFile, tmp_path: Path
) -> None:
    file.add_row("evaluations", EvaluationRow(step=4, attempt=0, time=0, eval_loss=value))
    (row,) = read(tmp_path / "records.db").evaluations
    assert repr(row.eval_loss) == repr(value)


def test_old_seconds_become_minutes_that_keep_bytes_and_peaks(file: RecordsFile, tmp_path: Path) -> None:
    times = np.arange(600.0)
    rates = np.where(times % 60 == 30, 100.0, 10.0)
    table = {column(name): rates for name in COLUMNS["nics"]}
    names = np.array(["eth0"] * 600)
    fixed = {"time": times, "host": np.zeros(600), "span": np.ones(600), "interface": names}
    file.add("nics", {**table, **fixed})
    file.thin(before=300.0)
    nics = read(tmp_path / "records.db").nics
    assert sorted(nics["span"].tolist()) == [1.0] * 300 + [60.0] * 5
    assert np.isclose((nics["sent_bytes"] * nics["span"]).sum(), rates.sum())
    assert set(nics["sent_bytes_most"][nics["span"] == 60]) == {100.0}


def test_cores_are_kept_by_the_second_and_left_out_by_the_minute(file: RecordsFile, tmp_path: Path) -> None:
    table = {column(name): np.full(120, 0.5) for name in COLUMNS["hosts"]}
    fixed = {"time": np.arange(120.0), "span": np.ones(120), "core_shares": np.array(["3264"] * 120)}
    file.add("hosts", {**table, **fixed})
    file.thin(before=60.0)
    hosts = read(tmp_path / "records.db").hosts
    assert hosts["core_shares"].tolist() == ["3264"] * 60 + [""]
    assert core_shares("3264") == [0.5, 1.0] and core_shares("") == []


def test_rows_with_text_and_numbers_come_back(file: RecordsFile, tmp_path: Path) -> None:
    file.add_row("events", Event(time=1, attempt=0, step=3, kind="checkpoint", seconds=0.5, detail="ä"))
    file.add_row("probes", Probe(time=1, attempt=0, step=3, kind="link", numbers={"bits_per_second": 1e9}))
    file.write_facts({"ranks": 4, "hosts": ["a", "b"]})
    records = read(tmp_path / "records.db")
    assert records.events[0].detail == "ä"
    assert records.probes_of("link")[0].numbers == {"bits_per_second": 1e9}
    assert (records.facts.ranks, records.facts.hosts) == (4, ["a", "b"])


def test_a_report_reads_while_the_run_writes(file: RecordsFile, tmp_path: Path) -> None:
    for first in range(1, 50, 7):
        file.add("steps", steps_table(first, first + 6, 0))
        assert read(tmp_path / "records.db").steps["step"][-1] == first + 6


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to be looked at" * 20])
def test_a_file_that_is_no_database_is_an_error_of_ours(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "records.db").write_bytes(content)
    with pytest.raises(DataError, match="records"):
        read(tmp_path / "records.db")
    with pytest.raises(UsageError):
        read(tmp_path / "missing.db")


def test_records_of_another_schema_are_refused(file: RecordsFile, tmp_path: Path) -> None:
    file.write_facts({"schema": 99})
    with pytest.raises(DataError, match="schema"):
        read(tmp_path / "records.db")


def test_300_000_steps_on_64_ranks_stay_under_100_mb(file: RecordsFile, tmp_path: Path) -> None:
    """Measured on a tenth of a percent, and multiplied: rows are all alike."""
    generator = np.random.default_rng(1)
    interval, ranks, intervals = 50, 64, 40
    for number in range(intervals):
        first = 250_000 + number * interval  # large numbers take more bytes
        varied = {name: generator.random(interval) for name in steps_table(1, interval, 0)}
        for phase in PHASES:
            varied[f"{phase}_slowest"] = generator.integers(ranks, size=interval)
        fixed = steps_table(first, first + interval - 1, 0)
        integers = {"target_tokens": np.full(interval, 25_000), "pairs": np.full(interval, 900)}
        file.add("steps", varied | {"step": fixed["step"], "attempt": fixed["attempt"]} | integers)
        windows = {column(name): generator.random(ranks) * 60 for name in COLUMNS["windows"]}
        limits = {"first_step": np.full(ranks, first), "last_step": np.full(ranks, first + interval)}
        file.add("windows", windows | limits | {"attempt": np.zeros(ranks), "rank": np.arange(ranks)})
    file.close()
    with sqlite3.connect(tmp_path / "records.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    size = (tmp_path / "records.db").stat().st_size
    assert size * 300_000 / (interval * intervals) < 90e6  # hosts' seconds and minutes need the rest


def test_records_from_before_there_was_a_run_clock_are_read_and_continued(tmp_path: Path) -> None:
    shutil.copyfile(Path(__file__).parents[1] / "runs" / "too-short.db", tmp_path / "records.db")
    before = read(tmp_path / "records.db")
    file = RecordsFile(tmp_path / "records.db")
    (past,) = file.past
    assert past.ended
    assert past.clock_offset is None and not past.jumps
    assert file.last_time >= past.ended
    file.replace_attempt(Attempt(number=1, started=file.last_time, first_step=9, ranks=1, jump_before=5.0))
    file.close()
    after = read(tmp_path / "records.db")
    assert [attempt.jumps for attempt in after.attempts] == [[], [5.0]]
    assert len(after.steps["step"]) == min(8, len(before.steps["step"]))


@pytest.fixture
def older(tmp_path: Path, file: RecordsFile) -> Path:
    """A file from before steps had counters, with a window in it."""
    window = {column(name): np.array([1.0]) for name in COLUMNS["windows"]}
    file.replace_attempt(Attempt(number=0, started=0, first_step=1, ranks=1))
    file.add("windows", window)
    file.close()
    with sqlite3.connect(tmp_path / "records.db") as changed:
        for name in COUNTED:
            changed.execute(f"ALTER TABLE windows DROP COLUMN {name if 'bytes' in name else name + '_us'}")
    changed.close()
    return tmp_path / "records.db"


def test_what_an_older_run_did_not_count_is_unknown(older: Path) -> None:
    windows = read(older).windows
    assert windows["forward"].tolist() == [1.0]
    assert all(np.isnan(windows[name]).all() for name in COUNTED)


def test_an_older_run_that_continues_counts_from_then_on(older: Path) -> None:
    file = RecordsFile(older)
    file.add("windows", {column(name): np.array([2.0]) for name in COLUMNS["windows"]})
    file.close()
    windows = read(older).windows
    assert windows["forward"].tolist() == [1.0, 2.0]
    assert np.isnan(windows["cpu"][0]) and windows["cpu"][1] == 2.0
    assert np.isnan(windows["sent_bytes"][0]) and windows["sent_bytes"][1] == 2.0
