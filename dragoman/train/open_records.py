"""Sets up a run's records: who is where, what the devices and the link can do, and the recorder itself."""

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
from dragoman.measure.phases import Phases
from dragoman.measure.recorder import Recorder
from dragoman.measure.records import Attempt
from dragoman.measure.writer import RecordWriter
from dragoman.plan.work import CorpusSize, Work
from dragoman.sync.choice import MeasuredLink
from dragoman.sync.topology import Topology
from dragoman.sync.world import World
from dragoman.train.state import State


def recorder(
    name: str,
    state: State,
    data: DataSet,
    world: World,
    topology: Topology,
    phases: Phases,
    writer: RecordWriter,
) -> Recorder:
    """A recorder for this attempt. Collective."""
    host = topology.rank_hosts[world.rank]
    uuids = world.gather_text(_gpu_uuid(world.device))
    gpus = [uuid for rank, uuid in enumerate(uuids) if uuid and topology.rank_hosts[rank] == host]
    is_leader = world.rank in topology.leaders
    ranks = neighbours.ranks_here(world)
    meter = HostMeter(topology.interfaces[host], phases, gpus, ranks) if is_leader else None
    began = clock.process_began()
    shift, jump = clock.since_last(writer.attempts, writer.last_time, began)
    run_clock = RunClock(world.sum([shift])[0])  # rank 0's: only it knows the attempts before. Collective.
    attempt = Attempt(
        number=len(writer.attempts),
        started=run_clock.time(began),
        first_step=state.step + 1,
        ranks=world.size,
        boot=clock.boot(),
        clock_offset=run_clock.offset,
        jump_before=jump,
    )
    made = Recorder(world, topology, attempt, writer, meter, run_clock)
    made.facts(**_facts(name, state, data))
    made.placement(**_placement(world, topology))
    return made


def counters(world: World, topology: Topology) -> KernelCounters:
    """Of every step. The first rank of a host counts its bytes, where there are others to send them to."""
    counts_bytes = world.rank in topology.leaders and len(topology.hosts) > 1
    return KernelCounters(topology.interfaces[topology.rank_hosts[world.rank]] if counts_bytes else None)


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


def _placement(world: World, topology: Topology) -> dict[str, object]:
    """Collective."""
    on_gpu = world.device.type == "cuda"
    return {
        "ranks": world.size,
        "hosts": topology.hosts,
        "rank_hosts": topology.rank_hosts,
        "device": torch.cuda.get_device_name(world.device) if on_gpu else "cpu",
        "gradient_interfaces": topology.interfaces,
        "host_memory_bytes": _memory(world, topology),
    }


def _memory(world: World, topology: Topology) -> list[int]:
    """Of each host. Collective."""
    own = [0.0] * len(topology.hosts)
    if world.rank in topology.leaders:
        own[topology.rank_hosts[world.rank]] = float(psutil.virtual_memory().total)
    return [int(nbytes) for nbytes in world.sum(own)]


def probe(
    made: Recorder, state: State, world: World, topology: Topology, start: StartCheck
) -> MeasuredLink | None:
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
    if len(topology.hosts) == 1:
        return None
    began = clock.seconds()
    link = MeasuredLink(*probes.link(world, topology))
    made.probe("link", state.step, began, clock.seconds() - began, **link._asdict())
    return link
