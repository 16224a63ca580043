"""Ranks of a host sum first, one rank per host crosses the network, and hands the result round."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from dragoman.exchange_way import ExchangeWay
from dragoman.sync import wire
from dragoman.sync.topology import Topology
from dragoman.sync.wire import Finish
from dragoman.sync.world import World


class Groups:
    """The ranks of this host, and the first rank of each host, once per flow."""

    def __init__(self, world: World, topology: Topology, flows: int):
        """Collective: every rank takes part in making every group."""
        mine = topology.rank_hosts[world.rank]
        of_hosts = [world.group(topology.ranks_of(host)) for host in range(len(topology.hosts))]
        self.local = of_hosts[mine]
        self.across = [world.group(topology.leaders) for _ in range(flows)]
        self.leader = topology.leaders[mine]
        self.is_leader = world.rank == self.leader
        self.is_alone = len(topology.ranks_of(mine)) == 1
        self.ranks = world.size

    def close(self) -> None:
        """Of a try that is over. Collective."""
        for group in (self.local, *self.across):
            if group is not dist.GroupMember.NON_GROUP_MEMBER:
                dist.destroy_process_group(group)


class ThroughLeaders:
    """Sends a piece to the leader, between leaders, and back, while the next piece sets off."""

    def __init__(self, groups: Groups, way: ExchangeWay):
        self._groups = groups
        self._flows = way.flows
        self._wire = way.wire

    def begin(self, gradients: Tensor) -> Finish:
        groups = self._groups
        if not groups.is_alone:
            dist.reduce(gradients, dst=groups.leader, group=groups.local)  # in fp32: it costs no network
        crossing: list[Finish] = []
        if groups.is_leader:
            parts = zip(gradients.chunk(self._flows), groups.across, strict=False)
            crossing = [wire.begin(part, group, self._wire) for part, group in parts]

        def finish() -> None:
            for arrive in crossing:
                arrive()
            if groups.is_leader:
                gradients.div_(groups.ranks)
            if not groups.is_alone:
                dist.broadcast(gradients, src=groups.leader, group=groups.local)

        return finish
