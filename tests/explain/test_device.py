"""explain/device.py: computing told from waiting, and each wait from the others."""

import re

import numpy as np
import pytest

from dragoman.explain import network
from dragoman.explain.device import explain
from dragoman.explain.straggler import straggler
from dragoman.measure.records import Event, Records, RunFacts
from tests.explain import build
from tests.explain.sentences import gains, wording
from tests.facts import lacking, only


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "computing"),
        ({"exchange": 0.15}, "computing"),
        ({"exchange": 0.5}, "waiting_network"),
        ({"exchange": 3.0}, "waiting_network"),
        ({"data": 0.5}, "waiting_data"),
        ({"slow_rank": 3, "slow_by": 2.0}, "waiting_straggler"),
        ({"slow_rank": 1, "slow_by": 2.0, "ranks": 2}, "waiting_straggler"),
        ({"slow_rank": 0, "slow_data": 1.0}, "waiting_straggler"),
        ({"counted_cores": [0.97] * 4}, "computing"),
        ({"counted_cores": [0.85] * 4}, "computing"),
        ({"counted_cores": [0.5] * 4}, "waiting_cpu"),
        ({"counted_cores": [0.5] * 4, "hosts": 1}, "waiting_cpu"),
        ({"counted_cores": [0.5] * 4, "exchange": 3.0}, "waiting_network"),
        ({"counted_cores": [1, 1, 1, 0.5], "slow_rank": 3, "slow_by": 2.0}, "waiting_straggler"),
        ({"counted_cores": [1, 0.5], "ranks": 2, "hosts": 1, "slow_rank": 1, "slow_by": 2.0}, "waiting_cpu"),
        (
            {"counted_cores": [1, 1], "ranks": 2, "hosts": 1, "slow_rank": 1, "slow_by": 2.0},
            "waiting_straggler",
        ),
        ({"evaluate_every": 2}, "computing"),
        ({"hosts": 1, "ranks": 1, "exchange": 0.0}, "computing"),
    ],
)
def test_verdict_names_the_dearest_wait(changes: dict[str, float], verdict: str) -> None:
    finding = explain(build.records(**changes))
    assert finding.verdict == verdict
    assert finding.confidence == "measured"


def test_shares_are_those_of_the_phases() -> None:
    numbers = explain(build.records(exchange=0.5, data=0.1)).numbers
    step = 0.1 + 0.9 + 0.5 + 0.05
    assert numbers["compute_share"] == pytest.approx(0.95 / step, abs=0.02)
    assert numbers["data_share"] == pytest.approx(0.1 / step, abs=0.01)
    assert numbers["network_share"] == pytest.approx(0.5 / step, abs=0.02)


def test_flops_share_is_of_the_measured_peak() -> None:
    numbers = explain(build.records(peak_flops_per_second=5e12)).numbers
    assert numbers["flops_share"] == pytest.approx(2e12 / 0.988 / 5e12, rel=0.02)
    assert "flops_share" not in explain(build.records(changes={"flops_per_step": None})).numbers


def test_the_evidence_names_the_number_format_of_the_peak() -> None:
    words = "fp32 with products in TF32"
    only(explain(build.records(changes={"precision": words})).evidence, "flops_share", words)
    assert lacking(only(explain(build.records()).evidence, "flops_share"), "TF32") == ["TF32"]


def beside(records: Records, **cores: float) -> Records:
    """Programs that used so many cores of host 0, at two looks."""
    names = list(cores) * 2
    table = {"time": np.repeat([build.BEGAN + 30, build.BEGAN + 60], len(cores)), "name": np.array(names)}
    used = np.array(list(cores.values()) * 2)
    records.programs = {**table, "host": np.zeros(len(names)), "span": np.ones(len(names)), "cores": used}
    return records


