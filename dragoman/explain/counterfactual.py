"""How long a step would take with a free exchange, and with other changes to the network or the training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman import format_units
from dragoman.cost.step import (
    BUCKET_BYTES,
    WIRE_BYTES,
    StepCost,
    calibrated,
    ring_bytes,
    ring_latency_seconds,
    tail_share,
)
from dragoman.exchange_way import LOCAL_STEPS, can_be_hierarchical
from dragoman.explain import remedies
from dragoman.explain.step_breakdown import StepParts
from dragoman.explain.traffic import sent_per_step
from dragoman.measure.records import Records

# How many times faster a step would be without a wait. From 1.3 on, the wait takes 23 % of every step, and
# even halving it (bf16 instead of fp32) gains over 10 %. Below 1.1 (9 % of a step), removing it gains less
# than the difference between two runs on shared machines. In between, both computing and waiting matter.
BOTTLENECK = 1.3
NEGLIGIBLE = 1.1
# The probe should agree with the clocks of ordinary steps. If they differ by a larger share of the step, the
# few probed steps were unlike the others, or the network has changed since, and the clocks are used.
ODD_PROBE = 0.10
WORTH_TRYING = 1.05  # gains below are within the noise of a shared network
LINKS = (1e9, 10e9, 25e9, 100e9)  # bits per second, as they are sold


@dataclass(frozen=True)
class WithoutExchange:
    seconds: float
    is_measured: bool  # by steps without an exchange, rather than by subtracting its exposed time
    how: str

    def speedup(self, parts: StepParts) -> float:
        return parts.seconds / self.seconds


def without_exchange(records: Records, parts: StepParts) -> WithoutExchange | None:
    """Returns the time of a step without the exchange; None if neither a probe nor the phases tell."""
    probed = _probed(records, parts)
    if parts.link is None:
        return probed
    left = max(parts.seconds - parts.link, 1e-6 * parts.seconds)
    if probed and abs(probed.seconds - left) / parts.seconds <= ODD_PROBE:
        return probed
    how = "the step minus the exposed exchange of the rank that waits least"
    if probed:
        share = format_units.share(1 - probed.seconds / parts.seconds)
        how += f"; probed steps without an exchange ({share} shorter) do not fit the others and are not used"
    return WithoutExchange(left, False, how)


def _probed(records: Records, parts: StepParts) -> WithoutExchange | None:
    shares = []
    for probe in records.probes_of("exchange"):
        whole = probe.numbers.get("step_seconds", np.nan)
        without = probe.numbers.get("step_seconds_without_exchange", np.nan)
        if np.isfinite([whole, without]).all() and whole > 0 and without > 0:
            shares.append(min(1.0, without / whole))
    if not shares:
        return None
    # Probes do not include waiting for data and the optimizer, which the exchange does not change.
    beside = min((parts.data or 0.0) + (parts.optimizer or 0.0), parts.seconds)
    seconds = beside + (parts.seconds - beside) * float(np.median(shares))
    probes = format_units.counted(len(shares), "probe")
    how = f"the same microbatches with and without the exchange, median of {probes}"
    return WithoutExchange(seconds, True, how)


def link_rate(records: Records) -> float | None:
    """Returns the measured rate between hosts in bits per second, the median of the probes."""
    rates = [probe.numbers.get("bits_per_second", np.nan) for probe in records.probes_of("link")]
    rates = [rate for rate in rates if np.isfinite(rate) and rate > 0]
    return float(np.median(rates)) if rates else None


def expected_bytes(records: Records) -> float | None:
    """Returns how many bytes the exchange must send out of each host in a step, on average."""
    facts = records.facts
    if not facts.gradient_bytes or not facts.rank_hosts:
        return None
    per_exchange = facts.way.bytes_per_host(facts.rank_hosts, facts.gradient_bytes)
    return None if per_exchange is None else per_exchange * _exchanges_per_step(records)


def _exchanges_per_step(records: Records) -> float:
    """Returns 1, or less for DiLoCo, whose rounds are shorter at the start of a run and where it stops."""
    steps, way = records.steps["step"], records.facts.way
    steps = steps[np.isfinite(steps)]
    if way.steps_per_round == 1 or not len(steps):
        return 1 / way.steps_per_round
    stops = {
        records.steps["step"][records.steps["attempt"] == attempt.number].max(initial=0)
        for attempt in records.attempts
        if attempt.reason
    }
    return sum(step in stops or way.ends_round(int(step)) for step in steps.tolist()) / len(steps)


def cost(records: Records, parts: StepParts, without: WithoutExchange) -> StepCost | None:
    """Returns the cost model of this run's step; None if the bytes between hosts are none or not known."""
    wire_bytes, facts = expected_bytes(records) or sent_per_step(records), records.facts
    if not wire_bytes or len(set(facts.rank_hosts)) < 2:
        return None
    round_trips = [probe.numbers.get("round_trip_seconds", np.nan) for probe in records.probes_of("link")]
    round_trip = min((value for value in round_trips if np.isfinite(value) and value > 0), default=0.0)
    return calibrated(
        step_seconds=parts.seconds,
        step_seconds_without_exchange=without.seconds,
        data_seconds=parts.data or 0.0,
        optimizer_seconds=parts.optimizer or 0.0,
        wire_bytes=wire_bytes,
        link_bits_per_second=link_rate(records),
        round_trip_seconds=ring_latency_seconds(facts.way.ring_members(facts.rank_hosts), round_trip),
        tail=_tail(records),
    )


