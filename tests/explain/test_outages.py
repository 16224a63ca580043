"""explain/outages.py: what each fault cost, held against runs whose faults are known."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dragoman.explain import duration, fault_words
from dragoman.explain.outages import Outage, outages, outside_outages
from dragoman.explain.run import explain
from dragoman.measure.records import Attempt, Event, Fault, Records, RunFacts
from tests.explain import build
from tests.explain.faulty import STARTUP_SECONDS, Lost, with_faults
from tests.facts import lacking

PARTS = ("training", "evaluation", "checkpoint", "startup", "restart", "other")
THREE = (
    Lost(step=120, still_seconds=6.0, repeated=3, kind="killed", rank=2, host="host1", detail="SIGKILL"),
    Lost(step=200, still_seconds=30.0, kind="host_unreachable", rank=None, host="host0"),
    Lost(step=333, still_seconds=2.5, repeated=1, kind="out_of_memory", rank=0, host="host0"),
)


def costs(records: Records) -> list[tuple[float, int]]:
    return [(round(one.still_seconds, 6), one.steps_repeated) for one in outages(records)]


def test_a_fault_costs_the_time_from_the_last_step_to_the_next_and_the_steps_made_twice() -> None:
    records = with_faults(build.records(), *THREE)
    assert costs(records) == [(6.0, 3), (30.0, 0), (2.5, 1)]
    again = records.repeated["seconds"]
    assert [round(one.repeated_seconds, 6) for one in outages(records)] == [
        round(float(again[:3].sum()), 6),
        0.0,
        round(float(again[3]), 6),
    ]
    numbers = duration.explain(records).numbers
    assert numbers["faults"] == 3
    assert numbers["steps_repeated"] == 4
    assert numbers["fault_seconds"] == pytest.approx(38.5 + float(again.sum()))
    assert [row["step"] for row in numbers["costliest_faults"]] == [200, 120, 333]


def test_parts_still_add_up_to_the_wall_clock() -> None:
    numbers = duration.explain(with_faults(build.records(), *THREE)).numbers
    plain = duration.explain(build.records()).numbers
    assert sum(numbers[f"{part}_seconds"] for part in PARTS) == pytest.approx(numbers["wall_seconds"])
    for part in ("training", "evaluation", "checkpoint"):
        assert numbers[f"{part}_seconds"] == pytest.approx(plain[f"{part}_seconds"])
    assert numbers["startup_seconds"] == plain["startup_seconds"] + 3 * STARTUP_SECONDS
    assert numbers["wall_seconds"] == pytest.approx(
        plain["wall_seconds"] + numbers["fault_seconds"], abs=2.01
    )


def test_the_costliest_three_are_named_with_their_seconds() -> None:
    records = with_faults(
        build.records(), *THREE, Lost(step=380, still_seconds=1.1, kind="exception", rank=3)
    )
    sentence = fault_words.sentence(outages(records))
    assert not lacking(sentence, "4 faults", "host1", "SIGKILL", 120, "30 s", 200, 333, "1 other")
    assert lacking(sentence, 380)
    assert sentence in duration.explain(records).answer
    assert "faults" not in duration.explain(build.records()).numbers
    assert fault_words.sentence([]) == ""


def test_of_several_faults_that_ended_an_attempt_the_first_carries_the_cost() -> None:
    records = with_faults(build.records(), THREE[0])
    (fault,) = records.faults
    other = fault.model_copy(update={"rank": 3, "time": fault.time + 0.1})
    both = Records(**{**vars(records), "faults": [other, fault]})
    assert [(one.fault.rank, one.still_seconds > 0) for one in outages(both)] == [(2, True), (3, False)]
    assert sum(one.seconds for one in outages(both)) == pytest.approx(outages(records)[0].seconds)


def faults_of(*rows: tuple[int, float, int], attempts: list[Attempt], kind: str = "killed") -> Records:
    """Steps of a second: 1 to 10 end at 11 to 20, and 11 to 20 after 60 s in the last attempt."""
    ended = np.concatenate((10.0 + np.arange(1, 11), 80.0 + np.arange(1, 11)))
    steps = {"step": np.arange(1.0, 21), "ended": ended, "seconds": np.ones(20)}
    last = attempts[-1].number
    faults = [
        Fault.model_validate({"attempt": attempt, "time": at, "step": step, "kind": kind})
        for attempt, at, step in rows
    ]
    return Records(
        RunFacts(), attempts, steps={**steps, "attempt": np.repeat([1.0, float(last)], 10)}, faults=faults
    )


def attempt(number: int, started: float, first_step: int = 11, **more: object) -> Attempt:
    values = {"number": number, "started": started, "first_step": first_step, "ranks": 2, **more}
    return Attempt.model_validate(values)


def test_an_attempt_that_failed_before_its_first_step_has_a_cost_of_its_own() -> None:
    tries = [attempt(1, 5, 1), attempt(2, 25), attempt(3, 40), attempt(4, 70)]
    records = faults_of((1, 20.5, 10), (2, 30.0, 10), (3, 44.0, 10), attempts=tries)
    assert costs(records) == [(10.0, 0), (14.0, 0), (36.0, 0)]


def test_a_stop_by_the_user_ends_what_a_fault_cost() -> None:
    tries = [attempt(1, 5, 1), attempt(2, 25, ended=28.0, reason="stopped"), attempt(3, 70)]
    assert costs(faults_of((1, 20.5, 10), attempts=tries)) == [(8.0, 0)]


def test_a_fault_after_which_the_attempt_made_further_steps_costs_nothing() -> None:
    records = faults_of((1, 15.2, 5), attempts=[attempt(1, 5, 1), attempt(2, 70)], kind="disk_full")
    assert costs(records) == [(0.0, 0)]


def test_a_fault_that_ended_the_run_is_said_to_have() -> None:
    (one,) = outages(faults_of((2, 90.5, 20), attempts=[attempt(1, 5, 1), attempt(2, 70)]))
    assert one.ended_run and one.seconds == 0
    finished = [attempt(1, 5, 1), attempt(2, 70, ended=95.0, reason="finished")]
    (one,) = outages(faults_of((2, 90.5, 20), attempts=finished))
    assert not one.ended_run


def test_a_clock_that_was_set_ends_no_attempt() -> None:
    records = faults_of((1, 20.5, 10), attempts=[attempt(1, 5, 1), attempt(2, 70)], kind="clock_jump")
    assert costs(records) == [(0.0, 0)]


def test_steps_whose_rows_were_lost_with_rank_0_are_counted_at_the_usual_pace() -> None:
    records = faults_of((1, 22.5, 12), attempts=[attempt(1, 5, 1), attempt(2, 70)])
    records.faults[0] = records.faults[0].model_copy(update={"steps_lost": 2})
    (one,) = outages(records)
    assert (one.steps_repeated, one.repeated_seconds, one.still_seconds) == (2, 2.0, 60.0)
    assert duration.explain(records).numbers["steps_repeated"] == 2


def test_an_evaluation_that_was_completed_is_no_time_lost() -> None:
    records = faults_of((1, 20.5, 10), attempts=[attempt(1, 5, 1), attempt(2, 70)])
    records.events = [Event(time=20.0, attempt=1, step=10, kind="evaluation", seconds=15.0)]
    assert costs(records) == [(45.0, 0)]


def test_steps_repeated_twice_belong_to_the_fault_that_made_it_necessary() -> None:
    """Attempt 1 makes 1 to 12, attempt 2 makes 11 to 12 again, attempt 3 makes 9 to 20."""
    tries = [attempt(1, 5, 1), attempt(2, 30, 11), attempt(3, 70, 9)]
    records = faults_of((1, 22.5, 12), (2, 40.0, 12), attempts=tries)
    again = {"step": np.array([11.0, 12, 9, 10, 11, 12]), "attempt": np.array([1.0, 1, 1, 1, 2, 2])}
    ended = np.array([21.0, 22, 19, 20, 32, 33])
    records.repeated |= {**again, "ended": ended, "seconds": np.ones(6)}
    assert [one.steps_repeated for one in outages(records)] == [2, 4]


@pytest.mark.parametrize(
    ("kind", "rank", "count", "told"),
    [
        ("out_of_memory", 1, 1, ["data.split=2", "train.recompute=true"]),
        ("disk_full", 1, 1, ["checkpoint.keep_last=1"]),
        ("host_unreachable", None, 3, ["host1", "--hosts", 3]),
        ("host_unreachable", None, 2, []),
        ("killed", 1, 3, []),
    ],
)
def test_advice_is_given_where_it_helps(kind: str, rank: int | None, count: int, told: list[str]) -> None:
    losses = [Lost(step=50 * number, kind=kind, rank=rank) for number in range(1, count + 1)]  # type: ignore[arg-type]
    advice = duration.explain(with_faults(build.records(), *losses)).advice
    assert bool(advice) == bool(told)
    assert not told or not lacking(advice[0], *told)


def test_meters_of_the_time_in_which_training_stood_still_are_left_out() -> None:
    records = with_faults(build.records(), Lost(step=100, still_seconds=60.0))
    (one,) = outages(records)
    times = np.array([one.start - 1, one.start + 10, one.start + 30, one.start + 59.5])
    meters = {"time": times, "span": np.ones(4), "cpu_share": np.array([0.9, 0, 0, 0.8]), "host": np.zeros(4)}
    records.hosts = Records(RunFacts(), hosts=meters).hosts
    assert outside_outages(records).hosts["cpu_share"].tolist() == [0.9, 0.8]
    assert len(records.hosts["time"]) == 4


def test_answers_about_steps_are_those_of_the_run_without_faults() -> None:
    """The first steps after each fault take a minute each, and are no slow steps."""
    plain = build.records(exchange=0.5, counted_bytes=3.8e8)
    losses = [Lost(step=step, still_seconds=40.0, repeated=step % 3) for step in range(40, 400, 40)]
    records = with_faults(build.records(exchange=0.5, counted_bytes=3.8e8), *losses)
    firsts = np.isin(records.steps["step"], [a.first_step for a in records.attempts[1:]])
    records.steps["seconds"] = records.steps["seconds"] + 30.0 * firsts
    before, after = ({one.id: one for one in explain(each)} for each in (plain, records))
    for id in ("network", "device_utilisation", "step_time", "step_network"):
        assert after[id].verdict == before[id].verdict
    for name in ("mean_seconds", "p95_seconds"):
        told, wanted = after["step_time"].numbers[name], before["step_time"].numbers[name]
        assert told == pytest.approx(wanted, rel=0.01)
    assert "changes" not in after["step_time"].numbers


def test_the_time_left_is_not_that_of_the_slow_first_steps_after_a_fault() -> None:
    losses = [Lost(step=step) for step in range(220, 400, 20)]
    records = with_faults(build.records(reason=None, wanted_steps=500), *losses)
    usual = duration.explain(records).numbers["eta_seconds"]
    firsts = np.isin(records.steps["step"], [a.first_step for a in records.attempts[1:]])
    records.steps["seconds"] = records.steps["seconds"] + 30.0 * firsts
    assert duration.explain(records).numbers["eta_seconds"] == pytest.approx(usual, rel=0.03)


def of_many_attempts(attempts: int, steps: int) -> Records:
    """Steps of a second; a fault after each attempt, and every second attempt without one of the hosts."""
    number = np.arange(1.0, steps + 1)
    each = (number - 1) * attempts // steps
    ended = number + 10 * (each + 1)
    placed = [{"ranks": 4, "hosts": ["a", "b"]}, {"ranks": 2, "hosts": ["a"]}]
    firsts = (np.searchsorted(each, np.arange(attempts)) + 1).tolist()
    rows = [
        Attempt(
            number=place + 1, started=first - 1.0 + 10 * place, first_step=first, clock_offset=0.0,
            ranks=placed[place % 2]["ranks"], placement=placed[place % 2],  # type: ignore[arg-type]
        )
        for place, first in enumerate(firsts)
    ]  # fmt: skip
    faults = [
        Fault(time=row.started, attempt=row.number - 1, step=row.first_step - 1, kind="killed", host="b")
        for row in rows[1:]
    ]
    phases = dict.fromkeys(("data", "forward", "backward", "exchange", "optimizer"), np.full(steps, 0.2))
    columns = {f"{name}_{kind}": each for name, each in phases.items() for kind in ("mean", "least", "most")}
    table = {"step": number, "attempt": each + 1.0, "ended": ended, "seconds": np.ones(steps), **columns}
    seconds = np.arange(0.0, 20_000)
    hosts = {"host": seconds % 2, "time": 15 * seconds, "span": np.ones(20_000), "cpu_share": seconds % 1}
    facts = RunFacts(ranks=4, hosts=["a", "b"], rank_hosts=[0, 0, 1, 1])
    return Records(facts, rows, steps=table, hosts=hosts, faults=faults)


def test_500_attempts_are_explained_in_about_the_time_of_one() -> None:
    """In computing time, because other programs share the machine; the limit is loose for the same reason."""

    def spent(records: Records) -> float:
        began = time.process_time()
        explain(records)
        return time.process_time() - began

    one, many = of_many_attempts(1, 100_000), of_many_attempts(500, 100_000)
    spent(one)  # what is imported and compiled the first time
    assert spent(many) < 3 * spent(one) + 1.0
    assert costs(many) == [(10.0, 0)] * 499


def test_outages_never_count_a_second_twice() -> None:
    records = with_faults(build.records(), *THREE)
    spans = sorted((one.start, one.start + one.still_seconds) for one in outages(records))
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert not outages(build.records())
    assert Outage(records.faults[0]).seconds == 0
