"""Can the hosts hold and do what the run will ask of them? Pure functions from their facts to checks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from dragoman import format_units
from dragoman.doctor.check import Check, Status
from dragoman.doctor.facts import HostFacts
from dragoman.plan.needs import Needs

_SLOW = 0.7  # times the median of the others
_OTHERS_CORES = 0.25  # that programs of others use together; a desktop's own take less
_IDLE_LOAD = 0.5  # processes per core that may already want to run


def place(hosts: Sequence[HostFacts]) -> list[Check]:
    """A run folder that training would refuse."""
    advice = "give another --run"
    return [Check("run", host.name, "error", host.run_problem, advice) for host in hosts if host.run_problem]


def disk(hosts: Sequence[HostFacts], needs: Needs | None) -> list[Check]:
    """Free disk against the checkpoints that will be kept."""
    checks = []
    for host in hosts:
        free = host.disk_free_bytes + host.checkpoint_bytes
        value = f"{format_units.size(free)} free at {host.disk_path}"
        status: Status = "ok"
        if needs:
            each, count = needs.checkpoint_bytes, needs.checkpoints
            value += f"; {count} checkpoints of {format_units.size(each)} will be there at once"
            # With room for two a run can begin: the older one is kept until the newer one is whole.
            status = "ok" if free >= count * each else "warning" if free >= min(2, count) * each else "error"
        advice = "make room, or lower checkpoint.keep_last and checkpoint.keep_best" if status != "ok" else ""
        checks.append(Check("disk", host.name, status, value, advice))
    return checks


def memory(hosts: Sequence[HostFacts], needs: Needs | None) -> list[Check]:
    """What the ranks will hold against what there is. Activations are estimated, so they only warn."""
    checks = []
    for host in hosts:
        total, available, ranks = _memory_of(host)
        value = f"{format_units.size(available)} of {format_units.size(total)} available"
        status: Status = "ok"
        if needs:
            state, all_of_it = ranks * needs.state_bytes, ranks * needs.rank_bytes
            value += f"; {ranks} rank{'s' * (ranks > 1)} will need about {format_units.size(all_of_it)}"
            status = "error" if state > total else "warning" if all_of_it > available else "ok"
        advice = "fewer ranks on this host, or data.split=2" if status == "warning" else ""
        if status == "error":
            advice = "a smaller model, or fewer ranks on this host: not even weights and moments fit"
        checks.append(Check("memory", host.name, status, value, advice))
    return checks


def ranks(hosts: Sequence[HostFacts]) -> list[Check]:
    """More ranks than cores take turns."""
    checks = []
    for host in hosts:
        value = f"{host.ranks} rank{'s' * (host.ranks > 1)} on {host.cores} core{'s' * (host.cores > 1)}"
        if host.ranks <= host.cores:
            checks.append(Check("ranks", host.name, "ok", value))
        else:
            advice = f"at most {host.cores} on this host: ranks that share a core wait for each other"
            checks.append(Check("ranks", host.name, "warning", value, advice))
    return checks


def gpus(hosts: Sequence[HostFacts]) -> list[Check]:
    """Nothing where no host has one."""
    if not any(host.gpus.listed for host in hosts):
        return []
    checks = [_gpus_of(host) for host in hosts]
    drivers = [(host, host.gpus.driver) for host in hosts if host.gpus.driver]
    for host, driver in drivers[1:]:
        if driver != drivers[0][1]:
            value = f"{driver}; {drivers[0][0].name} has {drivers[0][1]}"
            checks.append(Check("gpu driver", host.name, "warning", value, "the same driver on every host"))
    return checks


def speed(hosts: Sequence[HostFacts]) -> list[Check]:
    """Peaks of matrix products: a step takes as long as its slowest rank."""
    checks = []
    for host in hosts:
        if not host.peaks:
            continue
        lowest = min(host.peaks)
        others = [peak for other in hosts for peak in other.peaks]
        others.remove(lowest)
        usual = statistics.median(others) if others else lowest
        value = f"{format_units.flops(lowest)}{_load(host)}"
        if lowest >= _SLOW * usual:
            checks.append(Check("speed", host.name, "ok", value))
        else:
            value += f"; the others have {format_units.flops(usual)}"
            advice = "end what else runs there, or leave the host out: every step waits for the slowest rank"
            checks.append(Check("speed", host.name, "warning", value, advice))
    return checks


def cores(hosts: Sequence[HostFacts]) -> list[Check]:
    """Do other programs use the cores now? A step waits for the rank that gets least of them."""
    checks = []
    for host in hosts:
        used = sum(program.cores for program in host.programs)
        if host.gpus.usable or used < _OTHERS_CORES:
            continue
        listed = format_units.listed(
            [f"{program.name} uses {program.cores:.2g}" for program in host.programs]
        )
        value = f"other programs use {used:.2g} of {host.cores} cores: {listed}"
        advice = "end or move them, or start the run when they are done"
        checks.append(Check("cores", host.name, "warning", value, advice))
    return checks


def _memory_of(host: HostFacts) -> tuple[float, float, int]:
    """Total, available, and the ranks that share it: a GPU has one rank, a host's memory has them all."""
    if host.gpus.usable:
        smallest = min(host.gpus.listed, key=lambda gpu: gpu.free_bytes)
        return smallest.memory_bytes, smallest.free_bytes, 1
    return host.memory_bytes, host.memory_available_bytes, host.ranks


def _gpus_of(host: HostFacts) -> Check:
    found = host.gpus
    if not found.listed:
        advice = "install NVIDIA's driver there, or leave the host out: the others would wait for its CPU"
        return Check("gpu", host.name, "error", "none; other hosts have some", advice)
    value = f"{found.usable} of {len(found.listed)} usable: {found.listed[0].name}, driver {found.driver}"
    if found.cuda is None:
        advice = "install a torch with CUDA: this one computes on the CPU"
        return Check("gpu", host.name, "error", f"{value}; torch was built without CUDA", advice)
    if found.usable < host.ranks:
        advice = "fewer ranks on this host, or look at CUDA_VISIBLE_DEVICES"
        return Check("gpu", host.name, "error", f"{value}; {host.ranks} ranks need one each", advice)
    if found.usable < len(found.listed):
        advice = "look at CUDA_VISIBLE_DEVICES if all of them are meant"
        return Check("gpu", host.name, "warning", value, advice)
    return Check("gpu", host.name, "ok", value)


def _load(host: HostFacts) -> str:
    """The load is a minute's mean, so that what the doctor itself does hardly shows in it."""
    is_busy = not host.gpus.usable and host.load > _IDLE_LOAD * host.cores
    return f"; {host.load:.1f} processes wanted its {host.cores} cores in the last minute" if is_busy else ""
