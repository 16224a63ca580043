"""explain/duration.py: wall clock, what it went into, what is left, what it cost."""

import numpy as np
import pytest

from dragoman import format_units
from dragoman.explain.duration import PARTS, explain
from dragoman.measure.records import Attempt, Event, Records, RunFacts
from tests.explain import build
from tests.explain.build import Run
from tests.facts import lacking


def test_parts_add_up_to_the_wall_clock() -> None:
    finding = explain(build.records(evaluate_every=20, checkpoint_every=50))
    numbers = finding.numbers
    parts = ("training", "evaluation", "checkpoint", "startup", "restart", "other")
    assert sum(numbers[f"{part}_seconds"] for part in parts) == pytest.approx(numbers["wall_seconds"])
    assert numbers["evaluation_seconds"] == 20 * 2.0
    assert numbers["checkpoint_seconds"] == 8 * 0.5
    assert numbers["startup_seconds"] == 10
    assert numbers["steps"] == 400
    assert "eta_seconds" not in numbers


@pytest.mark.parametrize(
    ("reason", "finished"),
    [("finished", True), ("no improvement", True), ("stopped", False), ("diverged", False), (None, False)],
)
def test_finished_means_ended_by_itself(reason: str | None, finished: bool) -> None:
    assert explain(build.records(reason=reason)).numbers["finished"] is finished


def test_running_run_says_what_is_left() -> None:
    finding = explain(build.records(reason=None, wanted_steps=1000))
    per_step = 0.988 + (8 * 2.0 + 4 * 0.5) / 400
    assert finding.numbers["eta_seconds"] == pytest.approx(600 * per_step, rel=0.02)
    assert not lacking(finding.answer, format_units.seconds(finding.numbers["eta_seconds"]))


def test_tokens_per_second_are_reported_for_steps_and_for_all_the_time() -> None:
    numbers = explain(build.records(evaluate_every=20)).numbers
    tokens = 400 * 24_000
    assert numbers["tokens_per_step_second"] == pytest.approx(tokens / numbers["training_seconds"])
    assert numbers["tokens_per_wall_second"] == pytest.approx(tokens / numbers["wall_seconds"])
    assert "tokens_per_wall_second" not in explain(build.foreign()).numbers


def test_price_is_per_host_and_hour() -> None:
    finding = explain(build.records(), price_per_hour=3.0)
    assert finding.numbers["money"] == pytest.approx(2 * 3.0 * finding.numbers["wall_seconds"] / 3600)
    assert finding.numbers["price_per_host_hour"] == 3.0
    assert not lacking(finding.answer, 3, "2 hosts", f"{finding.numbers['money']:.2f}")
    assert "money" not in explain(build.records()).numbers


def test_hosts_that_left_are_not_paid_for_any_longer() -> None:
    records = build.in_turn(Run(steps=400), Run(steps=100, ranks=1, hosts=1))
    finding = explain(records, price_per_hour=3.0)
    first, then = records.attempts
    assert then.ended
    paid = 2 * (then.started - first.started) + (then.ended - then.started)
    assert finding.numbers["money"] == pytest.approx(3.0 * paid / 3600)
    assert not lacking(finding.answer, 3, 1, 2, f"{finding.numbers['money']:.2f}")


def restarted() -> Records:
    """100 steps of a second, a crash, 60 s of silence, and the last 20 of them again."""
    seconds = np.ones(180)
    ended = np.concatenate((5.0 + np.arange(1, 81), 170.0 + np.arange(1, 101)))
    steps = {"step": np.arange(1.0, 181), "attempt": np.repeat([1.0, 2.0], (80, 100))}
    return Records(
        RunFacts(hosts=["a"]),
        [
            Attempt(number=1, started=0, first_step=1, ranks=1),
            Attempt(number=2, started=165, first_step=81, ranks=1, ended=272, reason="finished"),
        ],
        steps=steps | {"seconds": seconds, "ended": ended},
        events=[Event(time=105, attempt=1, step=100, kind="fault")],
    )


def test_restart_is_from_the_last_sign_of_life() -> None:
    numbers = explain(restarted()).numbers
    assert numbers["restart_seconds"] == pytest.approx(60)
    assert numbers["startup_seconds"] == pytest.approx(5 + 5)
    assert numbers["other_seconds"] == pytest.approx(20 + 2), "steps made twice, and the end"
    assert numbers["attempts"] == 2
    assert not lacking(explain(restarted()).answer, "2 attempts")


