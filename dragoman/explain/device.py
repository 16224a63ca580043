"""Were the devices fully used? Computing told from waiting, and waiting told apart by its cause."""

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

MANY_TIMES = 100.0  # what is left of such a step is as small as the errors of what was measured
MOSTLY = 0.5  # of the step in computing, if nothing else stands out
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
    found = core_time.cores(records, parts)
    losses = _losses(records, parts, found)
    working = max(0.0, parts.computing - (found.waited if found else 0.0))
    verdict = _verdict(parts, losses, working)
    computing = working / parts.seconds
    sentences = [_opening(records, parts, verdict, computing, found)]
    sentences += _remarks(records, verdict, computing, gpu)
    slow = straggler(records) if verdict == "waiting_straggler" else None
    return Finding(
        id="device_utilisation",
        verdict=verdict,
        answer=" ".join(sentences),
        numbers=_numbers(records, parts, gpu, found) | (slow.numbers() if slow else {}),
        evidence=_evidence(records, parts, gpu, found),
        confidence="unknown" if verdict == "unknown" else "measured",
        advice=_advice(records, parts, losses) + outside_advice(records),
    )


def _losses(records: Records, parts: StepParts, found: Cores | None) -> dict[str, float]:
    """Seconds by which a step would be shorter without each cause of waiting, where known."""
    without = without_exchange(records, parts)  # as in the network's answer: both give the same figure
    link = parts.seconds - without.seconds if without else None
    causes = {"waiting_network": link, "waiting_data": parts.data, "waiting_straggler": parts.excess}
    if found:
        causes["waiting_cpu"] = found.lost
        causes |= {name: max(0.0, (causes[name] or 0.0) - lost) for name, lost in found.behind.items()}
    return {name: lost for name, lost in causes.items() if lost is not None}


def _verdict(parts: StepParts, losses: dict[str, float], computing: float) -> str:
    """The dearest wait if it is worth naming; a wait is one as the network is a bottleneck (1.3 x)."""
    largest = max(losses, key=lambda name: losses[name], default=None)
    if largest and _gain(parts, losses[largest]) >= BOTTLENECK:
        return largest
    if computing >= MOSTLY * parts.seconds:
        return "computing"
    return largest if largest and losses[largest] > computing else "unknown"


def _gain(parts: StepParts, lost: float) -> float:
    """How many times faster the step would be; something is always left of it."""
    return parts.seconds / max(parts.seconds - lost, 1e-3 * parts.seconds)


def _opening(records: Records, parts: StepParts, verdict: str, computing: float, found: Cores | None) -> str:
    for_cores = found.waited if found and found.waited >= core_time.WORTH_SAYING * parts.seconds else None
    waits = {
        "a core": for_cores,
        "the exchange": parts.link,
        "a slower rank": parts.straggler,
        "data": parts.data,
    }
    shares = [
        f"{format_units.share(w / parts.seconds)} for {name}" for name, w in waits.items() if w is not None
    ]
    split = f"devices computed {format_units.share(computing)} of each step"
    split += f" and waited {format_units.listed(shares)}" if shares else ""
    if verdict == "computing":
        return f"Computing: {split}."
    if verdict == "unknown":
        return f"Unknown: {split}; the rest is in no recorded phase."
    # Between ranks of one machine there is no network, whatever the verdict is called.
    inside = verdict == "waiting_network" and is_one_machine(records)
    text = f"Waiting for {'the exchange between its ranks' if inside else CAUSES[verdict]}: {split}."
    if verdict == "waiting_straggler":
        who = straggler(records)
        text += f" The slow one is {who}." if who else " No rank is always the slow one: it changes."
        its = found.ranks.get(who.rank) if found and who else None
        if its is not None and its < 1 - 2 * core_time.WORTH_SAYING:
            text += (
                f" It got {format_units.share(its)} of the CPU time that it wanted: {core_time.who(records)}."
            )
    if found and (verdict == "waiting_cpu" or for_cores is not None and verdict != "waiting_straggler"):
        text += f" The ranks got {format_units.share(found.share)} of the CPU time that they wanted: "
        text += f"{core_time.who(records)}."
    return text