def faster_link(records: Records, cost: StepCost) -> tuple[str, float]:
    """Returns the next common link at least twice as fast as this run's, and the speed-up on it."""
    rate = link_rate(records)
    if rate is None:
        return "a link ten times as fast", cost.speedup(cost.on_link(10 * cost.link_bits_per_second))
    better = faster_rate(rate)
    return f"a {format_units.rate(better)} link", cost.speedup(cost.on_link(better))


def faster_rate(rate: float) -> float:
    """Returns the next common rate, in bits per second, that is at least twice this one."""
    return next((sold for sold in LINKS if sold >= 2 * rate), 2 * rate)


def network_advice(records: Records, cost: StepCost) -> list[str]:
    """Advises what would relieve the network, with the expected gains; small gains are left out."""
    facts, way = records.facts, records.facts.way
    how = remedies.of(facts)
    tried: list[tuple[float, str]] = []
    in_fp32 = facts.gradient_bytes and facts.parameters and facts.gradient_bytes >= 3.5 * facts.parameters
    if in_fp32 and not way.is_sharded:
        gain = cost.speedup(cost.with_bytes(0.5))
        half = remedies.named("send gradients in half precision", how.half)
        tried.append((gain, f"{half}: about {gain:.1f} x faster steps"))
    if way.shape == "flat" and can_be_hierarchical(facts.rank_hosts) and how.inside is not None:
        ranks, hosts = len(facts.rank_hosts), len(set(facts.rank_hosts))
        gain = cost.speedup(cost.with_bytes(ring_bytes(hosts, 1) / ring_bytes(ranks, 1)))
        inside = remedies.named("sum gradients inside each host first", how.inside)
        tried.append((gain, f"{inside}: about {gain:.1f} x faster steps"))
    if not way.has_replicas and not way.is_sharded and how.rarely is not None:
        gain = cost.speedup(cost.every(LOCAL_STEPS))
        local = remedies.named(f"exchange only every {LOCAL_STEPS} steps", how.rarely)
        tried.append((gain, f"{local}: about {gain:.1f} x faster steps, but no longer synchronous training"))
    gain = cost.speedup(cost.with_tokens(remedies.MORE_TOKENS), tokens=remedies.MORE_TOKENS)
    tokens = remedies.named("use four times the tokens per step", how.more)
    tried.append((gain, f"{tokens}: about {gain:.1f} x the tokens per second, with a quarter of the updates"))
    name, gain = faster_link(records, cost)
    tried.append((gain, f"use {name}: about {gain:.1f} x faster steps"))
    return [text for gain, text in tried if gain >= WORTH_TRYING]


def _tail(records: Records) -> float:
    facts = records.facts
    width, pieces = facts.settings.get("model.width"), facts.data_card.get("vocabulary_pieces")
    embedding = 4.0 * width * pieces if isinstance(width, int) and isinstance(pieces, int) else 0.0
    in_fp32 = (facts.gradient_bytes or 0) * WIRE_BYTES["fp32"] / facts.way.bytes_per_gradient
    return tail_share(in_fp32, embedding, facts.bucket_bytes or BUCKET_BYTES)
