"""Forecasts the run on other clusters and with other exchanges, and picks the fastest and the cheapest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.exchange_way import LOCAL_STEPS, ExchangeWay
from dragoman.plan.cluster import Cluster, PlannedLink
from dragoman.plan.forecast import Forecast

HOSTS = (1, 2, 4, 8)
LINKS = (1e9, 10e9, 100e9)  # bits per second, as ordered
LARGER_STEP = 4  # times the tokens
# By name: how gradients travel, and the tokens of a step as a multiple of the config's.
_WAYS = {
    "fp32": (ExchangeWay(), 1),
    "bf16": (ExchangeWay(wire="bf16"), 1),
    f"{LARGER_STEP} x accumulation": (ExchangeWay(), LARGER_STEP),
    f"DiLoCo {LOCAL_STEPS}": (ExchangeWay(mode="diloco", steps_per_round=LOCAL_STEPS), 1),
}
_SHARDED = ExchangeWay(mode="sharded", shape="hierarchical")
_SHARDED_WAYS = {"sharded": (_SHARDED, 1), f"{LARGER_STEP} x accumulation": (_SHARDED, LARGER_STEP)}


@dataclass(frozen=True)
class AlternativePlan:
    """The run elsewhere. All alternatives train on the same number of tokens."""

    way: str
    forecast: Forecast

    @property
    def learns_the_same(self) -> bool:
        """False with larger steps, which make fewer updates, and with DiLoCo, whose replicas train apart."""
        return self.forecast.tokens == 1 and not self.forecast.way.has_replicas

    @property
    def place(self) -> str:
        cluster = self.forecast.cluster
        hosts = f"{cluster.hosts} host{'s' * (cluster.hosts > 1)}"
        return f"{hosts}, {cluster.link.name}" if cluster.hosts > 1 and cluster.link else hosts

    @property
    def host_hours(self) -> float:
        return self.forecast.seconds.value * self.forecast.cluster.hosts / 3600


def alternatives(base: Forecast) -> list[AlternativePlan]:
    """All combinations of hosts, link and way. The link given or measured is added to those on sale.

    A sharded model stays so: it may fit in no other way.
    """
    ways = _SHARDED_WAYS if base.way.is_sharded else _WAYS
    links = [PlannedLink.ordered(bits) for bits in LINKS]
    planned = base.cluster.link
    if planned and planned.name not in [link.name for link in links]:
        links.insert(0, planned)
    combinations = []
    for hosts in HOSTS:
        for link in links if hosts > 1 else [None]:
            cluster = Cluster(hosts, base.cluster.workers, link)
            combinations += [
                AlternativePlan(name, replace(base, cluster=cluster, way=way, tokens=tokens))
                for number, (name, (way, tokens)) in enumerate(ways.items())
                if cluster.ranks > 1 or number == 0  # one rank exchanges nothing
            ]
    return combinations


def fastest(among: Sequence[AlternativePlan]) -> AlternativePlan:
    """The fastest of those that learn the same."""
    return min(_alike(among), key=lambda each: each.forecast.seconds.value)


def cheapest(among: Sequence[AlternativePlan]) -> AlternativePlan:
    """The cheapest of those that learn the same: the fewest host-hours, as all hosts have the same price."""
    return min(_alike(among), key=lambda each: each.host_hours)


def _alike(among: Sequence[AlternativePlan]) -> list[AlternativePlan]:
    return [each for each in among if each.learns_the_same]
