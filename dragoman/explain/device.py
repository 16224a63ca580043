"""Were the devices fully used? Separates computing from waiting, and waiting by its cause."""

from __future__ import annotations

import numpy as np

from dragoman import format_units
from dragoman.explain import cores as core_time
from dragoman.explain import remedies
from dragoman.explain.bounds_from_link import NOT_RIGHT, impossible, judge, most_computing
from dragoman.explain.cores import Cores
from dragoman.explain.counterfactual import BOTTLENECK, NEGLIGIBLE, without_exchange
from dragoman.explain.finding import Finding, known
from dragoman.explain.gpus import BUSY, GpuUse, gpu_use
from dragoman.explain.step_breakdown import StepParts, mean, settled, step_parts
from dragoman.explain.straggler import straggler
from dragoman.explain.time_outside_steps import outside_advice, outside_seconds, slowed_by_writing
from dragoman.explain.traffic import is_one_machine
from dragoman.measure.records import Records

MANY_TIMES = 100.0  # what would be left of such a step is within the error of the measurements
MOSTLY = 0.5  # share of the step spent computing, if nothing else stands out
LEAST_LISTED = 0.01  # share of the step, for a wait for cores to be listed beside the others
CAUSES = {
    "waiting_network": "the exchange of gradients",
    "waiting_data": "data",
    "waiting_straggler": "a slower rank",
    "waiting_cpu": "a core",
}


def explain(records: Records) -> Finding:
    parts, gpu = step_parts(records), gpu_use(records)
    if parts is None or parts.computing is None:
        return _from_meters(records, parts, gpu)
    core_use = core_time.cores(records, parts)
    losses = _losses(records, parts, core_use)
    working = max(0.0, parts.computing - (core_use.waited if core_use else 0.0))
    verdict = _verdict(parts, losses, working)
    computing = working / parts.seconds
    sentences = [_opening(records, parts, verdict, computing, core_use)]
    sentences += _remarks(records, verdict, computing, gpu)
    slow = straggler(records) if verdict == "waiting_straggler" else None
    return Finding(
        id="device_utilisation",
        verdict=verdict,
        answer=" ".join(sentences),
        numbers=_numbers(records, parts, gpu, core_use) | (slow.numbers() if slow else {}),
        evidence=_evidence(records, parts, gpu, core_use),
        confidence="unknown" if verdict == "unknown" else "measured",
        advice=_advice(records, parts, losses) + outside_advice(records),
    )


def _losses(records: Records, parts: StepParts, core_use: Cores | None) -> dict[str, float]:
    """Returns how many seconds shorter a step would be without each cause of waiting, where known."""
    without = without_exchange(records, parts)  # as for the network question, so that the figures agree
    link = parts.seconds - without.seconds if without else None
    causes = {"waiting_network": link, "waiting_data": parts.data, "waiting_straggler": parts.excess}
    if core_use:
        causes["waiting_cpu"] = core_use.lost
        causes |= {name: max(0.0, (causes[name] or 0.0) - lost) for name, lost in core_use.behind.items()}
    return {name: lost for name, lost in causes.items() if lost is not None}


def _verdict(parts: StepParts, losses: dict[str, float], computing: float) -> str:
    """Returns the costliest wait if it slows steps as much as a bottleneck does (1.3 x), else `computing`."""
    largest = max(losses, key=lambda name: losses[name], default=None)
    if largest and _gain(parts, losses[largest]) >= BOTTLENECK:
        return largest
    if computing >= MOSTLY * parts.seconds:
        return "computing"
    return largest if largest and losses[largest] > computing else "unknown"


def _gain(parts: StepParts, lost: float) -> float:
    """Returns how many times faster the step would be, if a thousandth of it always remains."""
    return parts.seconds / max(parts.seconds - lost, 1e-3 * parts.seconds)