def test_who_took_the_cores_is_named_and_the_gain_is_what_they_took() -> None:
    records = beside(build.records(hosts=1, ranks=2, counted_cores=[0.52, 0.52]), burn=1.4, cron=0.1)
    finding = explain(records)
    assert finding.numbers["cpu_share"] == pytest.approx(0.52)
    assert finding.numbers["programs"] == [{"name": "burn", "cores": 1.4}, {"name": "cron", "cores": 0.1}]
    assert not lacking(finding.answer, "52%", "burn", "1.4", "cron", "0.1")
    assert finding.numbers["compute_share"] == pytest.approx(0.52 * 0.95 / 0.988, abs=0.02)
    assert not lacking(finding.advice[0], "burn", "cron")
    (times,) = gains(finding.advice[0])
    assert times == pytest.approx(1 / 0.53, abs=0.15)


def test_waiting_for_a_core_is_the_others_waiting_too() -> None:
    """Of two ranks on one machine one shares its core, computes twice as long, and the other waits for it."""
    changes = {"hosts": 1, "ranks": 2, "slow_rank": 1, "slow_by": 2.0, "optimizer": 0.0}
    finding = explain(build.records(**changes, counted_cores=[1.0, 0.5]))
    (times,) = gains(finding.advice[0])
    assert times == pytest.approx(2.0, abs=0.1)
    assert sum(finding.numbers[name] for name in (*WAITS, "cpu_wait_share")) <= 1


def test_a_slow_host_whose_core_is_shared_says_with_whom() -> None:
    records = build.records(slow_rank=0, slow_by=2.0, counted_cores=[0.5, 1, 1, 1])
    finding = explain(beside(records, burn=0.5))
    assert finding.verdict == "waiting_straggler"
    assert not lacking(finding.answer, "50%", "burn", "0.5", "host0")
    assert not lacking(finding.advice[0], "rank 0", "host0", "burn")


def test_hosts_without_their_cores_are_named_beside_the_one_whose_programs_were_seen() -> None:
    advice = explain(beside(build.records(counted_cores=[0.5] * 4), burn=0.5)).advice[0]
    assert not lacking(advice, "burn", "host0", "host1")
    assert advice.index("burn") < advice.index("host0") < advice.index("host1")


def test_without_another_program_the_limit_or_the_lack_of_one_is_reported() -> None:
    records = build.records(hosts=1, counted_cores=[0.4] * 4)
    nothing = explain(records)
    assert {"programs", "throttled_share", "stolen_share"}.isdisjoint(nothing.numbers)
    assert lacking(nothing.answer, "60%", "30%") == ["60%", "30%"]
    records.hosts["throttled_share"] = np.array([0.6])
    limited = explain(records)
    assert limited.numbers["throttled_share"] == 0.6
    assert lacking(limited.answer, "60%", "30%") == ["30%"]
    records.hosts["stolen_share"] = np.array([0.3])
    stolen = explain(records)
    assert stolen.numbers["stolen_share"] == 0.3
    assert not lacking(stolen.answer, "60%", "30%")


def test_straggler_is_named_with_its_host() -> None:
    finding = explain(build.records(slow_rank=2, slow_by=1.8))
    assert finding.numbers["slowest_rank_times_busier"] == pytest.approx(1.8, abs=0.05)
    assert not lacking(finding.answer, "rank 2", "host1")
    only(finding.advice, "rank 2", "host1", "1.7")


def test_straggler_that_waits_for_its_data_is_called_that() -> None:
    records = build.records(slow_rank=1, slow_data=1.0)
    slowest = straggler(records)
    assert slowest and slowest.waits_for_data
    computing = straggler(build.records(slow_rank=1, slow_by=2.0))
    assert computing and not computing.waits_for_data
    assert str(slowest) in explain(records).answer
    assert not lacking(str(slowest), "rank 1", "host0")


def test_data_that_all_ranks_wait_for_makes_none_of_them_late() -> None:
    records = build.records(slow_rank=1, slow_by=2.0, data=0.5)
    slowest = straggler(records)
    assert slowest and (slowest.rank, slowest.waits_for_data) == (1, False)
    assert str(slowest) in explain(records).answer


