"""The network's part in a step of which only the whole is known: bounds from bytes, link, GPU and power.

DDP sends while the last microbatch's backward runs, and backward is two thirds of computing. So of an
exchange of T seconds at most two thirds of the computing C can be hidden:

    S = C + T - hidden,  0 <= hidden <= 2/3 C   ->   S - T <= C <= 3 (S - T)

and without the exchange the step would be S / C times faster: at least S / 3(S - T), at most S / (S - T).
Where the cost model bounds C by itself, S / C follows from that; where both are known they must agree.
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

# An order names one of two bonded ports, or one direction of two. A run that sends more than twice that is on
# another link than the one that somebody had in mind.
ORDER_IS_WRONG = 2.0
# Ports as machines have them, in bits per second. A port that is full all step long carries 94 % of its rate
# in payload; a step holds a little computing besides. Other causes of waiting give such a rate by chance.
PORTS = (10e6, 100e6, 1e9, 10e9, 25e9, 40e9, 100e9)
PORT_FILLED = (0.7, 1.0)
HARDLY_COMPUTES = 3.0  # a step that is so many times its computing is filled by something else
# A step has moments of computing. One reading that shows such a moment contradicts a single other witness if
# there are fewer of them than one in ten.
RARE_MOMENT = 10.0
MANY_TIMES = 100.0  # no figure is worth reading from here on
PLAUSIBLE_SHARE = 0.9  # of the least time of computing by the cost model: a shorter step is a slip
NOT_RIGHT = "its time (steps per second?), the batch or the GPU is not right"
NEEDED = "Needed: the link's rate, the GPUs' power in training, or the GPU's type, batch and parameters."
MEASURE = "measure what the link carries: `iperf3 -s` on one machine, `iperf3 -c` with its name on the other"


@dataclass(frozen=True)
class Bounds:
    """How many times faster the step would be without the exchange: least, most; and why."""

    low: float
    high: float
    why: str
    wire_seconds: float | None = None  # what the bytes take at the rate that was named


@dataclass(frozen=True)
class Judgement:
    verdict: str
    opening: str
    link: Bounds | None
    computing: Bounds | None
    port: float | None = None  # bits per second of the one that was full, where it is not the one ordered

    def range(self) -> tuple[float, float] | None:
        """What all that is known leaves; None where it is nothing or contradicts itself."""
        sides = [side for side in (self.link, self.computing) if side]
        if not sides:
            return None
        low, high = max(side.low for side in sides), min(side.high for side in sides)
        return (low, high) if low <= high else None


def from_link(
    records: Records, parts: StepParts, gpu: GpuUse | None, numbers: dict[str, float], evidence: list[str]
) -> Finding:
    moved = _moved(records)
    if not moved:
        because = "the phases of a step were not recorded, and neither were the bytes of an exchange"
        because += " (needed: the parameters, or their gradients' bytes)"
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
        evidence.append("link_bits_per_second: of the port that the steps filled, by their bytes and seconds")
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
    if least := impossible(records, parts):
        shorter = (
            f"for a step cannot be shorter than the {format_units.seconds(least)} that its computing takes"
        )
        return Judgement("unknown", f"Unknown, {shorter}; {NOT_RIGHT}", _by_link(records, parts), None)
    link, computing = _by_link(records, parts), _by_computing(records, parts)
    if port := _full_port(records, parts, link, computing, gpu):
        ordered = format_units.rate(_ordered(records))
        why = f"that is what a {format_units.rate(port)} port carries, not the {ordered} ordered"
        filled = Bounds(*bounds(parts.seconds, parts.seconds), why)
        return Judgement("bottleneck", "Yes, by the rate that the steps reached", filled, computing, port)
    verdict, opening = _verdict(link, computing, gpu)
    return Judgement(verdict, opening, link, computing)


def most_computing(records: Records, parts: StepParts) -> float | None:
    """The largest share of a step that computing can fill, where the cost model tells; at most 1."""
    if not records.facts.computing_seconds or impossible(records, parts):
        return None
    return min(1.0, records.facts.computing_seconds[1] / parts.seconds)


def impossible(records: Records, parts: StepParts) -> float | None:
    """The least seconds of computing, if the step is shorter than that; None where all is well."""
    least = records.facts.computing_seconds[0] if records.facts.computing_seconds else 0.0
    return least if parts.seconds < PLAUSIBLE_SHARE * least else None


def bounds(step_seconds: float, exchange_seconds: float) -> tuple[float, float]:
    """How many times faster the step would be without an exchange of so many seconds: least, most."""
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
        why += f" (the step reached {format_units.rate(reached)}, so the link carries more than that rate)"
    return Bounds(low, high, why, 8 * moved / named)


def _full_port(
    records: Records, parts: StepParts, link: Bounds | None, computing: Bounds | None, gpu: GpuUse | None
) -> float | None:
    """The rate of a slower port than was ordered, if the steps reached it and nothing else fills them."""
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
    why = f"computing takes {format_units.seconds(low)} to {format_units.seconds(high)} by the cost model"
    return Bounds(max(1.0, parts.seconds / high), max(1.0, parts.seconds / low), why)


def _verdict(link: Bounds | None, computing: Bounds | None, gpu: GpuUse | None) -> tuple[str, str]:
    """Each side can exclude; what none excludes must be shown by one."""
    waits, works = bool(gpu and gpu.is_waiting), bool(gpu and gpu.is_working)
    low = max((side.low for side in (link, computing) if side), default=1.0)
    if link and link.high < BOTTLENECK:
        # An order may also be more than a link carries: what no other evidence bears out is not said.
        if waits or (not works and computing and computing.low >= BOTTLENECK):
            return "unknown", "Unknown, for neither computing nor so few bytes on such a link fill the step"
        if link.high < NEGLIGIBLE:
            return "not_bottleneck", "No, by the bytes it can have sent"
    elif works and low >= BOTTLENECK and not (gpu and gpu.is_moment and _outweigh(link, computing)):
        return "unknown", "Unknown, for the GPUs drew the power of computing while the rest says they waited"
    if link and link.low >= BOTTLENECK and not (computing and computing.high < NEGLIGIBLE):
        return "bottleneck", "Yes, by the bytes it must have sent"
    if computing and computing.low >= BOTTLENECK and (link is None or link.high >= BOTTLENECK):
        return "bottleneck", "Yes, by what computing can take of the step"
    high = min((side.high for side in (link, computing) if side), default=float("inf"))
    if waits and high >= BOTTLENECK:
        return "bottleneck", "Yes, by bytes and power"
    if high < NEGLIGIBLE:
        return "not_bottleneck", "No, computing fills the step"
    if high < BOTTLENECK:
        return "balanced", "At most in part"
    if low >= NEGLIGIBLE:
        return "balanced", "In part: computing and exchange both matter"
    return "unknown", "Unknown, for how much of the exchange was hidden was not recorded"


def _outweigh(link: Bounds | None, computing: Bounds | None) -> bool:
    """Whether bytes and cost model stand against GPUs that computed at the moment when somebody looked."""
    lows = [side.low for side in (link, computing) if side and side.low >= BOTTLENECK]
    return len(lows) == 2 or (len(lows) == 1 and lows[0] < RARE_MOMENT)


def _answer(
    records: Records, parts: StepParts, moved: float, judgement: Judgement, gpu: GpuUse | None
) -> str:
    rate = format_units.rate(8 * moved / parts.seconds)
    facts = [
        f"{format_units.size(moved)} leave each host in a step of "
        f"{format_units.seconds(parts.seconds)}, {rate} on average"
    ]
    facts += [side.why for side in (judgement.link, judgement.computing) if side]
    ordered = records.facts.ordered_link_bits_per_second
    if ordered and not judgement.link:
        facts.append(f"the {format_units.rate(ordered)} that were named cannot be this link's rate")
    elif not judgement.link and judgement.verdict == "bottleneck":
        facts.append("what the link carries is not known, nor whether some of the rest was waiting for data")
    if limits := judgement.range():
        ends = [f"{limit:.2f} x" if limit < MANY_TIMES else "many times" for limit in limits]
        faster = " to ".join(dict.fromkeys(ends))
        facts.append(f"without the exchange the step would be {faster} faster")
    if gpu and gpu.power_share is not None:
        facts.append(_power(gpu, judgement.verdict == "bottleneck"))
    text = f"{judgement.opening}: {'; '.join(facts)}."
    if judgement.verdict != "unknown":
        return text
    return f"{text}{not_computing(records, parts)} {NEEDED}"


def not_computing(records: Records, parts: StepParts) -> str:
    """A sentence on a step that computing cannot fill; nothing where it can."""
    most = most_computing(records, parts)
    if most is None or most * BOTTLENECK > 1:
        return ""
    return f" Whatever filled the other {format_units.share(1 - most)} of the step, it was not computing."


def _power(gpu: GpuUse, waited: bool) -> str:
    share = format_units.share(gpu.power_share or 0.0)
    doing = "waiting" if gpu.is_waiting else "computing" if gpu.is_working else "idle in part"
    if not gpu.is_working or not waited:
        return f"GPUs drew {share} of their power: {doing}"
    seen = f"GPUs drew {share} of their power when somebody looked"
    return f"{seen}: they computed at that moment, as every step does for a while"


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
        ask = "`ethtool` with the interface's name says what each port negotiated"
        advice.insert(
            0,
            f"the {format_units.rate(_ordered(records))} that were ordered ({ask}): "
            f"about {gain:.1f} x faster steps",
        )
    return advice
