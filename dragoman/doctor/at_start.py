"""The doctor at the start of every run: each rank looks at its host, rank 0 judges, all hear. Seconds.

What stops a run stops it here, on all ranks, before anything is written. The link between hosts is measured
a little later, where the run records it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from dragoman import format_units
from dragoman.config import Training
from dragoman.doctor import host
from dragoman.doctor.check import Check, failed
from dragoman.doctor.clock_offset import READINGS, ClockOffset, ClockReading, clock_offset
from dragoman.doctor.facts import HostFacts
from dragoman.doctor.judge import judge, needs_of
from dragoman.errors import DragomanError
from dragoman.measure import clock as clocks
from dragoman.measure import probes
from dragoman.measure.neighbours import Neighbours, ranks_here
from dragoman.sync.agree import done_by_main
from dragoman.sync.topology import Placement, Topology
from dragoman.sync.world import World

_TORCHRUN_TRUSTS = (
    "torchrun's rendezvous trusts the network: it listens on all interfaces, and whoever reaches it can run "
    "code here. --workers and --hosts have no such port (SECURITY.md)"
)


class AllReduceProbe(NamedTuple):
    """A plain one over all ranks."""

    began: float  # a reading of the clock
    bytes: int
    seconds: float


@dataclass(frozen=True)
class StartCheck:
    """What was found."""

    lines: list[str]  # worth saying; on rank 0
    peak_flops_per_second: float  # of all ranks together
    peak_began: float  # when it was measured: a reading of the clock
    peak_seconds: float  # that measuring it took
    all_reduce: AllReduceProbe | None  # where there are several hosts


def check(placement: Placement, data: Path, run: Path, settings: Training) -> StartCheck:
    """What the hosts can do. Rank 0 raises what prevents a start; the others leave silently. Collective."""
    world, topology = placement.world, placement.topology
    neighbours = Neighbours(ranks_here(world))  # collective
    own = host.facts(data, run)
    if len(topology.hosts) > 1:
        own.own_name_addresses = host.resolve([own.name])[own.name]
    began = clocks.seconds()
    peaks = probes.peaks(world, settings.train.precision)  # collective
    peak_seconds = clocks.seconds() - began
    own.programs = host.programs(neighbours)
    ranks = gather(world, own)  # collective
    exchanged = None
    if len(topology.hosts) > 1:
        exchanged = AllReduceProbe(clocks.seconds(), *probes.all_reduce(world))  # collective
    lines = done_by_main(  # collective
        world, lambda: _judged(_hosts(ranks, peaks, topology), settings, exchanged)
    )
    return StartCheck([*_trust(world), *(lines or [])], sum(peaks), began, peak_seconds, exchanged)


def _trust(world: World) -> list[str]:
    return [_TORCHRUN_TRUSTS] if world.under_torchrun else []


def gather(world: World, own: HostFacts, clock: Callable[[], float] = time.time) -> list[HostFacts]:
    """Every rank's facts on rank 0, with its clock against rank 0's. Collective."""
    ranks = [
        HostFacts.model_validate_json(content)
        for content in world.gather_bytes(own.model_dump_json().encode())
    ]
    for facts, offset in zip(ranks, _clock_offsets(world, clock), strict=True):
        facts.clock_offset_seconds, facts.clock_error_seconds = offset
    return ranks


def _clock_offsets(world: World, clock: Callable[[], float]) -> list[ClockOffset]:
    """Each rank's clock against rank 0's, on rank 0; nothing on the others. Collective."""
    rounds: list[list[ClockReading]] = []
    for _ in range(READINGS):
        asked = clock()
        world.broadcast_bytes(b"")  # nobody reads its clock before rank 0 has asked
        readings = world.gather(torch.tensor([clock()], dtype=torch.float64))
        answered = clock()
        rounds.append([ClockReading(asked, float(reading), answered) for reading in readings])
    return [clock_offset(of_rank) for of_rank in zip(*rounds, strict=True)]


def _hosts(ranks: Sequence[HostFacts], peaks: Sequence[float], topology: Topology) -> list[HostFacts]:
    """One entry for each machine, in the order of its first rank."""
    hosts: dict[tuple[str, str], HostFacts] = {}
    for rank, facts in enumerate(ranks):
        known = hosts.setdefault((facts.name, facts.boot), facts)
        known.ranks = known.ranks + 1 if known is not facts else 1
        if together := set(known.core_numbers) | set(facts.core_numbers):
            known.core_numbers, known.cores = sorted(together), len(together)
        known.peaks.append(peaks[rank])
        if len(topology.hosts) > 1:
            known.interface = topology.interfaces[topology.rank_hosts[rank]]
    return list(hosts.values())


def _judged(hosts: Sequence[HostFacts], settings: Training, exchanged: AllReduceProbe | None) -> list[str]:
    checks = judge(hosts, needs_of(hosts, settings))
    if errors := failed(checks):
        raise _refusal(errors)
    lines = [_line(facts) for facts in hosts] if len(hosts) > 1 else []
    if exchanged:
        ranks = sum(facts.ranks for facts in hosts)
        what = f"all-reduce of {format_units.size(exchanged.bytes)} over {ranks} ranks"
        lines.append(f"{what}: {format_units.seconds(exchanged.seconds)}")
    warnings = [check for check in checks if check.status == "warning"]
    return [*lines, *(f"warning: {check}; try: {check.advice}" for check in warnings)]


def _line(facts: HostFacts) -> str:
    ranks = f"{facts.ranks} rank{'s' * (facts.ranks > 1)}"
    each = format_units.flops(sum(facts.peaks) / len(facts.peaks))
    return f"host {facts.name}: {ranks} of {each}, interface {facts.interface}"


def _refusal(errors: Sequence[Check]) -> DragomanError:
    if len(errors) == 1:
        return DragomanError(f"not started: {errors[0]}", hint=errors[0].advice)
    each = "".join(f"\n  {check}\n    try: {check.advice}" for check in errors)
    return DragomanError(f"not started, {len(errors)} checks failed:{each}")
