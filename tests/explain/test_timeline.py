"""explain/timeline.py: one row for each start, fault, returning host and stop, in order."""

from __future__ import annotations

import pytest

from dragoman.explain.timeline import is_eventful, timeline
from dragoman.measure.records import Attempt, Event, Fault, Records, RunFacts
from tests.explain import build
from tests.explain.altered import elastic
from tests.explain.faulty import NOTICED_SECONDS


def attempt(number: int, started: float, **more: object) -> Attempt:
    return Attempt.model_validate({"number": number, "started": started, "first_step": 1, "ranks": 2, **more})


def test_every_start_fault_join_and_stop_has_a_row() -> None:
    rows = timeline(elastic())
    told = [(row.kind, row.step, row.where) for row in rows]
    assert told == [
        ("start", 0, ""),
        ("fault", 60, "rank 2 on host1"),
        ("start", 57, ""),
        ("fault", 150, "host1"),
        ("start", 150, ""),
        ("joined", 210, "host1"),
        ("start", 210, ""),
        ("fault", 300, "rank 0 on host0"),
        ("start", 299, ""),
        ("stop", None, ""),
    ]
    assert [row.attempt for row in rows] == [1, 1, 2, 2, 3, 4, 4, 4, 5, 5]


def test_a_fault_tells_what_it_cost_and_a_join_how_long_it_took() -> None:
    rows = timeline(elastic())
    first, _, _ = (row for row in rows if row.kind == "fault")
    assert (first.fault, first.noticed_seconds, first.steps_repeated) == ("killed", NOTICED_SECONDS, 3)
    assert first.still_seconds == pytest.approx(6.0)
    assert first.stacks == "stacks/host0-rank0.txt"
    (joined,) = (row for row in rows if row.kind == "joined")
    assert joined.still_seconds == pytest.approx(3.2)


def test_times_count_from_the_start_and_are_dated_by_the_wall_clock_as_it_was_set() -> None:
    records = elastic()
    records.attempts[1].jump_before = 3600.0
    rows = timeline(records)
    assert rows[0].seconds == 0 and rows[0].clock_time == build.BEGAN
    (clock,) = (row for row in rows if row.kind == "clock")
    assert clock.attempt == 2 and clock.time == records.attempts[1].started
    for row in rows:
        assert row.time is not None and row.seconds == pytest.approx(row.time - build.BEGAN)
        assert row.clock_time == pytest.approx(row.time + 3600 * (row.attempt > 1))


def test_a_clock_that_was_set_at_an_unknown_time_stands_with_its_attempt() -> None:
    records = Records(RunFacts(), [attempt(1, 1e9), attempt(2, 1e9 + 50, jumps_during=[-90.0])])
    assert [(row.kind, row.attempt, row.time is None) for row in timeline(records)] == [
        ("start", 1, False),
        ("start", 2, False),
        ("clock", 2, True),
    ]
    records.faults = [Fault(time=1e9 + 60, attempt=2, step=0, kind="clock_jump")]
    assert [row.kind for row in timeline(records)] == ["start", "start", "fault"]


def test_stops_between_attempts_are_told_if_nothing_else_says_why() -> None:
    rows = [attempt(1, 10, ended=20.0, reason="stopped"), attempt(2, 30), attempt(3, 50, ended=60.0)]
    kinds = [(row.kind, row.time) for row in timeline(Records(RunFacts(), rows))]
    assert kinds == [("start", 10), ("stop", 20), ("start", 30), ("start", 50), ("stop", 60)]


def test_errors_in_the_log_of_another_program_are_faults() -> None:
    error = Event(time=25.0, attempt=1, step=3, kind="fault", detail="CUDA out of memory")
    rows = timeline(Records(RunFacts(source="fairseq"), [attempt(1, 10)], events=[error]))
    assert [(row.kind, row.what) for row in rows][1] == ("fault", "CUDA out of memory")
    assert rows[1].clock_time is None, "the log has no dates"


def test_a_run_that_started_and_ended_is_not_eventful() -> None:
    assert not is_eventful(timeline(build.records()))
    assert not is_eventful(timeline(build.NOTHING))
    assert is_eventful(timeline(elastic()))
    assert not timeline(build.NOTHING)


def test_rows_for_json_leave_out_what_is_not_known() -> None:
    documents = [row.document for row in timeline(elastic())]
    assert documents[0].keys() == {"kind", "what", "attempt", "time", "clock_time", "seconds", "step"}
    assert documents[1]["stacks"] and documents[1]["fault"] == "killed"