def _opening(
    records: Records, parts: StepParts, verdict: str, computing: float, core_use: Cores | None
) -> str:
    is_short = core_use is not None and core_use.waited >= core_time.WORTH_SAYING * parts.seconds
    is_listed = core_use is not None and core_use.waited >= LEAST_LISTED * parts.seconds
    for_cores = core_use.waited if core_use and is_listed else None
    waits = {
        "a core": for_cores,
        "the exchange": parts.link,
        "a slower rank": parts.straggler,
        "data": parts.data,
    }
    shares = [
        f"{format_units.share(w / parts.seconds)} for {name}" for name, w in waits.items() if w is not None
    ]
    split = f"the devices computed for {format_units.share(computing)} of each step"
    split += f" and waited {format_units.listed(shares)}" if shares else ""
    if verdict == "computing":
        return f"Mostly computing: {split}."
    if verdict == "unknown":
        return f"Unknown: {split}; the rest is in no recorded phase."
    # Ranks on one machine exchange without a network, although the verdict is the same.
    inside = verdict == "waiting_network" and is_one_machine(records)
    text = f"Waiting for {'the exchange between its ranks' if inside else CAUSES[verdict]}: {split}."
    if verdict == "waiting_straggler":
        slow = straggler(records)
        text += f" The slow one is {slow}." if slow else " No single rank is slow: the slowest one changes."
        share = core_use.ranks.get(slow.rank) if core_use and slow else None
        if share is not None and share < 1 - 2 * core_time.WORTH_SAYING:
            got = f"It got {format_units.share(share)} of the CPU time it needed"
            text += f" {got}: {core_time.cause(records)}."
    elif core_use and (verdict == "waiting_cpu" or is_short):
        got = f"The ranks got {format_units.share(core_use.share)} of the CPU time they needed"
        text += f" {got}: {core_time.cause(records)}."
    return text


def _remarks(records: Records, verdict: str, computing: float, gpu: GpuUse | None) -> list[str]:
    remarks = []
    if gpu and gpu.utilisation is not None and gpu.utilisation >= BUSY:
        busy = f"The GPUs reported {format_units.share(gpu.utilisation)} utilisation"
        power = f"{gpu.power_watts or 0:.0f} W of {gpu.power_limit_watts or 0:.0f} W"
        if gpu.is_busy_waiting:
            remarks.append(
                f"{busy} but drew only {power}: a kernel that waits counts as busy, but does not compute."
            )
        elif computing < MOSTLY:
            remarks.append(f"{busy}, but mostly from kernels that wait: busy does not mean computing.")
    outside = outside_seconds(records)
    if outside and (worth := {kind: share for kind, share in outside.shares().items() if share >= 0.01}):
        names = {"evaluation": "evaluation", "checkpoint": "checkpoints"}
        listed = format_units.listed(
            [f"{names[kind]} took {format_units.share(share)}" for kind, share in worth.items()]
        )
        remarks.append(f"Between steps, {listed} of the time since the first step.")
    if (writing := _writing_share(records)) and writing >= 0.01:
        remarks.append(
            f"Writing checkpoints in the background made steps {format_units.share(writing)} longer."
        )
    return remarks


def _writing_share(records: Records) -> float | None:
    """Returns the share of all steps' time that was lost to writing checkpoints in the background."""
    slowed, seconds = slowed_by_writing(records), records.steps["seconds"]
    return None if slowed is None else slowed / float(seconds[np.isfinite(seconds)].sum())


def peak_flops(records: Records) -> float | None:
    """Returns the measured peak of the devices in FLOP/s, the median of the probes."""
    peaks = [probe.numbers.get("flops_per_second", np.nan) for probe in records.probes_of("peak")]
    peaks = [peak for peak in peaks if np.isfinite(peak) and peak > 0]
    return float(np.median(peaks)) if peaks else None


def flops_share(records: Records, parts: StepParts) -> float | None:
    """Returns the model's FLOP/s as a share of the devices' measured peak."""
    peak = peak_flops(records)
    if peak is None or not records.facts.flops_per_step:
        return None
    return records.facts.flops_per_step / parts.seconds / peak


