"""The network's part in a step whose phases were not recorded: bounds from bytes, link, GPU and power.

DDP sends during the backward of the last microbatch, and backward is two thirds of computing. So an exchange
of T seconds can be hidden behind at most two thirds of the computing C:

    S = C + T - hidden,  0 <= hidden <= 2/3 C   ->   S - T <= C <= 3 (S - T)

Without the exchange the step would be S / C times faster: at least S / 3(S - T), at most S / (S - T). If the
cost model bounds C on its own, S / C follows from that; if both bounds are known, they must agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman import format_units
from dragoman.explain.counterfactual import (
    BOTTLENECK,
    NEGLIGIBLE,
    WithoutExchange,
    cost,
    expected_bytes,
    link_rate,
    network_advice,
)
from dragoman.explain.finding import Finding, known, unknown
from dragoman.explain.gpus import GpuUse
from dragoman.explain.step_breakdown import StepParts
from dragoman.explain.traffic import sent_per_step
from dragoman.measure.records import Records

# An ordered rate may be that of one of two bonded ports, or of one direction. A run that sends over twice as
# much is on a different link.
ORDER_IS_WRONG = 2.0
# The rates of common ports, in bits per second. A port that is full during the whole step carries 94 % of its
# rate as payload, and a step also contains a little computing. Other waits give such a rate only by chance.
PORTS = (10e6, 100e6, 1e9, 10e9, 25e9, 40e9, 100e9)
PORT_FILLED = (0.7, 1.0)
HARDLY_COMPUTES = 3.0  # a step this many times as long as its computing is filled by something else
# Every step has moments of computing. If they are rarer than one in ten, a single reading that shows one
# contradicts other evidence.
RARE_MOMENT = 10.0
MANY_TIMES = 100.0  # larger figures are not worth giving
PLAUSIBLE_SHARE = 0.9  # of the least computing time by the cost model: a shorter step must be an error
NOT_RIGHT = "the step time (or is it steps per second?), the batch or the GPU must be wrong"
NEEDED = "Needed: the link's rate, the GPUs' power in training, or the GPU's type, batch and parameters."
MEASURE = (
    "measure the link: `iperf3 -s` on one machine, `iperf3 -c HOST` with that machine's name on the other"
)


@dataclass(frozen=True)
class Bounds:
    """How many times faster the step would be without the exchange, at least and at most, and why."""

    low: float
    high: float
    why: str
    wire_seconds: float | None = None  # the time that the bytes take at the rate given


@dataclass(frozen=True)
class Judgement:
    verdict: str
    opening: str
    link: Bounds | None
    computing: Bounds | None
    port: float | None = None  # bits per second of the port that was full, if it is not the one ordered

    def range(self) -> tuple[float, float] | None:
        """Returns the bounds from all evidence; None if there is none or it is contradictory."""
        sides = [side for side in (self.link, self.computing) if side]
        if not sides:
            return None
        low, high = max(side.low for side in sides), min(side.high for side in sides)
        return (low, high) if low <= high else None


def from_link(
    records: Records, parts: StepParts, gpu: GpuUse | None, numbers: dict[str, float], evidence: list[str]
) -> Finding:
    """Returns the finding about the network of a run whose phases were not recorded."""
    moved = _moved(records)
    if not moved:
        because = "neither the phases of a step nor the bytes of an exchange were recorded"
        because += " (needed: the number of parameters, or the bytes of their gradients)"
        return unknown("network", because, numbers).model_copy(update={"evidence": evidence})
    judgement = judge(records, parts, gpu)
    numbers |= known(implied_bits_per_second=8 * moved / parts.seconds)
    if gpu:
        numbers |= known(power_share=gpu.power_share)
    most = most_computing(records, parts)
    numbers |= known(
        wire_seconds=judgement.link.wire_seconds if judgement.link else None,
        not_compute_share_low=None if most is None else 1 - most,
        power_share=gpu.power_share if gpu else None,
    )
    if judgement.port:
        numbers |= known(link_bits_per_second=judgement.port)
        evidence = [line for line in evidence if not line.startswith("link_bits_per_second")]
        evidence.append("link_bits_per_second: the port that the steps filled, from their bytes and seconds")
    if limits := judgement.range():
        numbers |= known(speedup_without_exchange_low=limits[0], speedup_without_exchange_high=limits[1])
    if records.facts.computing_seconds:
        low, high = records.facts.computing_seconds
        numbers |= known(computing_seconds_low=low, computing_seconds_high=high)
    return Finding(
        id="network",
        verdict=judgement.verdict,
        answer=_answer(records, parts, moved, judgement, gpu),
        numbers=numbers,
        evidence=[*evidence, *_evidence(records, gpu)],
        confidence="unknown" if judgement.verdict == "unknown" else "estimated",
        advice=_advice(records, parts, judgement),
    )


def judge(records: Records, parts: StepParts, gpu: GpuUse | None) -> Judgement:
    """Judges the network by the bounds from link, cost model and GPUs."""
    if least := impossible(records, parts):
        longer = f"computing alone takes at least {format_units.seconds(least)}, longer than the step"
        return Judgement("unknown", f"Unknown: {longer}, so {NOT_RIGHT}", _by_link(records, parts), None)
    link, computing = _by_link(records, parts), _by_computing(records, parts)
    if port := _full_port(records, parts, link, computing, gpu):
        ordered = format_units.rate(_ordered(records))
        why = f"this is what a {format_units.rate(port)} port carries, not the {ordered} ordered"
        filled = Bounds(*bounds(parts.seconds, parts.seconds), why)
        return Judgement("bottleneck", "Yes, judging by the rate of the steps", filled, computing, port)
    verdict, opening = _verdict(link, computing, gpu)
    return Judgement(verdict, opening, link, computing)


def most_computing(records: Records, parts: StepParts) -> float | None:
    """Returns the largest share of a step that computing can fill, if the cost model gives it; at most 1."""
    if not records.facts.computing_seconds or impossible(records, parts):
        return None
    return min(1.0, records.facts.computing_seconds[1] / parts.seconds)


def impossible(records: Records, parts: StepParts) -> float | None:
    """Returns the least seconds of computing if the step is shorter than that, else None."""
    least = records.facts.computing_seconds[0] if records.facts.computing_seconds else 0.0
    return least if parts.seconds < PLAUSIBLE_SHARE * least else None


def bounds(step_seconds: float, exchange_seconds: float) -> tuple[float, float]:
    """Returns how many times faster, at least and at most, the step would be without this exchange."""
    left = max(step_seconds - exchange_seconds, 0.01 * step_seconds)
    return max(1.0, step_seconds / (3 * left)), step_seconds / left


def _moved(records: Records) -> float | None:
    return expected_bytes(records) or sent_per_step(records)


def _by_link(records: Records, parts: StepParts) -> Bounds | None:
    moved, rate = _moved(records), link_rate(records)
    ordered = records.facts.ordered_link_bits_per_second
    if not moved or not (rate or ordered):
        return None
    reached = 8 * moved / parts.seconds
    if rate or ordered and reached <= ordered:
        slowest = fastest = rate or ordered
    elif ordered and reached <= ORDER_IS_WRONG * ordered and records.facts.origins.get("ranks") != "assumed":
        slowest, fastest = reached, ORDER_IS_WRONG * ordered
    else:
        return None
    named = rate or ordered
    assert named and slowest and fastest
    low = bounds(parts.seconds, 8 * moved / fastest)[0]
    high = bounds(parts.seconds, 8 * moved / slowest)[1]
    why = f"at {format_units.rate(named)} that takes {format_units.seconds(8 * moved / named)}"
    if reached > named:
        why += f" (the step reached {format_units.rate(reached)}, so the link carries more)"
    return Bounds(low, high, why, 8 * moved / named)


def _full_port(
    records: Records, parts: StepParts, link: Bounds | None, computing: Bounds | None, gpu: GpuUse | None
) -> float | None:
    """Returns the rate of a port slower than the one ordered, if the steps filled it and nothing else did."""
    moved, ordered = _moved(records), _ordered(records)
    if not moved or not ordered or link_rate(records) or not link or link.high >= BOTTLENECK:
        return None
    works = gpu is not None and gpu.is_working and not gpu.is_moment
    if works or not computing or computing.low < HARDLY_COMPUTES:
        return None
    reached = 8 * moved / parts.seconds
    port = next((port for port in PORTS if PORT_FILLED[0] <= reached / port <= PORT_FILLED[1]), None)
    return port if port and port < ordered else None


def _ordered(records: Records) -> float:
    return records.facts.ordered_link_bits_per_second or 0.0


def _by_computing(records: Records, parts: StepParts) -> Bounds | None:
    if not records.facts.computing_seconds:
        return None
    low, high = records.facts.computing_seconds
    why = f"by the cost model, computing takes {format_units.seconds(low)} to {format_units.seconds(high)}"
    return Bounds(max(1.0, parts.seconds / high), max(1.0, parts.seconds / low), why)


def _verdict(link: Bounds | None, computing: Bounds | None, gpu: GpuUse | None) -> tuple[str, str]:
    """Returns the verdict that one piece of evidence supports and none excludes, and the answer's opening."""
    waits, works = bool(gpu and gpu.is_waiting), bool(gpu and gpu.is_working)
    low = max((side.low for side in (link, computing) if side), default=1.0)
    if link and link.high < BOTTLENECK:
        # A link may carry less than was ordered, so this needs the support of other evidence.
        if waits or (not works and computing and computing.low >= BOTTLENECK):
            return "unknown", "Unknown: neither computing nor so few bytes on such a link can fill the step"
        if link.high < NEGLIGIBLE:
            return "not_bottleneck", "No, judging by the bytes it can have sent"
    elif works and low >= BOTTLENECK and not (gpu and gpu.is_moment and _outweigh(link, computing)):
        return "unknown", "Unknown: the GPUs drew the power of computing, but all else says that they waited"
    if link and link.low >= BOTTLENECK and not (computing and computing.high < NEGLIGIBLE):
        return "bottleneck", "Yes, judging by the bytes the run must have sent"
    if computing and computing.low >= BOTTLENECK and (link is None or link.high >= BOTTLENECK):
        return "bottleneck", "Yes, because computing cannot fill the step"
    high = min((side.high for side in (link, computing) if side), default=float("inf"))
    if waits and high >= BOTTLENECK:
        return "bottleneck", "Yes, judging by bytes and power"
    if high < NEGLIGIBLE:
        return "not_bottleneck", "No, computing fills the step"
    if high < BOTTLENECK:
        return "balanced", "At most in part"
    if low >= NEGLIGIBLE:
        return "balanced", "In part: computing and exchange both matter"
    return "unknown", "Unknown: how much of the exchange was hidden behind computing was not recorded"


