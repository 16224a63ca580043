"""What a step would take if gradients were exchanged at no cost, and what other changes would make of it."""

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

# How many times faster a step would be if a wait cost nothing. From 1.3 on it takes 23 % of every step, and
# even half a remedy (bf16 for fp32) gives over a tenth. Below 1.1 (9 % of a step) a perfect remedy gives less
# than two runs on shared machines differ by. Between them computing and waiting both matter.
BOTTLENECK = 1.3
NEGLIGIBLE = 1.1
# The probe and the clocks of ordinary steps should agree. If they differ by more (in shares of the step), the
# few steps probed were not like the others, or the network has changed since: the clocks are believed.
ODD_PROBE = 0.10
WORTH_TRYING = 1.05  # gains below are within the noise of a shared network
LINKS = (1e9, 10e9, 25e9, 100e9)  # bits per second, as they are sold


@dataclass(frozen=True)
class WithoutExchange:
    seconds: float
    is_measured: bool  # by leaving the exchange out; otherwise by taking exposed time off
    how: str

    def speedup(self, parts: StepParts) -> float:
        return parts.seconds / self.seconds


def without_exchange(records: Records, parts: StepParts) -> WithoutExchange | None:
    """None where neither a probe nor the phases tell."""
    probed = _probed(records, parts)
    if parts.link is None:
        return probed
    left = max(parts.seconds - parts.link, 1e-6 * parts.seconds)
    if probed and abs(probed.seconds - left) / parts.seconds <= ODD_PROBE:
        return probed
    how = "the step less the exposed exchange of the rank that waits least"
    if probed:
        share = format_units.share(1 - probed.seconds / parts.seconds)
        how += f"; steps probed without exchange ({share} shorter) do not fit the others, and are not used"
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
    # Probes leave out waiting for data and the optimizer, which the exchange does not change.
    beside = min((parts.data or 0.0) + (parts.optimizer or 0.0), parts.seconds)
    seconds = beside + (parts.seconds - beside) * float(np.median(shares))
    probes = f"{len(shares)} probe{'s' * (len(shares) > 1)}"
    how = f"the same microbatches with and without the exchange, median of {probes}"
    return WithoutExchange(seconds, True, how)


def link_rate(records: Records) -> float | None:
    """Bits per second between hosts, as measured; the median of the probes."""
    rates = [probe.numbers.get("bits_per_second", np.nan) for probe in records.probes_of("link")]
    rates = [rate for rate in rates if np.isfinite(rate) and rate > 0]
    return float(np.median(rates)) if rates else None


def expected_bytes(records: Records) -> float | None:
    """What the exchange must send out of each host in a step, on average."""
    facts = records.facts
    if not facts.gradient_bytes or not facts.rank_hosts:
        return None
    per_exchange = facts.way.bytes_per_host(facts.rank_hosts, facts.gradient_bytes)
    return None if per_exchange is None else per_exchange * _exchanges_per_step(records)


def _exchanges_per_step(records: Records) -> float:
    """One, but for DiLoCo, whose rounds are shorter at the beginning of a run and where it stops."""
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
    """The cost model of this run's step; None where nothing crosses between hosts or nobody counted it."""
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
    """The next rate on sale that is at least twice this run's, and the speed-up on it."""
    rate = link_rate(records)
    if rate is None:
        return "a link ten times as fast", cost.speedup(cost.on_link(10 * cost.link_bits_per_second))
    better = faster_rate(rate)
    return f"a {format_units.rate(better)} link", cost.speedup(cost.on_link(better))


def faster_rate(rate: float) -> float:
    """The next one on sale, in bits per second, that is at least twice this one."""
    return next((sold for sold in LINKS if sold >= 2 * rate), 2 * rate)


def network_advice(records: Records, cost: StepCost) -> list[str]:
    """What would relieve the network, with the gain expected of each; small gains are left out."""
    facts, way = records.facts, records.facts.way
    how = remedies.of(facts)
    tried: list[tuple[float, str]] = []
    if facts.gradient_bytes and facts.parameters and facts.gradient_bytes >= 3.5 * facts.parameters:
        gain = cost.speedup(cost.with_bytes(0.5))
        half = remedies.named("half-precision gradients on the wire", how.half)
        tried.append((gain, f"{half}: about {gain:.1f} x faster steps"))
    if way.shape == "flat" and can_be_hierarchical(facts.rank_hosts) and how.inside is not None:
        ranks, hosts = len(facts.rank_hosts), len(set(facts.rank_hosts))
        gain = cost.speedup(cost.with_bytes(ring_bytes(hosts, 1) / ring_bytes(ranks, 1)))
        inside = remedies.named("sums inside each host first", how.inside)
        tried.append((gain, f"{inside}: about {gain:.1f} x faster steps"))
    if not way.has_replicas and how.rarely is not None:
        gain = cost.speedup(cost.every(LOCAL_STEPS))
        local = remedies.named(f"{LOCAL_STEPS} local steps between exchanges", how.rarely)
        tried.append((gain, f"{local}: about {gain:.1f} x faster steps, but no longer synchronous training"))
    gain = cost.speedup(cost.with_tokens(remedies.MORE_TOKENS), tokens=remedies.MORE_TOKENS)
    tokens = remedies.named("four times the tokens per step", how.more)
    tried.append((gain, f"{tokens}: about {gain:.1f} x the tokens per second, in a quarter of the updates"))
    name, gain = faster_link(records, cost)
    tried.append((gain, f"{name}: about {gain:.1f} x faster steps"))
    return [text for gain, text in tried if gain >= WORTH_TRYING]


def _tail(records: Records) -> float:
    facts = records.facts
    width, pieces = facts.settings.get("model.width"), facts.data_card.get("vocabulary_pieces")
    embedding = 4.0 * width * pieces if isinstance(width, int) and isinstance(pieces, int) else 0.0
    in_fp32 = (facts.gradient_bytes or 0) * WIRE_BYTES["fp32"] / facts.way.bytes_per_gradient
    return tail_share(in_fp32, embedding, facts.bucket_bytes or BUCKET_BYTES)