def test_straggler_whose_waiting_for_data_is_not_known_computes() -> None:
    records = build.records(slow_rank=1, slow_by=1.5)
    records.windows["data"] = records.windows["data"] * np.nan
    slowest = straggler(records)
    assert slowest and (slowest.rank, slowest.host, slowest.waits_for_data) == (1, "host0", False)
    assert not lacking(explain(records).answer, str(slowest), "1.5 x")


def test_straggler_is_found_without_windows() -> None:
    records = build.records(slow_rank=2, slow_by=1.8)
    records.windows = Records(RunFacts()).windows
    finding = explain(records)
    assert finding.numbers["slowest_rank"] == 2
    assert not lacking(finding.answer, "rank 2", "host1")


def test_ranks_that_are_slow_in_turns_have_no_straggler() -> None:
    finding = explain(build.records(jitter=0.9))
    assert finding.verdict == "waiting_straggler"
    assert "slowest_rank" not in finding.numbers
    assert not re.search(r"rank \d", finding.answer)


def test_time_outside_steps_is_reported() -> None:
    finding = explain(build.records(evaluate_every=5))
    assert finding.numbers["evaluation_share"] == pytest.approx(2 / (2 + 5 * 0.988), abs=0.02)
    assert not lacking(finding.answer, "29%")
    only(finding.advice, "5", "--set evaluate.every=10", "14%")
    slow_disk = explain(build.records(checkpoint_every=10, checkpoint_seconds=5.0))
    only(slow_disk.advice, "10", "--set checkpoint.every=20")


WAITS = ("compute_share", "network_share", "straggler_share", "data_share")


def waiting_for_a_save(seconds: float, every: int) -> Records:
    """As recorded before ranks met after a checkpoint: rank 0's step is short, the others wait in it."""
    records = build.records(hosts=1, ranks=2, checkpoint_every=every)
    after = records.steps["step"] % every == 1
    records.steps["exchange_mean"][after] += seconds / 2
    records.steps["exchange_most"][after] += seconds
    return records


@pytest.mark.parametrize("every", [2, 3, 40])
def test_waiting_for_another_ranks_checkpoint_is_no_part_of_a_step(every: int) -> None:
    finding = explain(waiting_for_a_save(6.0, every))
    usual = explain(build.records(hosts=1, ranks=2))
    assert finding.verdict == "computing"
    assert {name: finding.numbers[name] for name in WAITS} == pytest.approx(
        {name: usual.numbers[name] for name in WAITS}, abs=0.01
    )
    assert not [text for text in finding.advice if gains(text)]


@pytest.mark.parametrize("seed", range(20))
def test_shares_of_a_step_are_parts_of_it(seed: int) -> None:
    """Also where phases and steps were timed by clocks that do not agree."""
    records, random = build.records(steps=50), np.random.default_rng(seed)
    for name in ("data", "forward", "backward", "exchange", "optimizer"):
        for statistic in ("mean", "least"):
            records.steps[f"{name}_{statistic}"] = random.exponential(1.0, 50)
    finding = explain(records)
    assert sum(finding.numbers[name] for name in WAITS) <= 1 + 1e-9
    assert all(0 <= finding.numbers[name] <= 1 for name in WAITS)


def test_what_the_others_compute_bounds_the_gain_of_a_faster_rank() -> None:
    advice = explain(build.records(ranks=2, slow_rank=1, slow_data=9.0)).advice[0]
    (times,) = gains(advice)
    assert times == pytest.approx((0.97 + 9) / 0.97, rel=0.05)
    far_out = explain(build.records(ranks=2, slow_rank=1, slow_data=400.0)).advice[0]
    assert not lacking(far_out, "rank 1") and not gains(far_out)


