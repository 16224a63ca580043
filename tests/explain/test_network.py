"""explain/network.py: the network's part, told from stragglers, from other programs and from wrong meters."""

import re
from typing import Any

import numpy as np
import pytest

from dragoman.cost.step import ring_bytes
from dragoman.explain import device
from dragoman.explain.bounds_from_link import bounds
from dragoman.explain.mismatches import byte_mismatches, mismatch_numbers
from dragoman.explain.network import explain
from dragoman.measure.records import Probe, Records, RunFacts
from tests.explain import build
from tests.facts import lacking, only


@pytest.mark.parametrize(
    ("exchange", "verdict"),
    [
        (0.02, "not_bottleneck"),
        (0.08, "not_bottleneck"),
        (0.2, "balanced"),
        (0.4, "bottleneck"),
        (3, "bottleneck"),
    ],
)
@pytest.mark.parametrize("probes", [True, False])
def test_verdict_follows_the_exchange(exchange: float, verdict: str, probes: bool) -> None:
    finding = explain(build.records(exchange=exchange, probes=probes))
    step = 0.01 + 0.9 + 0.05 + exchange
    assert finding.verdict == verdict
    assert finding.numbers["exposed_share"] == pytest.approx(exchange / step, abs=0.03)
    assert finding.numbers["step_seconds_without_exchange"] == pytest.approx(0.96, rel=0.03)
    assert finding.confidence == ("measured" if probes else "estimated")


def test_bytes_are_those_of_the_ring() -> None:
    numbers = explain(build.records(evaluate_every=7)).numbers
    assert numbers["expected_bytes_per_step_per_host"] == pytest.approx(1.5 * 4 * build.PARAMETERS)
    assert numbers["bytes_per_step_per_host"] == pytest.approx(
        numbers["expected_bytes_per_step_per_host"], rel=0.02
    )
    assert numbers["link_bits_per_second"] == 1e10