def _remarks(records: Records, verdict: str, computing: float, gpu: GpuUse | None) -> list[str]:
    remarks = []
    if gpu and gpu.utilisation is not None and gpu.utilisation >= BUSY:
        busy = f"GPUs reported {format_units.share(gpu.utilisation)} utilisation"
        power = f"{gpu.power_watts or 0:.0f} W of {gpu.power_limit_watts or 0:.0f} W"
        if gpu.is_busy_waiting:
            remarks.append(f"{busy} at only {power}: busy, but not computing (a kernel that waits counts).")
        elif computing < MOSTLY:
            remarks.append(f"{busy}, most of it in kernels that wait: busy is not computing.")
    outside = outside_seconds(records)
    if outside and (worth := {kind: share for kind, share in outside.shares().items() if share >= 0.01}):
        listed = format_units.listed(
            [f"{kind} took {format_units.share(share)}" for kind, share in worth.items()]
        )
        remarks.append(f"Outside steps, {listed} of the time.")
    if (writing := _writing_share(records)) and writing >= 0.01:
        remarks.append(
            f"Writing checkpoints in the background made steps {format_units.share(writing)} longer."
        )
    return remarks


def _writing_share(records: Records) -> float | None:
    """Of the time of all steps, by how much they were longer beside the writing of a checkpoint."""
    slowed, seconds = slowed_by_writing(records), records.steps["seconds"]
    return None if slowed is None else slowed / float(seconds[np.isfinite(seconds)].sum())


def peak_flops(records: Records) -> float | None:
    """FLOP/s of the devices, as measured; the median of the probes."""
    peaks = [probe.numbers.get("flops_per_second", np.nan) for probe in records.probes_of("peak")]
    peaks = [peak for peak in peaks if np.isfinite(peak) and peak > 0]
    return float(np.median(peaks)) if peaks else None


def flops_share(records: Records, parts: StepParts) -> float | None:
    peak = peak_flops(records)
    if peak is None or not records.facts.flops_per_step:
        return None
    return records.facts.flops_per_step / parts.seconds / peak


def _numbers(records: Records, parts: StepParts, gpu: GpuUse | None, found: Cores | None) -> dict[str, float]:
    cpu = mean(records.hosts["cpu_share"])
    utilisation = gpu.utilisation if gpu else cpu if records.facts.device == "cpu" else None
    outside = outside_seconds(records)
    return known(
        compute_share=parts.share(max(0.0, (parts.computing or 0.0) - (found.waited if found else 0.0))),
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
    ) | core_time.numbers(records, parts, found)


def _evidence(records: Records, parts: StepParts, gpu: GpuUse | None, found: Cores | None) -> list[str]:
    steps = format_units.counted(parts.steps, "step")
    evidence = [f"shares: phases of {steps}, mean over ranks; computing is forward, backward, optimizer"]
    if flops_share(records, parts) is not None:
        evidence.append("flops_share: the model's FLOPs in a step over its time and the measured matmul peak")
    if found:
        evidence.append("cpu_share: each rank's threads in steps: time run over time run or ready to run")
    if gpu:
        evidence.append("utilisation, power_share: the GPUs' own meters, during steps")
    elif records.facts.device == "cpu":
        evidence.append("utilisation: all cores of all hosts, whatever ran on them")
    slowest = records.phase("backward", "slowest")[settled(records)]
    if np.isfinite(slowest).any():
        evidence.append("straggler: exposed exchange over ranks (mean less least), and each rank's phases")
    return evidence


def _advice(records: Records, parts: StepParts, losses: dict[str, float]) -> list[str]:
    advice = []
    for name, lost in sorted(losses.items(), key=lambda item: -item[1]):
        times = _gain(parts, lost)
        if times < NEGLIGIBLE:
            continue
        gain = f"{times:.1f} x faster steps" if times < MANY_TIMES else "many times faster steps"
        if name == "waiting_network" and is_one_machine(records):
            more = remedies.named("more tokens per step", remedies.more_tokens(records.facts))
            advice.append(f"{more}, or fewer ranks with more threads each: up to {gain}")
        elif name == "waiting_network":
            advice.append(
                f"an exchange that costs nothing: {gain}; the network's answer says what comes near"
            )
        elif name == "waiting_cpu":
            advice.append(f"{_about_cores(records)}: up to {gain}")
        elif name == "waiting_data":
            advice.append(f"data read ahead or from a faster disk: up to {gain}")
        else:
            who = straggler(records)
            if who is None:
                advice.append(f"work dealt out more evenly over the ranks: up to {gain}")
                continue
            which = f"rank {who.rank}{f' ({who.host})' if who.host else ''}"
            there = [each.name for each in core_time.programs(records) if each.host in (None, who.host)]
            ask = f"{format_units.listed(there)} ran there" if there else "what else runs there?"
            ask = "how does its data reach it?" if who.waits_for_data else ask
            advice.append(f"{which} as fast as the others ({ask}): up to {gain}")
    return advice


