"""Sets up a run's records: the recorder, who is where, and what the devices and the link can do."""

from __future__ import annotations

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
from dragoman.measure.recorder import Recorder
from dragoman.measure.records import Attempt
from dragoman.measure.writer import RecordWriter
from dragoman.plan.work import CorpusSize, Work
from dragoman.sync.choice import MeasuredLink
from dragoman.sync.topology import Placement
from dragoman.train.state import State


def recorder(
    name: str, state: State, data: DataSet, placement: Placement, phases: Phases, writer: RecordWriter
) -> Recorder:
    """A recorder for this attempt. Collective."""
    world, topology = placement.world, placement.topology
    uuids = world.gather_text(_gpu_uuid(world.device))  # collective
    gpus = [uuid for rank, uuid in enumerate(uuids) if uuid and topology.rank_hosts[rank] == placement.host]
    ranks = neighbours.ranks_here(world)  # collective
    interface = topology.interfaces[placement.host]
    meter = HostMeter(interface, phases, gpus, ranks) if placement.is_leader else None
    began = clock.process_began()
    shift, jump = clock.since_last(writer.attempts, writer.last_time, began)
    run_clock = RunClock(world.sum([shift])[0])  # collective: rank 0 alone knows the attempts before
    attempt = Attempt(
        number=len(writer.attempts),
        started=run_clock.time(began),
        first_step=state.step + 1,
        ranks=world.size,
        boot=clock.boot(),
        clock_offset=run_clock.offset,
        jump_before=jump,
    )
    made = Recorder(placement, attempt, writer, meter, run_clock)  # collective
    made.facts(**_facts(name, state, data))
    made.placement(**_placement(placement))  # collective
    return made


def phases(placement: Placement) -> Phases:
    """The stopwatch of this rank's steps. A host's first rank also counts the bytes it sends to others."""
    topology = placement.topology
    counts_bytes = placement.is_leader and len(topology.hosts) > 1
    counters = KernelCounters(topology.interfaces[placement.host] if counts_bytes else None)
    return GpuPhases(counters) if placement.world.device.type == "cuda" else Phases(counters)


def _gpu_uuid(device: torch.device) -> str:
    """Empty on a CPU."""
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
    """Collective."""
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
    """Of each host. Collective."""
    own = [0.0] * len(placement.topology.hosts)
    if placement.is_leader:
        own[placement.host] = float(psutil.virtual_memory().total)
    return [int(nbytes) for nbytes in placement.world.sum(own)]


def probe(made: Recorder, state: State, placement: Placement, start: StartCheck) -> MeasuredLink | None:
    """What devices and link can do, before the first step; the link where there is one. Collective."""
    made.probe(
        "peak",
        state.step,
        start.peak_began,
        start.peak_seconds,
        flops_per_second=start.peak_flops_per_second,
    )
    if alone := start.all_reduce:
        made.probe("all_reduce", state.step, alone.began, alone.seconds, bytes=alone.bytes)
    if len(placement.topology.hosts) == 1:
        return None
    began = clock.seconds()
    link = MeasuredLink(*probes.link(placement))  # collective
    made.probe("link", state.step, began, clock.seconds() - began, **link._asdict())
    return link
