"""Ranks with GPUs and NCCL, or with stand-ins for both: how they start, fail and find their interface."""

from __future__ import annotations

import pytest

from testbed import Cluster
from tests import ranks
from tests.facts import lacking
from tests.ranks import Ended
from tests.sync.test_exchange import BF16


def run(gpus: str, what: str) -> list[Ended]:
    return ranks.each("tests.cards.rank", [gpus, "tests.sync.card_ranks", what], gpus.count(",") + 1)


@pytest.mark.parametrize(
    ("gpus", "devices"),
    [
        ("a=0+1,a=0+1", ["cuda:0", "cuda:1"]),
        ("a=0,a=1", ["cuda:0", "cuda:0"]),  # srun --gpus-per-task=1
        ("a=0,b=1", ["cuda:0", "cuda:0"]),
    ],
    ids=["both see both", "each sees one", "two hosts"],
)
def test_ranks_with_a_gpu_each_meet_over_nccl(gpus: str, devices: list[str]) -> None:
    answers = [rank.answers()[0] for rank in run(gpus, "meeting")]
    assert [answer["device"] for answer in answers] == devices
    for answer in answers:
        assert answer["backend"] == "nccl"
        assert answer["gradients"] == [3.0] * 4
        assert answer["sum"] == [1.0], "small numbers travel on the CPU"


def test_the_interface_is_named_when_communicators_are_made_after_the_start() -> None:
    for rank in run("a=0+1,a=0+1", "meeting"):
        (answer,) = rank.answers()
        assert answer["made_at_start"] == 0
        assert answer["interfaces"] == ["lo", "lo"], "of the world and of a group"


def test_every_way_of_exchanging_computes_the_mean_over_nccl() -> None:
    """With its groups of some ranks, its threads, and communicators that are made in the middle of a step."""
    words = ["a=0,a=1,b=2,b=3", "tests.sync.exchange_ranks", "2", "ways"]
    for rank in ranks.each("tests.cards.rank", words, 4):
        (ways,) = rank.answers()
        assert len(ways) == 6
        assert all(way["is_same_everywhere"] and way["distance"] < BF16 for way in ways.values())


def test_nccl_gets_each_bucket_whole_and_in_its_number_format() -> None:
    for rank in run("a=0+1,a=0+1", "buckets"):
        for answer, dtype in zip(rank.answers(), ("torch.float32", "torch.bfloat16"), strict=True):
            assert answer["sent"] == [[dtype, 1500 * 1500]], "9 MB: one bucket"
            assert answer["mean"] == [1.5]
            assert "bucket-sender" not in answer["threads"]


@pytest.mark.usefixtures("hosts_are_possible")
def test_between_hosts_nccl_uses_the_interface_that_leads_to_rank_0() -> None:
    with Cluster(hosts=2) as cluster:
        for host in (0, 1):  # the first in NCCL's order, and no way to the other host
            cluster.run(host, ["ip", "link", "add", "a0", "type", "bridge"])
            cluster.run(host, ["ip", "address", "add", f"10.99.{host}.1/24", "dev", "a0"])
            cluster.run(host, ["ip", "link", "set", "a0", "up"])
        words = ["=0,=1", "tests.sync.card_ranks", "meeting"]
        for rank in ranks.on_hosts(cluster, "tests.cards.rank", words, [1, 1]):
            assert rank.answers()[0]["interfaces"] == ["eth0", "eth0"]


@pytest.mark.parametrize(
    ("gpus", "facts"),
    [
        ("a=0,b=", ["b", "a"]),
        ("a=,b=0", ["a", "b"]),
        ("a=0,a=0", ["rank 0", "rank 1", "GPU-0"]),
        ("a=0+1,a=0+1,a=0+1", ["rank 2", "a", 2]),
    ],
    ids=["none on the second host", "none on the first host", "the same one", "too few"],
)
def test_ranks_that_cannot_have_a_gpu_each_all_end_with_the_reason(gpus: str, facts: list[object]) -> None:
    """And not with the silence of a backend that waits for ranks that have chosen another."""
    for rank in run(gpus, "meeting"):
        assert (rank.returncode, rank.stdout) == (1, "")
        assert rank.stderr.count("error: ") == 1
        assert not lacking(rank.stderr, *facts)


@pytest.mark.usefixtures("hosts_are_possible")
def test_a_host_without_a_gpu_is_named_on_every_host() -> None:
    with Cluster(hosts=2) as cluster:
        words = ["=0,=", "tests.sync.card_ranks", "meeting"]
        for rank in ranks.on_hosts(cluster, "tests.cards.rank", words, [1, 1]):
            assert rank.returncode == 1
            assert not lacking(rank.stderr, "h1 (torch was built without CUDA)", "h0")


def test_a_rank_that_fails_says_why_and_ends_while_the_others_wait_for_it() -> None:
    """NCCL's groups end together; else its watchdog would end the process, later and without the reason."""
    other, failed = run("a=0+1,a=0+1", "failing")
    assert (failed.returncode, failed.stderr) == (1, "error: rank 1 found something\n")
    assert other.returncode == 1
    assert not lacking(other.stderr, "another rank")


def test_a_timed_all_reduce_leaves_out_what_nccl_needs_to_connect_the_ranks() -> None:
    for rank in run("a=0+1,a=0+1", "probing"):
        assert rank.answers()[0]["bytes"] > 1 << 20, "the smallest size is over in no time"