def _about_cores(records: Records) -> str:
    if others := core_time.programs(records):
        places = sorted({program.host for program in others if program.host})
        where = f" on {format_units.hosts(places)}" if places else ""
        unseen = [host for host in records.facts.hosts if host not in places] if places else []
        rest = f", and what takes the cores of {format_units.hosts(unseen)}" if unseen else ""
        return f"end or move {format_units.listed([program.name for program in others])}{where}{rest}"
    return "fewer ranks or threads than cores, or a higher limit on the run's CPU"


def _from_meters(records: Records, parts: StepParts | None, gpu: GpuUse | None) -> Finding:
    """Without phases, power still tells computing from spinning, and the cost model bounds computing."""
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
            facts.append(f"by the cost model computing takes {low:,.3g} times the step at least")
        else:
            low, high = min(1.0, low), min(1.0, high)
            numbers |= known(compute_share_low=low, compute_share_high=high, not_compute_share_low=1 - high)
            facts.append(
                "by the cost model computing takes "
                f"{format_units.share(low)} to {format_units.share(high)} of a step"
            )
        evidence.append(f"compute_share: estimated: {records.facts.computing_inputs}")
    verdict, meaning = _judged(records, parts, gpu)
    if verdict == "unknown":
        facts.insert(0, "unknown: the phases of a step were not recorded")
    answer = "; ".join(facts or ["the exchange takes most of a step, by its bytes and the link"])
    return Finding(
        id="device_utilisation",
        verdict=verdict,
        answer=f"{answer[0].upper()}{answer[1:]}{meaning}.",
        numbers=numbers,
        evidence=evidence,
        confidence="unknown" if verdict == "unknown" else "estimated",
    )


def _meters(gpu: GpuUse) -> str:
    said = [f"{format_units.share(gpu.utilisation)} utilisation"] if gpu.utilisation is not None else []
    if gpu.power_share is not None:
        said.append(f"{format_units.share(gpu.power_share)} of the power limit")
    return " at ".join(said)


def _judged(records: Records, parts: StepParts | None, gpu: GpuUse | None) -> tuple[str, str]:
    """The verdict, and what is to be said of it."""
    hosts = len(set(records.facts.rank_hosts)) or len(records.facts.hosts)
    network = judge(records, parts, gpu).verdict if parts and hosts > 1 else None
    waits = gpu is not None and (gpu.is_busy_waiting or gpu.is_waiting and network == "bottleneck")
    if hosts > 1 and network != "not_bottleneck" and (waits or network == "bottleneck"):
        known_busy = gpu is not None and gpu.is_busy_waiting
        busy = ": busy, but not computing" if known_busy else ": too cool to be computing" if waits else ""
        look = f". With {hosts} machines that is what waiting for the exchange looks like"
        return "waiting_network", f"{busy}{look} (for the network, or in it for a slower rank)"
    most = most_computing(records, parts) if parts else None
    waited = most is not None and most * BOTTLENECK <= 1  # computing cannot fill the step
    rest = f"; whatever filled the other {format_units.share(1 - most)}, it was not computing" if most else ""
    if gpu and gpu.is_working and (gpu.utilisation is None or gpu.utilisation >= BUSY):
        if gpu.is_moment and waited and most is not None and most < MOSTLY:
            return "unknown", f": they computed when somebody looked, which was one moment of a step{rest}"
        return "computing", ""
    if parts and impossible(records, parts):
        return "unknown", f", more than there is: {NOT_RIGHT}"
    if gpu and gpu.is_busy_waiting:
        return "unknown", ": busy, but not computing; what they waited for was not recorded"
    if gpu is None and parts and records.facts.computing_seconds:
        if records.facts.computing_seconds[0] * BOTTLENECK >= parts.seconds:
            return "computing", ""
        return "unknown", rest if waited else ", which does not tell computing from waiting"
    return "unknown", rest if waited else ", and that does not tell computing from waiting" if gpu else ""
