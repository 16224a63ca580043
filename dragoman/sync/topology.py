"""The host of each rank, and the interface that carries each host's gradients."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address

from dragoman.sync import world as worlds
from dragoman.sync.route import interface_towards, own_address_towards
from dragoman.sync.world import RankPlace, World


@dataclass(frozen=True)
class Topology:
    """Which rank is on which host, and each host's interface for gradients."""

    hosts: list[str]  # names, in the order of their first rank
    rank_hosts: list[int]  # the host of each rank
    interfaces: list[str]  # per host

    @property
    def leaders(self) -> list[int]:
        """The first rank of each host."""
        return [self.rank_hosts.index(host) for host in range(len(self.hosts))]

    def ranks_of(self, host: int) -> list[int]:
        return [rank for rank, place in enumerate(self.rank_hosts) if place == host]


@dataclass(frozen=True)
class Placement:
    """A rank's world, and the hosts of all its ranks."""

    world: World
    topology: Topology

    @property
    def host(self) -> int:
        """The number of this rank's host."""
        return self.topology.rank_hosts[self.world.rank]

    @property
    def is_leader(self) -> bool:
        """Is this the first rank of its host?"""
        return self.world.rank in self.topology.leaders


@contextmanager
def join(timeout_seconds: float, place: RankPlace | None = None) -> Iterator[Placement]:
    """Joins the world that this process has a place in, and finds the hosts of its ranks. Collective."""
    with worlds.join(timeout_seconds, place) as world:
        yield Placement(world, find(world))


def find(world: World) -> Topology:
    """The topology, from what each rank says about its host. Collective."""
    names = world.gather_text(socket.gethostname())
    hosts = list(dict.fromkeys(names))
    rank_hosts = [hosts.index(name) for name in names]
    interfaces = world.gather_text(interface_towards(_address_elsewhere(world, rank_hosts)))
    return Topology(hosts, rank_hosts, [interfaces[rank_hosts.index(host)] for host in range(len(hosts))])


def _address_elsewhere(world: World, rank_hosts: list[int]) -> str:
    """An address on another host, on the gradients' way; loopback if there is no other host. Collective.

    If Debian's installer wrote the hosts file, the meeting point's name resolves to loopback on its own host.
    So that host uses the address of another one; a host that sees only loopback uses the meeting point.
    """
    addresses = world.gather_text(own_address_towards(world.meeting_point))
    own_host = rank_hosts[world.rank]
    others = [a for a, host in zip(addresses, rank_hosts, strict=True) if host != own_host]
    if not others:
        return "127.0.0.1"
    return next((a for a in others if not ip_address(a).is_loopback), world.meeting_point)
