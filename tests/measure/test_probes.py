"""What is measured on purpose, against what is known: tc's rate, and matrix products timed here."""

from __future__ import annotations

import time

import pytest
import torch

from dragoman.measure import probes
from dragoman.model.product import multiply
from dragoman.sync import world as worlds
from testbed import Cluster
from tests import ranks

pytestmark = pytest.mark.alone  # cores and a link are measured


def flops_per_second_of_one_product(size: int) -> float:
    """The best of a few: other programs may use the core meanwhile."""
    left, right = torch.rand(size, size), torch.rand(size, size)
    seconds = []
    for _ in range(8):
        began = time.perf_counter()
        multiply(left, right)
        seconds.append(time.perf_counter() - began)
    return 2 * size**3 / min(seconds)


def test_the_peak_is_near_the_best_product_of_the_same_size(world_of_one: None) -> None:
    with worlds.join(60) as world:
        peak = sum(probes.peaks(world, "bf16"))
        best = flops_per_second_of_one_product(1024)  # with as many threads
    assert 0.2 * best < peak < 1.5 * best, "on a CPU, which trains in fp32 whatever the config says"
    assert peak > 1e9


@pytest.mark.usefixtures("hosts_are_possible")
def test_the_link_is_measured_near_its_rate() -> None:
    with Cluster(hosts=2, rate="100mbit") as cluster:
        ended = ranks.on_hosts(cluster, "tests.measure.probe_link", [], [1, 1])
    found = [tuple(map(float, rank.said().split())) for rank in ended]
    assert found[0] == found[1], "all ranks know the slowest"
    bits_per_second, round_trip_seconds = found[0]
    assert 80e6 < bits_per_second < 110e6  # sending in turns would be half of it
    assert 0 < round_trip_seconds < 0.1


def test_the_link_is_measured_also_where_gradients_travel_over_nccl() -> None:
    found = [
        tuple(map(float, rank.said().split())) for rank in ranks.each("tests.measure.link_beside_gpus", [], 2)
    ]
    assert found[0] == found[1]
    assert found[0][0] > 1e6
