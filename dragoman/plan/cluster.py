"""Machines that are not rented yet: how many, how many ranks on each, and what joins them."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.figures import ordered_link
from dragoman.plan.estimate import Estimate

# Of a rate as ordered, what gradients get. Headers take 4 to 6 % of a full frame; 94 % were measured between
# hosts held to 100 Mbit/s and to 1 Gbit/s. An order is not a capacity: a shared link carries less, and public
# runs on an order of 1 Gbit/s carried 1.4 to 1.9.
CARRIED = (0.94, 0.75, 1.9)
# One process does not fill a fast link through sockets.
FAST_BITS_PER_SECOND = 10e9
CARRIED_FAST = (0.7, 0.25, 0.95)
ROUND_TRIP = Estimate(0.0002, 0.00005, 0.001, "usual within a data centre")


@dataclass(frozen=True)
class PlannedLink:
    """Between two machines. A run's own measurement is what its gradients got; an order is only an order."""

    bits_per_second: Estimate  # of gradients
    round_trip_seconds: Estimate
    name: str

    @classmethod
    def ordered(cls, bits: float) -> PlannedLink:
        value, low, high = CARRIED if bits <= FAST_BITS_PER_SECOND else CARRIED_FAST
        source = f"{value:.0%} of the order, {low:.0%} to {high:.0%}"
        return cls(Estimate(bits * value, bits * low, bits * high, source), ROUND_TRIP, named(bits))

    @classmethod
    def parse(cls, text: str) -> PlannedLink:
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
    """1 Gbit/s"""
    scaled, unit = (bits / 1e9, "Gbit/s") if bits >= 1e9 else (bits / 1e6, "Mbit/s")
    return f"{scaled:.3g} {unit}"
