"""The machines to plan for: how many hosts, how many ranks on each, and the link between them."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.figures import ordered_link
from dragoman.plan.estimate import Estimate

# The share of the ordered rate that gradients get: expected, least and most. Headers take 4 to 6 % of a full
# frame; 94 % was measured between hosts limited to 100 Mbit/s and to 1 Gbit/s. The ordered rate is not the
# capacity: a shared link carries less, and public runs on an ordered 1 Gbit/s carried 1.4 to 1.9.
CARRIED = (0.94, 0.75, 1.9)
# One process cannot fill a fast link through sockets.
FAST_BITS_PER_SECOND = 10e9
CARRIED_FAST = (0.7, 0.25, 0.95)
ROUND_TRIP = Estimate(0.0002, 0.00005, 0.001, "usual within a data centre")


@dataclass(frozen=True)
class PlannedLink:
    """The link between two machines, as ordered or as measured by a run."""

    bits_per_second: Estimate  # that gradients get
    round_trip_seconds: Estimate
    name: str

    @classmethod
    def ordered(cls, bits: float) -> PlannedLink:
        value, low, high = CARRIED if bits <= FAST_BITS_PER_SECOND else CARRIED_FAST
        source = f"{value:.0%} of the ordered rate, {low:.0%} to {high:.0%}"
        return cls(Estimate(bits * value, bits * low, bits * high, source), ROUND_TRIP, named(bits))

    @classmethod
    def parse(cls, text: str) -> PlannedLink:
        """The link that an option such as `1gbit` orders."""
        return cls.ordered(ordered_link(text))


@dataclass(frozen=True)
class Cluster:
    hosts: int
    workers: int  # ranks on each
    link: PlannedLink | None  # None on one host

    @property
    def ranks(self) -> int:
        return self.hosts * self.workers

    @property
    def rank_hosts(self) -> list[int]:
        return [rank // self.workers for rank in range(self.ranks)]

    def __str__(self) -> str:
        hosts = f"{self.hosts} host{'s' * (self.hosts > 1)}"
        ranks = f"{self.workers} rank{'s' * (self.workers > 1)}{' each' * (self.hosts > 1)}"
        joined = f", {self.link.name} between them" if self.link and self.hosts > 1 else ""
        return f"{hosts} with {ranks}{joined}"


def named(bits: float) -> str:
    """A rate in words: `1 Gbit/s`."""
    scaled, unit = (bits / 1e9, "Gbit/s") if bits >= 1e9 else (bits / 1e6, "Mbit/s")
    return f"{scaled:.3g} {unit}"
