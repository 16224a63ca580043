"""How does step time depend on network traffic? Correlations, bursts within a step, and a faster link."""

from __future__ import annotations

import numpy as np

from dragoman import format_units
from dragoman.explain.burst_samples import Bursts, bursts
from dragoman.explain.changes import exchange_slowed
from dragoman.explain.counterfactual import (
    WORTH_TRYING,
    cost,
    expected_bytes,
    faster_link,
    faster_rate,
    link_rate,
    without_exchange,
)
from dragoman.explain.finding import Finding, known, unknown
from dragoman.explain.step_breakdown import StepParts, mean, settled, step_parts
from dragoman.explain.traffic import (
    MISMATCH,
    bytes_of_steps,
    gradient_traffic,
    is_one_machine,
    sent_evidence,
    sent_per_step,
)
from dragoman.measure.records import Records

LEAST_POINTS = 10  # needed for a correlation
STRONG = 0.7  # a correlation from here on explains half of the differences between steps
WEAK = 0.3  # a correlation below this explains less than a tenth
PHASE_NAMES = {
    "data": "the wait for data",
    "forward": "the forward pass",
    "backward": "the backward pass and the wait after it",
    "exchange": "the exchange",
    "optimizer": "the optimizer",
}
STEADY = 0.1  # an exchange whose relative deviation is smaller cannot explain differences between steps


def explain(records: Records) -> Finding:
    parts = step_parts(records)
    if parts is None:
        return unknown("step_network", "no step was timed")
    chosen = settled(records)
    seconds = records.steps["seconds"][chosen]
    # The rank that waits least waits only for the network; the others also wait for a slow rank.
    exchange = records.phase("exchange", "least")[chosen]
    with_exchange = correlation(seconds, exchange) if records.facts.ranks != 1 else None
    with_bytes = correlation(*bytes_of_steps(records))
    seen, burst = sent_per_step(records), None if is_one_machine(records) else bursts(records)
    numbers = known(
        correlation=with_exchange,
        correlation_with_bytes=with_bytes,
        bytes_per_step_per_host=seen,
        expected_bytes_per_step_per_host=expected_bytes(records),
        burst_share=burst.share if burst else None,
        exchange_share=parts.share(parts.exchange),
        exchange_seconds=mean(exchange),
    )
    if burst and burst.phase:
        numbers |= known(burst_phase_share=burst.phase_share)
    link = _faster_link(records, parts)
    if with_exchange is None and seen is None and burst is None:
        return _by_arithmetic(records, parts, numbers)
    if link:
        rate = link_rate(records)
        numbers |= known(
            faster_link_speedup=link[1], faster_link_bits_per_second=faster_rate(rate) if rate else None
        )
    counted = bool(gradient_traffic(records)) or is_one_machine(records)
    return Finding(
        id="step_network",
        verdict="stated",
        answer=" ".join(_sentences(records, with_exchange, with_bytes, burst, link)),
        numbers=numbers,
        evidence=_evidence(records, with_exchange, with_bytes, burst),
        confidence="measured" if counted or with_exchange is not None else "estimated",
        advice=[f"use {link[0]}: about {link[1]:.1f} x faster steps"]
        if link and link[1] >= WORTH_TRYING
        else [],
    )


def _by_arithmetic(records: Records, parts: StepParts, numbers: dict[str, float]) -> Finding:
    """The finding where traffic was not recorded: what must have been sent."""
    expected = expected_bytes(records)
    because = "neither the exchange's time nor the bytes on the wire were recorded"
    if not expected:
        return unknown("step_network", because, numbers)
    rate = format_units.rate(8 * expected / parts.seconds)
    return Finding(
        id="step_network",
        verdict="stated",
        answer=f"Each host must send {format_units.size(expected)} per step, {rate} on average over a step "
        f"of {format_units.seconds(parts.seconds)}. How step time depends on this is not known, because "
        f"{because}.",
        numbers=numbers
        | known(step_seconds=parts.seconds, mean_bits_per_second=8 * expected / parts.seconds),
        evidence=["expected_bytes_per_step_per_host: what a ring of these ranks sends for these gradients"],
        confidence="estimated",
    )


def correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    """Returns Pearson's correlation; None with few common points or if one of the two does not vary."""
    known_rows = np.isfinite(a) & np.isfinite(b)
    a, b = a[known_rows], b[known_rows]
    if len(a) < LEAST_POINTS:
        return None
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum() / scale) if scale > 0 and np.isfinite(scale) else None


def _faster_link(records: Records, parts: StepParts) -> tuple[str, float] | None:
    if exchange_slowed(records):  # the rate that was measured is no longer that of the link
        return None
    without = without_exchange(records, parts)
    model = cost(records, parts, without) if without else None
    return faster_link(records, model) if model else None


def _sentences(
    records: Records,
    with_exchange: float | None,
    with_bytes: float | None,
    burst: Bursts | None,
    link: tuple[str, float] | None,
) -> list[str]:
    sentences = [_bytes(records)] if sent_per_step(records) is not None else []
    if burst:
        flow = f"{format_units.share(burst.share)} of a step's bytes flow in its busiest quarter "
        flow += "(even flow: 25%)"
        # Samples count the wait for the exchange as part of the backward pass before it.
        name = PHASE_NAMES[burst.phase] if burst.phase else ""
        where = f", and {format_units.share(burst.phase_share)} during {name}" if name else ""
        sentences.append(f"{flow}{where}.")
    if with_exchange is not None:
        sentences.append(_dependence(records, with_exchange, with_bytes))
    if link and link[1] >= WORTH_TRYING:
        sentences.append(f"On {link[0]} steps would be about {link[1]:.1f} x faster.")
    elif link:
        sentences.append(f"On {link[0]} a step would take about as long.")
    return sentences


def _dependence(records: Records, with_exchange: float, with_bytes: float | None) -> str:
    least = records.phase("exchange", "least")[settled(records)]
    follows = _strength(with_exchange)
    text = f"Step time {follows} exchange time (correlation {with_exchange:z.2f})"
    if with_bytes is not None:
        same, also = follows == _strength(with_bytes), "or" if abs(with_bytes) < WEAK else "and"
        text += f" {also if same else f'and {_strength(with_bytes)}'} the bytes sent ({with_bytes:z.2f})"
    if abs(with_exchange) < WEAK and 0 < np.nanstd(least) < STEADY * np.nanmean(least):
        usual = format_units.seconds(float(np.nanmean(least)))
        text += f": the exchange takes about {usual} in every step, so differences come from elsewhere"
    return f"{text}."


def _bytes(records: Records) -> str:
    seen, expected = sent_per_step(records) or 0.0, expected_bytes(records)
    if is_one_machine(records):
        return "All ranks ran on one machine, so their gradients crossed no network."
    if expected and abs(seen / expected - 1) > MISMATCH:
        needs = f"the exchange needs {format_units.size(expected)}"
        return f"Each host sent {format_units.size(seen)} per step, although {needs}."
    return f"Each host sent {format_units.size(seen)} per step."


def _strength(value: float) -> str:
    if abs(value) < WEAK:
        return "hardly follows"
    return f"{'closely' if abs(value) >= STRONG else 'partly'} {'follows' if value > 0 else 'runs against'}"


def _evidence(
    records: Records, with_exchange: float | None, with_bytes: float | None, burst: Bursts | None
) -> list[str]:
    evidence = []
    if with_exchange is not None:
        evidence.append("correlation: step seconds with the exposed exchange of the rank that waits least")
    if with_bytes is not None:
        evidence.append(
            "correlation_with_bytes: step seconds with the bytes sent meanwhile, over a few steps at a time"
        )
    evidence += sent_evidence(records)
    if burst:
        steps = format_units.counted(burst.steps, "step")
        evidence.append(f"burst_share: median of {steps}, sampled many times a second")
    return evidence