def test_a_run_first_heard_of_at_its_first_step_has_no_startup() -> None:
    assert 3.7 + 1.1 - 1.1 > 3.7, "in floating point"
    steps = {
        "step": np.ones(1),
        "attempt": np.ones(1),
        "seconds": np.full(1, 1.1),
        "ended": np.full(1, 3.7 + 1.1),
    }
    attempts = [Attempt(number=1, started=3.7, first_step=1, ranks=1)]
    finding = explain(Records(RunFacts(), attempts, steps=steps))
    assert finding.numbers["startup_seconds"] == 0
    assert PARTS["startup_seconds"] not in finding.answer


def test_log_with_step_times_only_gives_no_wall_clock() -> None:
    finding = explain(build.foreign())
    assert finding.verdict == "stated"
    assert finding.numbers["training_seconds"] == pytest.approx(380)
    assert "wall_seconds" not in finding.numbers
    assert "finished" not in finding.numbers


def test_nothing_recorded_is_unknown() -> None:
    assert explain(build.NOTHING).verdict == "unknown"


def test_a_jump_that_the_run_noticed_is_reported_and_taken_out_once() -> None:
    records = build.records()
    plain = explain(records).numbers
    records.attempts[0].clock_offset = 1.0
    records.attempts[0].jumps_during = [3600.0, -86_400.0]
    finding = explain(records)
    assert finding.numbers["wall_seconds"] == plain["wall_seconds"]
    assert finding.numbers["clock_jump_seconds"] == 3600.0 - 86_400.0
    assert finding.numbers["clock_jumps"] == 2
    assert not lacking(finding.answer, "60 min", "24 h")
    assert "clock_jumps" not in plain


def test_times_that_go_back_in_old_records_are_a_jump_that_does_not_count() -> None:
    """An hour back after step 200; the records are of a version that kept the wall clock's times."""
    records = build.records()
    wall = explain(records).numbers["wall_seconds"]
    records.steps["ended"][200:] -= 3600
    attempt = records.attempts[0]
    assert attempt.ended
    attempt.ended -= 3600
    numbers = explain(records, price_per_hour=1.0).numbers
    assert numbers["wall_seconds"] == pytest.approx(wall, abs=5), "an evaluation may lie between the steps"
    assert numbers["clock_jump_seconds"] == pytest.approx(-3600, abs=5)
    assert numbers.get("money", 0.0) >= 0


def test_an_old_attempt_that_begins_before_the_last_ended_is_a_jump() -> None:
    records = restarted()
    records.attempts[1].started -= 3600
    records.attempts[1].ended -= 3600  # type: ignore[operator]
    records.steps["ended"][80:] -= 3600
    numbers = explain(records).numbers
    assert numbers["clock_jump_seconds"] == pytest.approx(165 - 3600 - 85)
    assert 180 <= numbers["wall_seconds"] <= 272
    assert numbers["restart_seconds"] == 0


def test_without_attempts_a_run_lasts_from_its_first_step_to_its_last_record() -> None:
    steps = {
        "step": np.arange(1.0, 4),
        "seconds": np.array([2.0, 1.0, 1.0]),
        "ended": np.array([10.0, 11, 15]),
    }
    records = Records(RunFacts(), steps=steps)
    assert explain(records).numbers["wall_seconds"] == 7
    records.events = [Event(time=20.0, attempt=1, step=3, kind="checkpoint", seconds=3.0)]
    assert explain(records).numbers["wall_seconds"] == 15


def test_what_is_left_goes_at_the_pace_of_the_newest_200_steps() -> None:
    records = build.records(reason=None, wanted_steps=500, evaluation_seconds=0.0, checkpoint_seconds=0.0)
    records.steps["seconds"] = np.where(records.steps["step"] > 200, 2.0, 1.0)
    assert explain(records).numbers["eta_seconds"] == pytest.approx(200.0)


@pytest.mark.parametrize("missing", ["step", "seconds"])
def test_steps_without_numbers_or_seconds_and_without_times_tell_no_duration(missing: str) -> None:
    steps = {"step": np.arange(1.0, 11), "seconds": np.ones(10)}
    assert explain(Records(RunFacts(), steps=steps)).numbers["training_seconds"] == 10
    del steps[missing]
    assert explain(Records(RunFacts(), steps=steps)).verdict == "unknown"


def test_evaluations_inside_the_seconds_of_steps_are_taken_off_where_they_were_timed() -> None:
    steps = {"step": np.arange(1.0, 11), "seconds": np.ones(10)}
    records = Records(RunFacts(source="fairseq", seconds_include_evaluations=True), steps=steps)
    assert explain(records).numbers["training_seconds"] == 10
    records.events = [Event(time=5.0, attempt=1, step=5, kind="evaluation", seconds=3.0)]
    assert explain(records).numbers["training_seconds"] == 7