def test_counters_kept_by_the_minute_give_the_same_bytes() -> None:
    records = build.records(steps=800)
    minute = {}
    chosen = records.nics["interface"] == "eth1"
    for name, values in records.nics.items():
        kept = values[chosen & (records.nics["host"] == 0)]
        kept = kept[: len(kept) // 60 * 60].reshape(-1, 60)
        minute[name] = kept[:, 0] if kept.dtype.kind == "U" or name in ("time", "host") else kept.mean(1)
    minute["span"] = np.full(len(minute["time"]), 60.0)
    records.nics = minute
    assert explain(records).numbers["bytes_per_step_per_host"] == pytest.approx(365.3e6, rel=0.05)


def test_advice_is_quantified_and_only_given_when_something_is_wrong() -> None:
    assert explain(build.records()).advice == []
    advice = explain(build.records(exchange=2.92, link_bits_per_second=1e9)).advice
    for option, gain in (
        ("--set sync.wire=bf16", "1.6"),
        ("--set data.step=100000", "2.3"),
        ("10 Gbit/s", "3.1"),
    ):
        only(advice, option, gain)


@pytest.mark.parametrize(
    ("facts", "megabytes"),
    [
        ({}, 365.3),
        ({"wire": "bf16", "gradient_bytes": 2 * build.PARAMETERS}, 182.6),
        ({"exchange": "hierarchical"}, 243.5),
        ({"exchange": "hierarchical", "wire": "bf16", "gradient_bytes": 2 * build.PARAMETERS}, 121.8),
        # rounds in 400 steps: shorter ones at the beginning
        ({"mode": "diloco", "exchange_every": 16}, 365.3 * 57 / 400),
    ],
)
def test_each_way_is_named_and_its_bytes_agree(facts: dict[str, Any], megabytes: float) -> None:
    records = build.records(exchange=2.92, link_bits_per_second=1e9, changes=facts)
    seen = records.nics["interface"] == "eth1"
    for column in ("sent_bytes", "received_bytes"):
        records.nics[column] = records.nics[column] * np.where(seen, megabytes / 365.3, 1.0)
    finding = explain(records)
    assert finding.numbers["expected_bytes_per_step_per_host"] == pytest.approx(megabytes * 1e6, rel=0.001)
    assert finding.numbers["bytes_per_step_per_host"] == pytest.approx(megabytes * 1e6, rel=0.03)
    assert str(records.facts.way) in finding.answer
    assert "byte_mismatches" not in finding.numbers, "what was seen is what was expected"


def test_local_steps_are_advised_but_not_where_they_are_made() -> None:
    advice = explain(build.records(exchange=50.0, link_bits_per_second=6e7)).advice
    only(advice, "--set sync.mode=diloco")
    facts = {"mode": "diloco", "exchange_every": 16}
    advice = explain(build.records(exchange=2.92, link_bits_per_second=1e9, changes=facts)).advice
    assert not any("diloco" in text for text in advice)


def test_bf16_is_not_advised_where_it_is_used() -> None:
    facts = {"gradient_bytes": 2 * build.PARAMETERS}
    advice = explain(build.records(exchange=2.9, link_bits_per_second=1e9, changes=facts)).advice
    assert not any("sync.wire=bf16" in text for text in advice)


def test_waiting_for_a_slow_rank_is_not_the_network() -> None:
    finding = explain(build.records(slow_rank=2, slow_by=2.0))
    assert finding.verdict == "not_bottleneck"
    assert finding.numbers["straggler_share"] == pytest.approx(0.75 * 0.9 / 1.88, abs=0.05)
    assert finding.numbers["exposed_share"] < 0.05
    assert not lacking(finding.answer, "rank 2", "host1")


def test_other_traffic_is_reported() -> None:
    finding = explain(build.records(exchange=0.5, other_bytes_per_second=1.5e8))
    assert finding.verdict == "bottleneck"
    assert not lacking(finding.answer, "host0", "host1")
    assert [row["host"] for row in finding.numbers["byte_mismatches"]] == ["host0", "host1"]
    assert all(row["expected_share"] > 1.3 for row in finding.numbers["byte_mismatches"])
    assert (
        finding.numbers["bytes_per_step_per_host"] > 1.3 * finding.numbers["expected_bytes_per_step_per_host"]
    )
    usual = explain(build.records(exchange=0.5)).advice
    assert [len(advice) for advice in (usual, finding.advice)] == [len(usual), len(usual) + 1]
    assert finding.advice[0] not in usual


def test_64_hosts_are_counted_not_listed() -> None:
    records = build.records(exchange=0.5, steps=60, ranks=64, hosts=64, other_bytes_per_second=1.5e8)
    rows = records.nics["interface"] == "eth1"
    records.nics["sent_bytes"][rows] *= 1 + records.nics["host"][rows] / 640  # no two hosts alike
    finding = explain(records)
    assert len(finding.numbers["byte_mismatches"]) == 64
    assert len(byte_mismatches(records)) <= 2, "a sentence for each way, not for each host"
    assert not lacking(finding.answer, "host0", "host1", "host2", "61")
    assert lacking(finding.answer, "host3")
    assert len(finding.answer) < 700


def test_wrong_interface_is_named() -> None:
    finding = explain(build.records(interface="eth0"))
    assert not lacking(finding.answer, "eth1", "eth0", "365 MB")
    assert {row["instead"] for row in finding.numbers["byte_mismatches"]} == {"eth0"}


def test_compressed_gradients_are_a_possible_reason() -> None:
    records = build.records()
    records.nics["sent_bytes"] = records.nics["sent_bytes"] / 2
    records.nics["received_bytes"] = records.nics["sent_bytes"]
    finding = explain(records)
    assert not lacking(finding.answer, "50%")
    for row in finding.numbers["byte_mismatches"]:
        assert row["expected_share"] == pytest.approx(0.5, abs=0.02)
        assert "instead" not in row


def test_headers_and_small_talk_are_no_mismatch() -> None:
    records = build.records()
    records.nics["sent_bytes"] = records.nics["sent_bytes"] * 1.06
    assert "byte_mismatches" not in explain(records).numbers


def test_unknown_interface_falls_back_to_the_busiest_and_says_so() -> None:
    finding = explain(build.records(changes={"gradient_interfaces": []}))
    assert finding.numbers["bytes_per_step_per_host"] == pytest.approx(365.3e6, rel=0.02)
    known = explain(build.records())
    by_name, by_load = (only(each.evidence, "bytes_per_step_per_host", "eth1") for each in (known, finding))
    assert by_name != by_load


def test_one_machine_has_no_network_but_still_shares() -> None:
    finding = explain(build.records(hosts=1, slow_rank=1, slow_by=1.5))
    assert finding.verdict == "single_machine"
    assert finding.numbers["straggler_share"] > 0.2
    assert finding.advice == []
    assert explain(build.records(hosts=1, ranks=1, exchange=0.0)).verdict == "single_machine"


def test_a_probe_of_unlucky_steps_gives_way_to_the_clocks() -> None:
    """Something else computed while the probe's steps were made with the exchange."""
    records = build.records(exchange=0.05)
    for probe in records.probes_of("exchange"):
        probe.numbers["step_seconds"] = 2 * probe.numbers["step_seconds_without_exchange"]
    assert explain(records).verdict == "not_bottleneck"


def test_old_probe_gives_way_to_the_clocks() -> None:
    """The link was free when the probe ran, and is not now."""
    records = build.records(exchange=1.0)
    for probe in records.probes_of("exchange"):
        probe.numbers["step_seconds"] = probe.numbers["step_seconds_without_exchange"] * 1.02
    finding = explain(records)
    assert finding.verdict == "bottleneck"
    assert finding.confidence == "estimated"
    only(finding.evidence, "step_seconds_without_exchange", "2%")


def test_probe_alone_is_enough() -> None:
    records = build.records(exchange=0.5)
    for name in list(records.steps):
        if name.startswith("exchange"):
            records.steps[name] = np.full(400, np.nan)
    finding = explain(records)
    assert finding.verdict == "bottleneck"
    assert "exposed_share" not in finding.numbers


def test_machines_unknown_is_unknown() -> None:
    finding = explain(build.records(changes={"hosts": [], "rank_hosts": []}))
    assert finding.verdict == "unknown"
    assert finding.confidence == "unknown"
    assert explain(build.foreign()).verdict == "unknown"
    assert explain(build.NOTHING).verdict == "unknown"


def only_step_time(
    bits_per_second: float | None, seconds: float = 1.9, watts: float | None = None
) -> Records:
    """What a log and a few facts give: 2 machines of 2 ranks, 61 M fp32 gradients."""
    facts = RunFacts(ranks=4, hosts=["a", "b"], rank_hosts=[0, 0, 1, 1], gradient_bytes=4 * build.PARAMETERS)
    steps = {"step": np.arange(1.0, 101), "seconds": np.full(100, seconds)}
    probes = []
    if bits_per_second:
        numbers = {"bits_per_second": bits_per_second}
        probes = [Probe(time=0, attempt=1, step=0, kind="link", numbers=numbers)]
    gpus = None
    if watts:
        gpus = {"time": np.zeros(1), "span": np.ones(1), "utilisation": np.ones(1)}
        gpus |= {"power_watts": np.array([watts]), "power_limit_watts": np.array([250.0])}
    return Records(facts, steps=steps, probes=probes, gpus=gpus)


@pytest.mark.parametrize(
    ("bits_per_second", "watts", "verdict"),
    [
        (1e9, None, "bottleneck"),  # the step used 1.5 Gbit/s: more than was ordered
        (1.7e9, 42, "bottleneck"),
        (100e9, 200, "not_bottleneck"),
        (3e9, None, "unknown"),  # half of the step, hidden or not
        (3e9, 42, "bottleneck"),
        (9e9, None, "balanced"),
        (None, None, "unknown"),
    ],
)
def test_bytes_and_link_bound_what_was_not_timed(
    bits_per_second: float | None, watts: float | None, verdict: str
) -> None:
    finding = explain(only_step_time(bits_per_second, watts=watts))
    assert finding.verdict == verdict
    assert finding.confidence == ("unknown" if verdict == "unknown" else "estimated")


def test_rate_above_the_ordered_one_is_reported() -> None:
    finding = explain(only_step_time(1e9))
    assert finding.numbers["implied_bits_per_second"] > 1.5e9
    assert not lacking(finding.answer, "1 Gbit/s", "1.54 Gbit/s")


def test_bounds_hold_whatever_was_hidden() -> None:
    for computing in (0.5, 1.0, 2.0):
        for exchange in (0.1, 1.0, 5.0):
            for hidden_share in (0.0, 0.5, 1.0):
                step = computing + exchange - hidden_share * min(exchange, 2 / 3 * computing)
                low, high = bounds(step, exchange)
                assert low - 1e-9 <= step / computing <= max(high, step / computing * (high >= 100)) + 1e-9


def test_bytes_on_one_machine_are_none_and_the_evidence_says_why() -> None:
    finding = explain(build.records(hosts=1, changes={"nic_bytes_per_second": 2e8}))
    assert finding.numbers["bytes_per_step_per_host"] == 0
    (line,) = [line for line in finding.evidence if line.startswith("bytes_per_step_per_host:")]
    assert not re.search(r"\d", line), "no figure, and so no interface that was read"


@pytest.mark.parametrize("changes", [{}, {"ranks": 8, "hosts": 4}])
def test_traffic_beside_the_steps_is_not_the_exchanges(changes: dict[str, int]) -> None:
    """The interface carried much more than the steps sent: a probe, an evaluation, the time before."""
    wire = build.Run(**changes).wire_bytes
    busy = build.records(counted_bytes=1.01 * wire, other_bytes_per_second=1e9, **changes)
    finding = explain(busy)
    assert finding.numbers["bytes_per_step_per_host"] == pytest.approx(1.01 * wire)
    assert not byte_mismatches(busy)
    assert byte_mismatches(build.records(other_bytes_per_second=1e9, **changes)), "an older run cannot tell"


def test_other_traffic_during_steps_is_still_said() -> None:
    records = build.records(counted_bytes=1.5 * build.Run().wire_bytes)
    (said,) = byte_mismatches(records)
    assert not lacking(said, "1.50")
    assert all(row["expected_share"] == pytest.approx(1.5) for row in mismatch_numbers(records))


@pytest.mark.parametrize(("reason", "exchanges"), [("stopped", 27), (None, 26)])
def test_a_round_of_diloco_also_ends_where_the_run_stops(reason: str | None, exchanges: int) -> None:
    records = build.records(steps=42, reason=reason, changes={"mode": "diloco", "exchange_every": 8})
    numbers = explain(records).numbers
    assert numbers["expected_bytes_per_step_per_host"] == pytest.approx(
        exchanges * build.Run().wire_bytes / 42
    )


def test_a_link_that_slows_down_in_the_middle_of_a_run_is_reported_with_its_step() -> None:
    records = build.records()
    for name in ("exchange_mean", "exchange_least", "exchange_most", "seconds"):
        records.steps[name][250:] += 0.9
    records.steps["ended"] += np.cumsum(np.where(np.arange(400) < 250, 0.0, 0.9))
    finding = explain(records)
    (change,) = finding.numbers["changes"]
    assert change["step"] == 251
    assert change["part_seconds_after"] - change["part_seconds_before"] == pytest.approx(0.9, rel=0.05)
    assert only(finding.advice, "251") not in explain(build.records()).advice
    assert "changes" not in explain(build.records()).numbers


def test_computing_that_slows_down_is_no_change_of_the_network() -> None:
    records = build.records()
    for name in ("forward_mean", "forward_least", "forward_most", "seconds"):
        records.steps[name][250:] += 0.9
    assert "changes" not in explain(records).numbers


SHARDS = {"mode": "sharded", "shape": "hierarchical"}


def test_shards_are_advised_only_what_goes_with_them() -> None:
    finding = explain(build.records(exchange=3, **SHARDS))
    assert finding.verdict == "bottleneck"
    assert finding.numbers["expected_bytes_per_step_per_host"] == ring_bytes(2, 4 * build.PARAMETERS)
    assert finding.advice and not [text for text in finding.advice if "sync." in text]


def test_how_long_shards_wait_on_gpus_is_not_guessed() -> None:
    records = build.records(exchange=3, gpu_watts=200.0, probes=False, **SHARDS)
    assert "exposed_share" not in explain(records).numbers
    assert device.explain(records).confidence != "measured"
    on_cpus = build.records(exchange=3, probes=False, **SHARDS)
    assert explain(on_cpus).numbers["exposed_share"] == pytest.approx(3 / 3.96, abs=0.03)
    assert device.explain(on_cpus).verdict == "waiting_network"
