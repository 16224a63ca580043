"""The network's part in a step of which only the whole is known: what bytes and link allow, as bounds.

DDP sends while the last microbatch's backward runs, and backward is two thirds of computing. So of an
exchange of T seconds at most two thirds of the computing C can be hidden:

    S = C + T - hidden,  0 <= hidden <= 2/3 C   ->   S - T <= C <= 3 (S - T)

and without the exchange the step would be S / C times faster: at least S / 3(S - T), at most S / (S - T).
"""

from __future__ import annotations

from dragoman.explain import words
from dragoman.explain.counterfactual import BOTTLENECK, NEGLIGIBLE, expected_bytes, link_rate
from dragoman.explain.finding import Finding, known, unknown
from dragoman.explain.gpus import GpuUse
from dragoman.explain.parts import StepParts
from dragoman.explain.traffic import sent_per_step
from dragoman.measure.records import Records


def from_link(
    records: Records, parts: StepParts, gpu: GpuUse | None, numbers: dict[str, float], evidence: list[str]
) -> Finding:
    moved, rate = expected_bytes(records) or sent_per_step(records), link_rate(records)
    if not moved or not rate:
        missing = "the phases of a step were not recorded, and neither were "
        missing += "the bytes of an exchange" if not moved else "the link's rate"
        return unknown("network", missing, numbers).model_copy(update={"evidence": evidence})
    exchange = 8 * moved / rate
    low, high = bounds(parts.seconds, exchange)
    at_most = f"{high:.2f} x" if high < 100 else "many times"
    facts = f"{words.size(moved)} out of each host take {words.seconds(exchange)} at {words.rate(rate)}, in "
    facts += f"a step of {words.seconds(parts.seconds)}; without the exchange it would be {low:.2f} x to "
    facts += f"{at_most} faster"
    if exchange > parts.seconds:
        reached = words.rate(8 * moved / parts.seconds)
        facts += f" (the step reached {reached}, so the link carries more than that rate)"
    verdict, opening = _verdict(low, high, gpu)
    evidence = [*evidence, "phases were not recorded: bounds from bytes, link and step time"]
    if gpu and gpu.is_busy_waiting:
        facts += f"; GPUs were busy at {words.share(gpu.power_share or 0)} of their power: waiting"
        evidence.append("power_share: the GPUs' meters")
    return Finding(
        id="network",
        verdict=verdict,
        answer=f"{opening}: {facts}.",
        numbers=numbers | known(speedup_without_exchange_low=low, speedup_without_exchange_high=high),
        evidence=evidence,
        confidence="unknown" if verdict == "unknown" else "estimated",
    )


def bounds(step_seconds: float, exchange_seconds: float) -> tuple[float, float]:
    """How many times faster the step would be without an exchange of so many seconds: least, most."""
    left = max(step_seconds - exchange_seconds, 0.01 * step_seconds)
    return max(1.0, step_seconds / (3 * left)), step_seconds / left


def _verdict(low: float, high: float, gpu: GpuUse | None) -> tuple[str, str]:
    if low >= BOTTLENECK:
        return "bottleneck", "Yes, by the bytes it must have sent"
    if high < NEGLIGIBLE:
        return "not_bottleneck", "No, by the bytes it can have sent"
    if gpu and gpu.is_busy_waiting and high >= BOTTLENECK:
        return "bottleneck", "Yes, by bytes and power"
    if high < BOTTLENECK:
        return "balanced", "At most in part"
    return "unknown", "Unknown, for how much of the exchange was hidden was not recorded"