def _numbers(
    records: Records, parts: StepParts, gpu: GpuUse | None, core_use: Cores | None
) -> dict[str, float]:
    cpu = mean(records.hosts["cpu_share"])
    utilisation = gpu.utilisation if gpu else cpu if records.facts.device == "cpu" else None
    outside = outside_seconds(records)
    return known(
        compute_share=parts.share(
            max(0.0, (parts.computing or 0.0) - (core_use.waited if core_use else 0.0))
        ),
        flops_share=flops_share(records, parts),
        utilisation=utilisation,
        power_share=gpu.power_share if gpu else None,
        power_watts=gpu.power_watts if gpu else None,
        power_limit_watts=gpu.power_limit_watts if gpu else None,
        network_share=parts.share(parts.link),
        straggler_share=parts.share(parts.straggler),
        data_share=parts.share(parts.data),
        optimizer_share=parts.share(parts.optimizer),
        gpu_memory_bytes=gpu.memory_bytes if gpu else None,
        writing_share=_writing_share(records),
        **{f"{kind}_share": share for kind, share in (outside.shares() if outside else {}).items()},
    ) | core_time.numbers(records, parts, core_use)


def _evidence(records: Records, parts: StepParts, gpu: GpuUse | None, core_use: Cores | None) -> list[str]:
    steps = format_units.counted(parts.steps, "step")
    evidence = [f"shares: phases of {steps}, mean over ranks"]
    evidence.append(
        "computing: forward, backward and optimizer, without the time that they waited for a core"
    )
    if flops_share(records, parts) is not None:
        peak = f"measured matmul peak{f' in {records.facts.precision}' * bool(records.facts.precision)}"
        evidence.append(f"flops_share: the model's FLOPs per step over step time and the {peak}")
    if core_use:
        evidence.append("cpu_share: time that the ranks' threads ran in steps, over time run or ready to run")
    if gpu:
        evidence.append("utilisation, power_share: the GPUs' own meters, during steps")
    elif records.facts.device == "cpu":
        evidence.append("utilisation: all cores of all hosts, whatever ran on them")
    slowest = records.phase("backward", "slowest")[settled(records)]
    if np.isfinite(slowest).any():
        evidence.append("straggler: exposed exchange (mean over ranks minus the least), each rank's phases")
    return evidence


def _advice(records: Records, parts: StepParts, losses: dict[str, float]) -> list[str]:
    advice = []
    for name, lost in sorted(losses.items(), key=lambda item: -item[1]):
        times = _gain(parts, lost)
        if times < NEGLIGIBLE:
            continue
        gain = f"{times:.1f} x faster steps" if times < MANY_TIMES else "many times faster steps"
        if name == "waiting_network" and is_one_machine(records):
            more = remedies.named("use more tokens per step", remedies.more_tokens(records.facts))
            advice.append(f"{more}, or fewer ranks with more threads each: up to {gain}")
        elif name == "waiting_network":
            advice.append(f"shorten the exchange (see the network question): up to {gain}")
        elif name == "waiting_cpu":
            advice.append(f"{_about_cores(records)}: up to {gain}")
        elif name == "waiting_data":
            advice.append(f"read data ahead or from a faster disk: up to {gain}")
        else:
            slow = straggler(records)
            if slow is None:
                advice.append(f"spread the work more evenly over the ranks: up to {gain}")
                continue
            which = f"rank {slow.rank}{f' ({slow.host})' if slow.host else ''}"
            there = [each.name for each in core_time.programs(records) if each.host in (None, slow.host)]
            ask = f"{format_units.listed(there)} ran there" if there else "what else runs there?"
            ask = "how does its data reach it?" if slow.waits_for_data else ask
            advice.append(f"make {which} as fast as the others ({ask}): up to {gain}")
    return advice


def _about_cores(records: Records) -> str:
    if others := core_time.programs(records):
        places = sorted({program.host for program in others if program.host})
        where = f" on {format_units.hosts(places)}" if places else ""
        unseen = [host for host in records.facts.hosts if host not in places] if places else []
        rest = f", and find what uses the cores of {format_units.hosts(unseen)}" if unseen else ""
        return f"stop or move {format_units.listed([program.name for program in others])}{where}{rest}"
    return "use fewer ranks or threads than cores, or raise the run's CPU limit"


