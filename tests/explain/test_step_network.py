"""explain/step_network.py: step time against exchange and bytes, bursts, a faster link."""

import numpy as np
import pytest

from dragoman import format_units
from dragoman.explain.burst_samples import bursts
from dragoman.explain.counterfactual import WORTH_TRYING
from dragoman.explain.finding import Finding
from dragoman.explain.step_network import correlation, explain
from dragoman.measure.records import Records, RunFacts
from tests.explain import build
from tests.explain.sentences import stated
from tests.facts import lacking


def no_network(finding: Finding) -> bool:
    """Whether no bytes are told of."""
    told = [one for one in stated(finding.answer) if one.kind == "bytes"]
    return finding.numbers["bytes_per_step_per_host"] == 0 and not told


def test_step_time_follows_a_changing_network() -> None:
    numbers = explain(build.records(exchange=1.0, exchange_jitter=0.5)).numbers
    assert numbers["correlation"] > 0.95


def test_step_time_does_not_follow_an_exchange_that_hardly_costs() -> None:
    finding = explain(build.records(jitter=0.2))
    assert abs(finding.numbers["correlation"]) < 0.3
    assert not lacking(finding.answer, f"{finding.numbers['correlation']:z.2f}")


def test_a_steady_exchange_is_not_taken_for_a_cheap_one() -> None:
    finding = explain(build.records(exchange=2.0, exchange_jitter=0.01, jitter=0.3))
    assert abs(finding.numbers["correlation"]) < 0.3
    assert not lacking(finding.answer, "2 s")


def test_bytes_per_step_are_those_on_the_interface() -> None:
    assert explain(build.records()).numbers["bytes_per_step_per_host"] == pytest.approx(365.3e6, rel=0.02)
    wrong = explain(build.records(interface="eth0"))
    seen = format_units.size(wrong.numbers["bytes_per_step_per_host"])
    assert not lacking(wrong.answer, seen, "365 MB") and seen != "365 MB"


def test_bytes_in_a_short_exchange_are_a_burst() -> None:
    records = build.records(exchange=0.15)
    finding, found = explain(records), bursts(records)
    assert finding.numbers["burst_share"] > 0.9
    assert found and found.phase == "exchange"
    assert not lacking(finding.answer, format_units.share(found.share), format_units.share(found.phase_share))


def test_even_flow_has_a_quarter_in_each_quarter() -> None:
    step = np.repeat(np.arange(5.0), 20)
    lens = {"host": np.zeros(100), "time": np.arange(100.0), "sent_bytes": 7.0 * np.arange(100.0)}
    found = bursts(Records(RunFacts(), lens=lens | {"step": step, "phase": np.full(100, 2.0)}))
    assert found is not None
    assert found.share == pytest.approx(0.25, abs=0.01)
    assert found.phase == "backward"
    assert found.steps == 3, "the first and the last are seen in part"


def test_coarse_samples_tell_nothing_of_bursts() -> None:
    records = build.records()
    records.lens = {name: values[::20] for name, values in records.lens.items()}
    assert "burst_share" not in explain(records).numbers


def test_faster_link_is_estimated() -> None:
    finding = explain(build.records(exchange=2.92, link_bits_per_second=1e9))
    assert finding.numbers["faster_link_bits_per_second"] == 10e9
    assert finding.numbers["faster_link_speedup"] == pytest.approx(3.1, abs=0.05)
    assert not lacking(finding.answer, "10 Gbit/s", "3.1")
    usual = explain(build.records())
    assert usual.numbers["faster_link_speedup"] < WORTH_TRYING
    assert lacking(usual.answer, "25 Gbit/s", f"{usual.numbers['faster_link_speedup']:.1f}") == ["1.0"]


def test_one_machine_crosses_no_network() -> None:
    finding = explain(build.records(hosts=1))
    assert no_network(finding)
    assert finding.numbers["bytes_per_step_per_host"] == 0
    assert "burst_share" not in finding.numbers, "what loopback carries is no exchange between hosts"
    assert "correlation_with_bytes" not in finding.numbers
    assert "correlation" in finding.numbers, "its ranks exchange inside it"


def test_bytes_that_nobody_counted_have_no_evidence() -> None:
    records = build.records()
    records.nics = {name: values[:0] for name, values in records.nics.items()}
    finding = explain(records)
    assert "bytes_per_step_per_host" not in finding.numbers
    assert not any(line.startswith("bytes_per_step") for line in finding.evidence)


def test_one_rank_has_no_exchange_to_go_with() -> None:
    finding = explain(build.records(hosts=1, ranks=1, exchange=1e-4))
    assert "correlation" not in finding.numbers
    assert no_network(finding)


def test_step_times_alone_are_not_enough() -> None:
    assert explain(build.foreign()).verdict == "unknown"
    assert explain(build.NOTHING).verdict == "unknown"


def test_correlation_needs_points_that_vary() -> None:
    assert correlation(np.arange(3.0), np.arange(3.0)) is None
    assert correlation(np.arange(20.0), np.ones(20)) is None
    assert correlation(np.arange(20.0), -np.arange(20.0)) == pytest.approx(-1)
