"""Finds the rank that the others wait for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.explain.finding import known
from dragoman.measure.records import Records

# Sums over windows average out the chance of single steps. A rank that is still busier than the others by
# this factor is always slow; below it, the slowest rank changes from step to step.
LASTING = 1.05
MOST_STEPS = 0.75  # without windows: the same rank is slowest in this share of steps (by chance: 1 / ranks)


@dataclass(frozen=True)
class Straggler:
    rank: int
    host: str | None
    times_busier: float | None  # compared with the mean of the others
    waits_for_data: bool  # late because of its data, rather than of its computing

    def __str__(self) -> str:
        where = f"rank {self.rank}" + (f" on {self.host}" if self.host else "")
        if self.times_busier is None:
            return where
        doing = "waits for data and computes" if self.waits_for_data else "computes"
        return f"{where}, which {doing} {self.times_busier:.1f} x as long as the others"

    def numbers(self) -> dict[str, float]:
        return known(slowest_rank=self.rank, slowest_rank_times_busier=self.times_busier)


def host_of(records: Records, rank: int) -> str | None:
    """Returns the name of the rank's host, if it is known."""
    facts = records.facts
    if 0 <= rank < len(facts.rank_hosts) and 0 <= facts.rank_hosts[rank] < len(facts.hosts):
        return facts.hosts[facts.rank_hosts[rank]]
    return None


def rank_seconds(records: Records, phase: str) -> dict[int, float]:
    """Returns the seconds of a phase over the whole run, by rank; empty if ranks were not recorded apart."""
    ranks, seconds = records.windows["rank"], records.windows[phase]
    known = np.isfinite(ranks) & np.isfinite(seconds)
    return {int(rank): float(seconds[known & (ranks == rank)].sum()) for rank in np.unique(ranks[known])}


def straggler(records: Records) -> Straggler | None:
    """Returns the rank that is regularly late; None if there is none or it cannot be told."""
    data, forward, backward = (rank_seconds(records, phase) for phase in ("data", "forward", "backward"))
    computing = {rank: forward[rank] + backward[rank] for rank in forward if rank in backward}
    if len(computing) < 2:
        return _from_steps(records)
    busy = {rank: seconds + data.get(rank, 0.0) for rank, seconds in computing.items()}
    rank = max(busy, key=lambda rank: busy[rank])
    others = [seconds for other, seconds in busy.items() if other != rank]
    usual = sum(others) / len(others)
    if usual <= 0 or busy[rank] < LASTING * usual:
        return None
    usual_data = sum(data.get(other, 0.0) for other in busy if other != rank) / len(others)
    late_by_data = data.get(rank, 0.0) - usual_data
    return Straggler(
        rank, host_of(records, rank), busy[rank] / usual, late_by_data > (busy[rank] - usual) / 2
    )


def _from_steps(records: Records) -> Straggler | None:
    slowest = records.phase("backward", "slowest")
    slowest = slowest[np.isfinite(slowest)]
    if not len(slowest) or (records.facts.ranks or 0) < 2:
        return None
    ranks, counts = np.unique(slowest, return_counts=True)
    if counts.max() < MOST_STEPS * len(slowest):
        return None
    rank = int(ranks[counts.argmax()])
    return Straggler(rank, host_of(records, rank), None, False)
