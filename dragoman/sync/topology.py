"""Which rank is on which host, and by which interface a host's gradients leave it."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from dragoman.sync.route import interface_towards, own_address_towards
from dragoman.sync.world import World


@dataclass(frozen=True)
class Topology:
    hosts: list[str]  # names, in the order of their first rank
    rank_hosts: list[int]  # the host of each rank
    interfaces: list[str]  # per host

    @property
    def leaders(self) -> list[int]:
        """The first rank of each host."""
        return [self.rank_hosts.index(host) for host in range(len(self.hosts))]

    def ranks_of(self, host: int) -> list[int]:
        return [rank for rank, place in enumerate(self.rank_hosts) if place == host]


def find(world: World) -> Topology:
    """Asks every rank. Collective."""
    names = world.gather_text(socket.gethostname())
    hosts = list(dict.fromkeys(names))
    rank_hosts = [hosts.index(name) for name in names]
    # The address by which this host reaches the meeting point. On the meeting point's own host that may be
    # loopback, which is no way to the others: so the interface is found from the route to another host.
    addresses = world.gather_text(own_address_towards(world.meeting_point))
    others = [a for a, host in zip(addresses, rank_hosts, strict=True) if host != rank_hosts[world.rank]]
    interfaces = world.gather_text(interface_towards(others[0] if others else "127.0.0.1"))
    return Topology(hosts, rank_hosts, [interfaces[rank_hosts.index(host)] for host in range(len(hosts))])