def test_steps_beside_the_writing_of_a_checkpoint_are_told_apart() -> None:
    """Every tenth to fourteenth step of twenty, 0.2 s longer each: a quarter of the steps."""
    records = build.records(jitter=0.0, exchange_jitter=0.0, checkpoint_every=20, evaluate_every=10_000)
    place = np.arange(len(records.steps["step"])) % 20
    slow = (place >= 10) & (place < 15)
    records.steps["seconds"] = records.steps["seconds"] + 0.2 * slow
    records.steps["ended"] = records.steps["ended"] + np.cumsum(0.2 * slow)
    for number in np.flatnonzero(place == 10):
        began = records.steps["ended"][number] - records.steps["seconds"][number]
        length = float(records.steps["ended"][number + 4] - began)
        event = {"time": float(began), "attempt": 1, "step": int(number), "kind": "writing"}
        records.events.append(Event(**event, seconds=length))
    finding = explain(records)
    expected = 0.2 * slow.sum() / records.steps["seconds"].sum()
    assert finding.numbers["writing_share"] == pytest.approx(expected, rel=0.1)
    assert not lacking(finding.answer, "5%")
    assert "writing_share" not in explain(build.records()).numbers


def test_one_machine_is_not_sent_to_the_network() -> None:
    advice = explain(build.records(hosts=1, exchange=0.5)).advice
    only(advice, "--set data.step=100000")
    between = explain(build.records(hosts=2, exchange=0.5)).advice
    assert not set(advice) & set(between)


def test_one_machine_waits_for_its_own_ranks() -> None:
    inside = explain(build.records(hosts=1, exchange=0.5))
    assert inside.verdict == "waiting_network", "the ids are fixed"
    between = explain(build.records(hosts=2, exchange=0.5))
    assert between.verdict == "waiting_network"
    assert wording(inside.answer) != wording(between.answer)


def test_the_gain_without_an_exchange_is_the_one_of_the_network_answer() -> None:
    """Far out a small difference between probe and clocks makes the one figure twice the other."""
    records = build.records(exchange=40.0)
    for probe in records.probes_of("exchange"):
        probe.numbers["step_seconds_without_exchange"] *= 0.5
    speedup = network.explain(records).numbers["speedup_without_exchange"]
    assert gains(explain(records).advice[0]) == [pytest.approx(speedup, abs=0.051)]


def test_busy_at_42_watts_is_not_computing() -> None:
    finding = explain(build.records(exchange=2.9, gpu_watts=42.0))
    assert finding.verdict == "waiting_network"
    assert finding.numbers["utilisation"] == 1.0
    assert finding.numbers["power_share"] == pytest.approx(0.168)
    assert not lacking(finding.answer, "100%", "42 W", "250 W")


def test_busy_in_a_long_exchange_is_not_computing_whatever_the_power() -> None:
    long, short = (explain(build.records(exchange=seconds, gpu_watts=180.0)) for seconds in (2.9, 0.02))
    assert (long.numbers["utilisation"], short.numbers["utilisation"]) == (1.0, 1.0)
    assert not lacking(long.answer, "100%"), "busy is told where it means nothing"
    assert lacking(short.answer, "100%")


def meters(watts: float, utilisation: float = 1.0, hosts: int = 2) -> Records:
    gpus = {"time": np.zeros(3), "span": np.ones(3), "utilisation": np.full(3, utilisation)}
    gpus |= {"power_watts": np.full(3, watts), "power_limit_watts": np.full(3, 250.0)}
    return Records(RunFacts(hosts=[f"h{i}" for i in range(hosts)], rank_hosts=list(range(hosts))), gpus=gpus)


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        (meters(42), "waiting_network"),
        (meters(200), "computing"),
        (meters(42, hosts=1), "unknown"),
        (meters(120, utilisation=0.6), "unknown"),
        (build.NOTHING, "unknown"),
        (build.foreign(), "unknown"),
    ],
)
def test_meters_alone_give_an_estimate_or_nothing(records: Records, verdict: str) -> None:
    finding = explain(records)
    assert finding.verdict == verdict
    assert finding.confidence == ("unknown" if verdict == "unknown" else "estimated")