def _from_meters(records: Records, parts: StepParts | None, gpu: GpuUse | None) -> Finding:
    """The finding without phases: power tells computing from waiting, and the cost model bounds computing."""
    share = flops_share(records, parts) if parts else None
    numbers, evidence, facts = known(flops_share=share), [], []
    if gpu and (gpu.utilisation is not None or gpu.power_share is not None):
        numbers |= known(utilisation=gpu.utilisation, power_share=gpu.power_share)
        evidence.append("utilisation, power_share: the GPUs' own meters")
        facts.append(_meters(gpu))
    if parts and records.facts.computing_seconds:
        low, high = (seconds / parts.seconds for seconds in records.facts.computing_seconds)
        if impossible(records, parts):
            numbers |= known(computing_steps_low=low)
            facts.append(f"by the cost model, computing alone takes at least {low:,.3g} x the step's time")
        else:
            low, high = min(1.0, low), min(1.0, high)
            numbers |= known(compute_share_low=low, compute_share_high=high, not_compute_share_low=1 - high)
            facts.append(
                "by the cost model, computing takes "
                f"{format_units.share(low)} to {format_units.share(high)} of a step"
            )
        evidence.append(f"compute_share: estimated: {records.facts.computing_inputs}")
    verdict, meaning = _judged(records, parts, gpu)
    if verdict == "unknown":
        facts.insert(0, "unknown: the phases of a step were not recorded")
    answer = _capital(
        "; ".join(facts or ["judging by its bytes and the link, the exchange takes most of a step"])
    )
    return Finding(
        id="device_utilisation",
        verdict=verdict,
        answer=f"{answer}. {meaning}".strip(),
        numbers=numbers,
        evidence=evidence,
        confidence="unknown" if verdict == "unknown" else "estimated",
    )


def _meters(gpu: GpuUse) -> str:
    power = (
        f"{format_units.share(gpu.power_share)} of their power limit" if gpu.power_share is not None else ""
    )
    if gpu.utilisation is None:
        return f"the GPUs drew {power}"
    return (
        f"the GPUs showed {format_units.share(gpu.utilisation)} utilisation{f' at {power}' if power else ''}"
    )


def _judged(records: Records, parts: StepParts | None, gpu: GpuUse | None) -> tuple[str, str]:
    """Returns the verdict without phases, and sentences that explain it."""
    hosts = len(set(records.facts.rank_hosts)) or len(records.facts.hosts)
    network = judge(records, parts, gpu).verdict if parts and hosts > 1 else None
    waits = gpu is not None and (gpu.is_busy_waiting or gpu.is_waiting and network == "bottleneck")
    if hosts > 1 and network != "not_bottleneck" and (waits or network == "bottleneck"):
        power = "The GPUs were busy, but not computing. " if gpu and gpu.is_busy_waiting else ""
        if waits and not power:
            power = "The GPUs drew too little power to be computing. "
        look = f"With {hosts} machines, this is how waiting for the exchange looks"
        return "waiting_network", f"{power}{look} (for the network, or for a slower rank)."
    most = most_computing(records, parts) if parts else None
    waited = most is not None and most * BOTTLENECK <= 1  # computing cannot fill the step
    rest = f"At least {format_units.share(1 - most)} of the step went to something else." if most else ""
    if gpu and gpu.is_working and (gpu.utilisation is None or gpu.utilisation >= BUSY):
        if gpu.is_moment and waited and most is not None and most < MOSTLY:
            return "unknown", f"The GPUs were read while computing, as they are in part of any step. {rest}"
        return "computing", ""
    if parts and impossible(records, parts):
        return "unknown", f"So {NOT_RIGHT}."
    if gpu and gpu.is_busy_waiting:
        return "unknown", "The GPUs were busy, but not computing; what they waited for was not recorded."
    cannot_tell = "This does not tell computing from waiting."
    if gpu is None and parts and records.facts.computing_seconds:
        if records.facts.computing_seconds[0] * BOTTLENECK >= parts.seconds:
            return "computing", ""
        return "unknown", rest if waited else cannot_tell
    return "unknown", rest if waited else cannot_tell if gpu else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