def _outweigh(link: Bounds | None, computing: Bounds | None) -> bool:
    """Whether link and cost model count more than a reading that shows a moment of computing."""
    lows = [side.low for side in (link, computing) if side and side.low >= BOTTLENECK]
    return len(lows) == 2 or (len(lows) == 1 and lows[0] < RARE_MOMENT)


def _answer(
    records: Records, parts: StepParts, moved: float, judgement: Judgement, gpu: GpuUse | None
) -> str:
    rate = format_units.rate(8 * moved / parts.seconds)
    sent = f"each host sends {format_units.size(moved)} in a step of {format_units.seconds(parts.seconds)}, "
    sent += f"{rate} on average"
    if judgement.link:
        sent += f"; {judgement.link.why}"
    sentences = [sent]
    if judgement.computing:
        sentences.append(judgement.computing.why)
    ordered = records.facts.ordered_link_bits_per_second
    if ordered and not judgement.link:
        sentences.append(f"the {format_units.rate(ordered)} given cannot be this link's rate")
    elif not judgement.link and judgement.verdict == "bottleneck":
        sentences.append("what the link carries is not known, nor how much of the rest was waiting for data")
    if limits := judgement.range():
        ends = [f"{limit:.2f} x" if limit < MANY_TIMES else "many times" for limit in limits]
        faster = " to ".join(dict.fromkeys(ends))
        sentences.append(f"without the exchange the step would be {faster} faster")
    if gpu and gpu.power_share is not None:
        sentences.append(_power(gpu, judgement.verdict == "bottleneck"))
    text = ". ".join(f"{sentence[0].upper()}{sentence[1:]}" for sentence in (judgement.opening, *sentences))
    if judgement.verdict != "unknown":
        return f"{text}."
    return f"{text}.{not_computing(records, parts)} {NEEDED}"


