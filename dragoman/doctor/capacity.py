"""Do the hosts have what the run needs? Pure functions from their facts to checks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from dragoman import format_units
from dragoman.cost import capability
from dragoman.cost.capability import AskedPrecision
from dragoman.doctor.check import ALL, Check, Status
from dragoman.doctor.facts import GpuFacts, HostFacts
from dragoman.plan.needs import Needs

_SLOW = 0.7  # times the median of the others
_OTHERS_CORES = 0.25  # cores that other programs may use together; a desktop's own use less
_IDLE_LOAD = 0.5  # processes per core that may want to run before the host counts as busy


def place(hosts: Sequence[HostFacts]) -> list[Check]:
    """An error for each host whose run folder training would refuse."""
    advice = "give another folder with --run"
    return [Check("run", host.name, "error", host.run_problem, advice) for host in hosts if host.run_problem]


def disk(hosts: Sequence[HostFacts], needs: Needs | None) -> list[Check]:
    """Is there disk for the checkpoints that will be kept?"""
    checks = []
    for host in hosts:
        free = host.disk_free_bytes + host.checkpoint_bytes
        value = f"{format_units.size(free)} free at {host.disk_path}"
        status: Status = "ok"
        if needs:
            each, count = needs.checkpoint_bytes, needs.checkpoints
            value += f"; up to {count} checkpoints of {format_units.size(each)} will be there at once"
            # With room for two a run can begin: the older is kept until the newer is complete.
            status = "ok" if free >= count * each else "warning" if free >= min(2, count) * each else "error"
        advice = ""
        if status != "ok":
            advice = "free some space, or lower checkpoint.keep_last and checkpoint.keep_best"
        checks.append(Check("disk", host.name, status, value, advice))
    return checks


def memory(hosts: Sequence[HostFacts], needs: Needs | None) -> list[Check]:
    """Is there memory for the ranks? Activations are estimated, so a lack of memory for them only warns."""
    checks = []
    for host in hosts:
        total, available, ranks = _memory_of(host)
        value = f"{format_units.size(available)} of {format_units.size(total)} available"
        status: Status = "ok"
        if needs:
            state, all_of_it = (
                ranks * each for each in (needs.state_bytes(host.ranks), needs.rank_bytes(host.ranks))
            )
            value += f"; {ranks} rank{'s' * (ranks > 1)} will need about {format_units.size(all_of_it)}"
            status = "error" if state > total else "warning" if all_of_it > available else "ok"
        advice = ""
        if needs and status == "warning":
            advice = f"start fewer ranks on this host, or set {needs.less_memory}"
        if needs and status == "error":
            divided = ", or sync.mode=sharded, which divides it among them" if needs.gathered is None else ""
            advice = (
                f"use a smaller model or fewer ranks on this host{divided}: not even weights and moments fit"
            )
        checks.append(Check("memory", host.name, status, value, advice))
    return checks


def ranks(hosts: Sequence[HostFacts]) -> list[Check]:
    """Does every rank have a core?"""
    checks = []
    for host in hosts:
        value = f"{host.ranks} rank{'s' * (host.ranks > 1)} on {host.cores} core{'s' * (host.cores > 1)}"
        if host.ranks <= host.cores:
            checks.append(Check("ranks", host.name, "ok", value))
        else:
            advice = f"start at most {host.cores} on this host: ranks that share a core wait for each other"
            checks.append(Check("ranks", host.name, "warning", value, advice))
    return checks


def gpus(hosts: Sequence[HostFacts]) -> list[Check]:
    """Can every rank use a GPU, and are the drivers the same? No checks if no host has a GPU."""
    if not any(host.gpus.listed or host.gpus.usable for host in hosts):
        return []
    checks = [_gpus_of(host) for host in hosts]
    drivers = [(host, host.gpus.driver) for host in hosts if host.gpus.driver]
    for host, driver in drivers[1:]:
        if driver != drivers[0][1]:
            value = f"{driver}; {drivers[0][0].name} has {drivers[0][1]}"
            advice = "install the same driver on every host"
            checks.append(Check("gpu driver", host.name, "warning", value, advice))
    return checks


def precision(hosts: Sequence[HostFacts], asked: AskedPrecision | None) -> list[Check]:
    """The number format of the run on these GPUs. No checks without GPUs or without a config."""
    used = [(host.name, gpu) for host in hosts for gpu in host.gpus.used_by(host.ranks)]
    if not used or asked is None:
        return []
    capabilities = [gpu.capability for _, gpu in used]
    chosen = capability.automatic(capabilities) if asked == "auto" else asked
    value = capability.words(chosen, capabilities)
    lacking = [f"{gpu.name} on {host}" for host, gpu in used if not capability.has_bf16(gpu.capability)]
    if chosen == "bf16" and lacking:
        value += f" by {lacking[0]}: several times slower"
        return [Check("precision", ALL, "warning", value, "train.precision=fp16")]
    if asked == "auto":
        value += f", as {lacking[0]} has no units for bf16" if lacking else ", by train.precision=auto"
    return [Check("precision", ALL, "ok", value)]


def speed(hosts: Sequence[HostFacts]) -> list[Check]:
    """Is a host slower at matrix products than the others? A step takes as long as its slowest rank."""
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
            value += f"; the other ranks reach {format_units.flops(usual)}"
            or_without = ", or leave the host out" if len(hosts) > 1 else ""
            advice = f"end other programs there{or_without}: each step waits for the slowest rank"
            checks.append(Check("speed", host.name, "warning", value, advice))
    return checks


def cores(hosts: Sequence[HostFacts]) -> list[Check]:
    """Do other programs use the cores now? A step waits for the rank that gets the least of them."""
    checks = []
    for host in hosts:
        used = sum(program.cores for program in host.programs)
        if host.gpus.usable or used < _OTHERS_CORES:
            continue
        listed = format_units.listed(
            [f"{program.name} uses {program.cores:.2g}" for program in host.programs]
        )
        value = f"other programs use {used:.2g} of {host.cores} cores: {listed}"
        advice = "end or move them, or start the run once they are done"
        checks.append(Check("cores", host.name, "warning", value, advice))
    return checks


def _memory_of(host: HostFacts) -> tuple[float, float, int]:
    """Total and available memory, and the ranks that share it: one per GPU, all on a host without GPUs."""
    if host.gpus.usable and host.gpus.listed:
        smallest = min(host.gpus.listed, key=lambda gpu: gpu.free_bytes)
        return smallest.memory_bytes, smallest.free_bytes, 1
    if host.gpus.usable:  # how much of it is free is not known
        least = min(gpu.memory_bytes for gpu in host.gpus.usable)
        return least, least, 1
    return host.memory_bytes, host.memory_available_bytes, host.ranks


def _gpus_of(host: HostFacts) -> Check:
    facts = host.gpus
    if not facts.listed and not facts.usable:
        advice = "install NVIDIA's driver there, or leave the host out: the others would wait for its CPU"
        return Check("gpu", host.name, "error", "none; other hosts have some", advice)
    usable = len(facts.usable)
    first, driver = (facts.listed or facts.usable)[0], facts.driver or "not known"
    value = f"{usable} of {max(usable, len(facts.listed))} usable: {first.name}, driver {driver}"
    if facts.cuda is None:
        advice = "install a torch with CUDA: this one computes on the CPU"
        return Check("gpu", host.name, "error", f"{value}; torch was built without CUDA", advice)
    if not usable:
        advice = (
            f"check CUDA_VISIBLE_DEVICES, and install the driver that CUDA {facts.cuda} needs (docs/gpus.md)"
        )
        return Check("gpu", host.name, "error", f"{value}, torch is for CUDA {facts.cuda}", advice)
    if usable < host.ranks:
        advice = "start fewer ranks on this host, or check CUDA_VISIBLE_DEVICES"
        return Check("gpu", host.name, "error", f"{value}; {host.ranks} ranks need one each", advice)
    if unfit := [gpu.capability for gpu in facts.used_by(host.ranks) if not facts.has_kernels(gpu)]:
        value += f"; {_no_kernels(facts)}"
        return Check("gpu", host.name, "error", value, capability.torch_that_fits(min(unfit)))
    if usable < len(facts.listed):
        advice = "check CUDA_VISIBLE_DEVICES if the run should use all of them"
        return Check("gpu", host.name, "warning", value, advice)
    return Check("gpu", host.name, "ok", value)


def _no_kernels(facts: GpuFacts) -> str:
    """Which GPUs this torch has no kernels for; the first kernel would end with torch's "no kernel image"."""
    unfit = {gpu.name: gpu.capability for gpu in facts.usable if not facts.has_kernels(gpu)}
    names = [f"{name} (sm_{major}{minor})" for name, (major, minor) in unfit.items()]
    only_for = f"only for {' '.join(facts.architectures)}"
    return f"this torch, for CUDA {facts.cuda}, has no kernels for {format_units.listed(names)}, {only_for}"


def _load(host: HostFacts) -> str:
    """Words for a busy host. The load is a mean over one minute, so the doctor itself hardly adds to it."""
    is_busy = not host.gpus.usable and host.load > _IDLE_LOAD * host.cores
    return f"; {host.load:.1f} processes wanted its {host.cores} cores in the last minute" if is_busy else ""
