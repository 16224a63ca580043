"""Which rank is where, as found by ranks on real hosts and by a world of one."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from dragoman.sync import topology
from dragoman.sync import world as worlds
from dragoman.sync.topology import Placement, Topology
from testbed import Cluster
from tests import ranks


def test_the_leader_of_a_host_is_its_first_rank() -> None:
    dealt_in_turns = Topology(["a", "b", "c"], [0, 1, 2, 0, 1, 2], ["eth0"] * 3)
    assert dealt_in_turns.leaders == [0, 1, 2]
    assert Topology(["a", "b"], [0, 0, 1, 1], ["eth0"] * 2).leaders == [0, 2]


def test_a_world_of_one_is_one_host_that_needs_no_cable(world_of_one: None) -> None:
    with worlds.join(60) as world:
        assert topology.find(world) == Topology([socket.gethostname()], [0], ["lo"])


def test_a_rank_that_joins_knows_its_host_and_whether_it_is_the_first_there(world_of_one: None) -> None:
    with topology.join(60) as placement:
        assert (placement.host, placement.is_leader) == (0, True)
        second_of_its_host = Placement(
            replace(placement.world, rank=3), Topology(["a", "b"], [0, 0, 1, 1], [])
        )
    assert (second_of_its_host.host, second_of_its_host.is_leader) == (1, False)


@pytest.mark.usefixtures("hosts_are_possible")
def test_every_rank_finds_the_same_hosts_and_the_cable_between_them() -> None:
    """Also where a host's own name is a loopback address, as on Debian."""
    with Cluster(hosts=2, loopback_name=True) as cluster:
        ended = ranks.on_hosts(cluster, "tests.sync.find_topology", [], [2, 1])
    found = [Topology(**rank.answers()[0]) for rank in ended]
    assert found == [Topology(["h0", "h1"], [0, 0, 1], ["eth0", "eth0"])] * 3
    assert found[0].leaders == [0, 2]
