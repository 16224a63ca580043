"""The doctor at the start of every run: each rank examines its host and rank 0 judges, in a few seconds.

An error stops the run here, on all ranks, before anything is written. The link between hosts is measured a
little later, when the run can record it.
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
from dragoman.doctor import capacity, host
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
    "torchrun's rendezvous trusts the network: it listens on all interfaces, and anyone who can reach it can "
    "run code here. --workers and --hosts open no such port (SECURITY.md)"
)


class AllReduceProbe(NamedTuple):
    """A plain all-reduce over all ranks, timed."""

    began: float  # a reading of the clock
    bytes: int
    seconds: float


@dataclass(frozen=True)
class StartCheck:
    """What the checks at the start of a run found and measured."""

    lines: list[str]  # for people; on rank 0
    peak_flops_per_second: float  # of all ranks together
    peak_began: float  # when its measurement began: a reading of the clock
    peak_seconds: float  # how long measuring it took
    all_reduce: AllReduceProbe | None  # only with several hosts


def check(placement: Placement, data: Path, run: Path, settings: Training) -> StartCheck:
    """Examines the hosts. On an error, rank 0 raises it and the others exit silently. Collective."""
    world, topology = placement.world, placement.topology
    neighbours = Neighbours(ranks_here(world))  # collective
    here = host.facts(data, run)
    if len(topology.hosts) > 1:
        here.own_name_addresses = host.resolve([here.name])[here.name]
    _stop_without_kernels(world, topology, here)  # collective
    began = clocks.seconds()
    peaks = probes.peaks(world, settings.train.precision)  # collective
    peak_seconds = clocks.seconds() - began
    here.programs = host.programs(neighbours)
    ranks = gather(world, here)  # collective
    exchanged = None
    if len(topology.hosts) > 1:
        exchanged = AllReduceProbe(clocks.seconds(), *probes.all_reduce(world))  # collective
    lines = done_by_main(  # collective
        world, lambda: _judged(_hosts(ranks, topology, peaks), settings, exchanged)
    )
    return StartCheck([*_trust(world), *(lines or [])], sum(peaks), began, peak_seconds, exchanged)


def _stop_without_kernels(world: World, topology: Topology, here: HostFacts) -> None:
    """Stops all ranks if torch has no kernels for a GPU, before the first kernel dies of it. Collective."""
    ranks = _all_facts(world, here)  # collective
    done_by_main(world, lambda: _refuse(failed(capacity.gpus(_hosts(ranks, topology)))))  # collective


def _trust(world: World) -> list[str]:
    return [_TORCHRUN_TRUSTS] if world.under_torchrun else []


def gather(world: World, here: HostFacts, clock: Callable[[], float] = time.time) -> list[HostFacts]:
    """Every rank's facts on rank 0, with the offset of its clock from rank 0's. Collective."""
    ranks = _all_facts(world, here)  # collective
    for facts, offset in zip(ranks, _clock_offsets(world, clock), strict=True):
        facts.clock_offset_seconds, facts.clock_error_seconds = offset
    return ranks


def _all_facts(world: World, here: HostFacts) -> list[HostFacts]:
    """Every rank's facts on rank 0. Collective."""
    texts = world.gather_bytes(here.model_dump_json().encode())
    return [HostFacts.model_validate_json(text) for text in texts]


def _clock_offsets(world: World, clock: Callable[[], float]) -> list[ClockOffset]:
    """The offset of each rank's clock from rank 0's, on rank 0; nothing on the others. Collective."""
    rounds: list[list[ClockReading]] = []
    for _ in range(READINGS):
        sent = clock()
        world.broadcast_bytes(b"")  # no rank reads its clock before rank 0 has
        readings = world.gather(torch.tensor([clock()], dtype=torch.float64))
        received = clock()
        rounds.append([ClockReading(sent, float(reading), received) for reading in readings])
    return [clock_offset(of_rank) for of_rank in zip(*rounds, strict=True)]


def _hosts(ranks: Sequence[HostFacts], topology: Topology, peaks: Sequence[float] = ()) -> list[HostFacts]:
    """One entry for each machine, in the order of its first rank."""
    hosts: dict[tuple[str, str], HostFacts] = {}
    for rank, facts in enumerate(ranks):
        known = hosts.setdefault((facts.name, facts.boot), facts)
        known.ranks = known.ranks + 1 if known is not facts else 1
        if core_numbers := set(known.core_numbers) | set(facts.core_numbers):
            known.core_numbers, known.cores = sorted(core_numbers), len(core_numbers)
        if known is not facts and len(facts.gpus.usable) == 1:
            known.gpus.add(facts.gpus)
        known.peaks += peaks[rank : rank + 1]
        if len(topology.hosts) > 1:
            known.interface = topology.interfaces[topology.rank_hosts[rank]]
    return list(hosts.values())


def _judged(hosts: Sequence[HostFacts], settings: Training, exchanged: AllReduceProbe | None) -> list[str]:
    checks = judge(hosts, needs_of(hosts, settings), settings)
    _refuse(failed(checks))
    lines = [_line(facts) for facts in hosts] if len(hosts) > 1 else []
    if exchanged:
        ranks = sum(facts.ranks for facts in hosts)
        description = f"all-reduce of {format_units.size(exchanged.bytes)} over {ranks} ranks"
        lines.append(f"{description}: {format_units.seconds(exchanged.seconds)}")
    warnings = [check for check in checks if check.status == "warning"]
    return [*lines, *(f"warning: {check}; try: {check.advice}" for check in warnings)]


def _line(facts: HostFacts) -> str:
    ranks = f"{facts.ranks} rank{'s' * (facts.ranks > 1)}"
    each = format_units.flops(sum(facts.peaks) / len(facts.peaks))
    return f"host {facts.name}: {ranks} at {each}, interface {facts.interface}"


def _refuse(errors: Sequence[Check]) -> None:
    if len(errors) == 1:
        raise DragomanError(f"not started: {errors[0]}", hint=errors[0].advice)
    if errors:
        each = "".join(f"\n  {check}\n    try: {check.advice}" for check in errors)
        raise DragomanError(f"not started, {len(errors)} checks failed:{each}")
