"""The ways of exchanging, between real processes: they agree where they must, and never wait for ever."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.cost.step import WIRE_BYTES, bytes_per_host
from testbed import Cluster
from tests import ranks
from tests.ranks import Ended
from tests.sync.test_agree import GONE

RANKS = "tests.sync.exchange_ranks"
FP32, BF16 = 1e-6, 2.0**-8  # shares of the gradient's norm; bf16 keeps 8 bits


@pytest.fixture(scope="module")
def four() -> list[Ended]:
    """Four ranks on what they take for two hosts."""
    return ranks.each(RANKS, ["2", "ways", "timings", "measured"], 4)


def test_every_way_computes_the_mean_of_plain_fp32(four: list[Ended]) -> None:
    ways = four[0].answers()[0]
    assert len(ways) == 6
    for name, found in ways.items():
        assert found["distance"] < (BF16 if "bf16" in name else FP32), name
        assert ("bf16" in name) == (found["distance"] > 1e-4), f"{name}: rounded where it should be, only"


def test_every_rank_ends_with_the_same_bits(four: list[Ended]) -> None:
    for rank in four:
        assert all(found["is_same_everywhere"] for found in rank.answers()[0].values())


def test_buckets_ready_at_any_time_neither_hang_nor_mix(four: list[Ended]) -> None:
    assert [rank.answers()[1]["right"] for rank in four] == [500] * 4


def test_auto_comes_to_the_same_choice_on_every_rank_within_seconds(four: list[Ended]) -> None:
    choices = [rank.answers()[2] for rank in four]
    assert all(choice["way"] == choices[0]["way"] for choice in choices)
    assert max(choice["seconds"] for choice in choices) < 20


def test_the_wait_for_a_late_rank_is_reported_with_its_own_step() -> None:
    waiting, _ = ranks.each(RANKS, ["0", "late"], 2)
    *before, late, after = waiting.answers()[0]["exposed"]
    assert late > 0.5 + max(*before, after)


def test_a_rank_that_is_gone_is_noticed_by_the_thread_that_exchanges() -> None:
    *others, gone = ranks.each(RANKS, ["2", "dying"], 4)
    assert gone.returncode == 3
    for rank in others:
        assert rank.returncode == 1
        assert GONE.search(rank.stderr)


@pytest.mark.usefixtures("hosts_are_possible")
@pytest.mark.parametrize("each", [1, 2])
def test_each_host_sends_what_the_formula_says(each: int) -> None:
    with Cluster(hosts=2) as cluster:
        ended = ranks.on_hosts(cluster, RANKS, ["0", "sent"], [each, each])
    per_host: list[dict[str, Any]] = [rank.answers()[0] for rank in ended[::each]]
    rank_hosts, parameters = per_host[0].pop("rank_hosts"), per_host[0].pop("parameters")
    assert rank_hosts == [0] * each + [1] * each
    assert len(per_host[0]) == 2 * each
    for name in per_host[0]:
        shape, wire = name.split()
        expected = bytes_per_host(rank_hosts, WIRE_BYTES[wire] * parameters, shape == "hierarchical")
        seen = sum(host[name] for host in per_host) / 2
        assert seen == pytest.approx(expected, rel=0.02), name


@pytest.mark.usefixtures("hosts_are_possible")
@pytest.mark.parametrize("each", [1, 2])
def test_shards_send_each_gradient_between_hosts_once_a_step(each: int) -> None:
    with Cluster(hosts=2) as cluster:
        ended = ranks.on_hosts(cluster, RANKS, ["0", "sent_by_shards"], [each, each])
    per_host = [rank.answers()[0] for rank in ended[::each]]
    expected = bytes_per_host(per_host[0]["rank_hosts"], 4 * per_host[0]["parameters"], is_hierarchical=True)
    assert sum(host["sent"] for host in per_host) / 2 == pytest.approx(expected, rel=0.02)
