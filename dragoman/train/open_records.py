"""Sets up a run's records: the recorder, the placement of ranks, and the speed of devices and link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psutil
import torch

from dragoman import config
from dragoman.data.store import DataSet
from dragoman.doctor.at_start import StartCheck
from dragoman.measure import clock, neighbours, probes
from dragoman.measure.clock import RunClock
from dragoman.measure.counters import KernelCounters
from dragoman.measure.meters import HostMeter
from dragoman.measure.phases import GpuPhases, Phases
from dragoman.measure.recorder import LateRows, Recorder
from dragoman.measure.records import Attempt
from dragoman.measure.writer import RecordWriter
from dragoman.plan.work import CorpusSize, Work
from dragoman.sync.choice import MeasuredLink
from dragoman.sync.topology import Placement
from dragoman.train.state import State


@dataclass(frozen=True)
class LostWorld:
    """What a rank still has of the world that it was in before."""

    left: float  # a reading of the clock
    late: LateRows | None


def recorder(
    name: str,
    state: State,
    data: DataSet,
    placement: Placement,
    phases: Phases,
    writer: RecordWriter,
    keepers: Sequence[int],
    before: LostWorld | None,
) -> Recorder:
    """A recorder for this attempt, which begins with the process or when the world before it was left.

    `keepers` are the ranks with a file to write. Collective.
    """
    world, topology = placement.world, placement.topology
    uuids = world.gather_text(_gpu_uuid(world.device))  # collective
    gpus = [uuid for rank, uuid in enumerate(uuids) if uuid and topology.rank_hosts[rank] == placement.host]
    ranks = neighbours.ranks_here(world)  # collective
    interface = topology.interfaces[placement.host]
    meter = HostMeter(interface, phases, gpus, ranks) if placement.is_leader else None
    began = before.left if before else clock.process_began()
    state.attempt = int(world.most([len(writer.attempts)])[0])  # collective: only keepers know
    shift, jump = clock.since_last(writer.attempts, writer.last_time, began)
    run_clock = RunClock(world.sum([shift])[0])  # collective: only rank 0 knows the earlier attempts
    attempt = Attempt(
        number=state.attempt,
        started=run_clock.time(began),
        first_step=state.step + 1,
        ranks=world.size,
        boot=clock.boot(),
        clock_offset=run_clock.offset,
        jump_before=jump,
    )
    if before and writer.attempts and writer.attempts[-1].ended is None:
        ended = {"ended": run_clock.time(before.left), "reason": "ended by a fault"}
        lost = writer.attempts[-1].model_copy(update=ended)
        writer.do(lambda file: file.replace_attempt(lost))
    new = Recorder(placement, attempt, writer, meter, run_clock, keepers)  # collective
    new.record_late(before.late if before else None)  # collective
    new.facts(**_facts(name, state, data))
    new.placement(**_placement(placement))  # collective
    return new


def phases(placement: Placement) -> Phases:
    """The stopwatch of this rank's steps. A host's first rank also counts the bytes the host sends away."""
    topology = placement.topology
    counts_bytes = placement.is_leader and len(topology.hosts) > 1
    counters = KernelCounters(topology.interfaces[placement.host] if counts_bytes else None)
    return GpuPhases(counters) if placement.world.device.type == "cuda" else Phases(counters)


def _gpu_uuid(device: torch.device) -> str:
    """The GPU's UUID; empty on a CPU."""
    return str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else ""


def _facts(name: str, state: State, data: DataSet) -> dict[str, object]:
    return {
        "name": name,
        "parameters": sum(parameter.numel() for parameter in state.model.parameters()),
        "flops_per_step": Work(state.config, CorpusSize.of(data.card)).flops_per_step(),
        "settings": dict(config.flat(state.config)),
        "data_card": data.card.model_dump(mode="json"),
    }


def _placement(placement: Placement) -> dict[str, object]:
    """Where ranks run, as recorded. Collective."""
    world, topology = placement.world, placement.topology
    on_gpu = world.device.type == "cuda"
    return {
        "ranks": world.size,
        "hosts": topology.hosts,
        "rank_hosts": topology.rank_hosts,
        "device": torch.cuda.get_device_name(world.device) if on_gpu else "cpu",
        "gradient_interfaces": topology.interfaces,
        "host_memory_bytes": _memory(placement),
    }


def _memory(placement: Placement) -> list[int]:
    """The memory of each host in bytes. Collective."""
    totals = [0.0] * len(placement.topology.hosts)
    if placement.is_leader:
        totals[placement.host] = float(psutil.virtual_memory().total)
    return [int(nbytes) for nbytes in placement.world.sum(totals)]


def probe(recorder: Recorder, state: State, placement: Placement, start: StartCheck) -> MeasuredLink | None:
    """Records the speed of devices and link before the first step; returns the link, if any. Collective."""
    recorder.probe(
        "peak",
        state.step,
        start.peak_began,
        start.peak_seconds,
        flops_per_second=start.peak_flops_per_second,
    )
    if alone := start.all_reduce:
        recorder.probe("all_reduce", state.step, alone.began, alone.seconds, bytes=alone.bytes)
    if len(placement.topology.hosts) == 1:
        return None
    began = clock.seconds()
    link = MeasuredLink(*probes.link(placement))  # collective
    recorder.probe("link", state.step, began, clock.seconds() - began, **link._asdict())
    return link