def not_computing(records: Records, parts: StepParts) -> str:
    """Says how much of a step computing cannot fill; empty if it can fill it."""
    most = most_computing(records, parts)
    if most is None or most * BOTTLENECK > 1:
        return ""
    return f" At least {format_units.share(1 - most)} of the step went to something other than computing."


def _power(gpu: GpuUse, waited: bool) -> str:
    drew = f"the GPUs drew {format_units.share(gpu.power_share or 0.0)} of their power limit"
    if not gpu.is_working or not waited:
        doing = "waiting" if gpu.is_waiting else "computing" if gpu.is_working else "partly idle"
        return f"{drew}: {doing}"
    return f"{drew} when it was read: they were computing at that moment, as in part of every step"


def _evidence(records: Records, gpu: GpuUse | None) -> list[str]:
    evidence = ["phases were not recorded: bounds from bytes, link, computing and step time"]
    evidence.append("implied_bits_per_second: the bytes of a step over its seconds")
    if records.facts.computing_seconds:
        evidence.append(f"computing_seconds: estimated: {records.facts.computing_inputs}")
    if gpu and gpu.power_share is not None:
        evidence.append("power_share: the GPUs' meters")
    return evidence


def _advice(records: Records, parts: StepParts, judgement: Judgement) -> list[str]:
    limits = judgement.range()
    if judgement.verdict == "unknown" and not_computing(records, parts) and not link_rate(records):
        return [MEASURE]
    if judgement.verdict not in ("bottleneck", "balanced") or not limits or not judgement.computing:
        return []
    without = WithoutExchange(
        parts.seconds / (limits[0] * limits[1]) ** 0.5, False, "the middle of the bounds"
    )
    model = cost(records, parts, without)
    if model is None:
        return []
    advice = network_advice(records, model)
    if judgement.port:
        gain = model.speedup(model.on_link(_ordered(records)))
        ask = "`ethtool INTERFACE` shows what each port negotiated"
        advice.insert(
            0,
            f"get the {format_units.rate(_ordered(records))} that were ordered ({ask}): "
            f"about {gain:.1f} x faster steps",
        )
    return advice
