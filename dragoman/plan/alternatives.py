"""The same run on other clusters and by other ways of exchanging: what is cheapest, what is fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.exchange_way import LOCAL_STEPS, ExchangeWay
from dragoman.plan.cluster import Cluster, PlannedLink
from dragoman.plan.forecast import Forecast

HOSTS = (1, 2, 4, 8)
LINKS = (1e9, 10e9, 100e9)  # bits per second, as they are ordered
LARGER_STEP = 4  # times the tokens
# How gradients travel, and how many times the config's tokens a step has.
WAYS = {
    "fp32": (ExchangeWay(), 1),
    "bf16": (ExchangeWay(wire="bf16"), 1),
    f"{LARGER_STEP} x accumulation": (ExchangeWay(), LARGER_STEP),
    f"DiLoCo {LOCAL_STEPS}": (ExchangeWay(mode="diloco", steps_per_round=LOCAL_STEPS), 1),
}


@dataclass(frozen=True)
class Alternative:
    """All alternatives train on as many tokens."""

    way: str
    forecast: Forecast

    @property
    def learns_the_same(self) -> bool:
        """Larger steps make fewer updates, and DiLoCo's replicas each follow their own way for a while."""
        return self.forecast.tokens == 1 and not self.forecast.way.has_replicas

    @property
    def place(self) -> str:
        cluster = self.forecast.cluster
        hosts = f"{cluster.hosts} host{'s' * (cluster.hosts > 1)}"
        return f"{hosts}, {cluster.link.name}" if cluster.hosts > 1 and cluster.link else hosts

    @property
    def host_hours(self) -> float:
        return self.forecast.seconds.value * self.forecast.cluster.hosts / 3600


def alternatives(base: Forecast) -> list[Alternative]:
    """By hosts, link and way; a link that was given or measured stands beside those on sale."""
    links = [PlannedLink.ordered(bits) for bits in LINKS]
    own = base.cluster.link
    if own and own.name not in [link.name for link in links]:
        links.insert(0, own)
    found = []
    for hosts in HOSTS:
        for link in links if hosts > 1 else [None]:
            cluster = Cluster(hosts, base.cluster.workers, link)
            found += [
                Alternative(name, replace(base, cluster=cluster, way=way, tokens=tokens))
                for name, (way, tokens) in WAYS.items()
                if cluster.ranks > 1 or name == "fp32"
            ]
    return found


def fastest(among: Sequence[Alternative]) -> Alternative:
    """Of those that learn the same."""
    return min(_alike(among), key=lambda each: each.forecast.seconds.value)


def cheapest(among: Sequence[Alternative]) -> Alternative:
    """Of those that learn the same, by the hours of all hosts together: they cost the same each."""
    return min(_alike(among), key=lambda each: each.host_hours)


def _alike(among: Sequence[Alternative]) -> list[Alternative]:
    return [each for each in among if each.learns_the_same]
