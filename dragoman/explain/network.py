"""Was the network the bottleneck? Judged by the step without the exchange and by the bytes on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman import format_units
from dragoman.explain.bounds_from_link import from_link
from dragoman.explain.changes import CHANGES_EVIDENCE, EXCHANGE, Change, exchange_slowed, lasting_changes
from dragoman.explain.counterfactual import (
    BOTTLENECK,
    NEGLIGIBLE,
    WithoutExchange,
    cost,
    expected_bytes,
    link_rate,
    network_advice,
    without_exchange,
)
from dragoman.explain.finding import Finding, known, unknown
from dragoman.explain.gpus import gpu_use
from dragoman.explain.mismatches import byte_mismatches, mismatch_numbers
from dragoman.explain.step_breakdown import StepParts, step_parts
from dragoman.explain.straggler import straggler
from dragoman.explain.traffic import sent_evidence, sent_per_step
from dragoman.measure.records import Records, RunFacts


def explain(records: Records) -> Finding:
    facts, parts = records.facts, step_parts(records)
    hosts = len(set(facts.rank_hosts)) or len(facts.hosts) or (1 if facts.ranks == 1 else 0)
    if parts is None:
        return _single(records, None, {}, []) if hosts == 1 else unknown("network", "no step was timed")
    without = without_exchange(records, parts)
    numbers, evidence = _numbers(records, parts, without), _evidence(records, parts, without)
    if hosts == 0:
        because = "the number of machines was not recorded, so what the exchange crossed is not known"
        return unknown("network", because, numbers).model_copy(update={"evidence": evidence})
    if hosts == 1:
        return _single(records, parts, numbers, evidence)
    mismatches, differences = byte_mismatches(records), mismatch_numbers(records)
    if differences:
        numbers["byte_mismatches"] = differences
    if without is None:
        return from_link(records, parts, gpu_use(records), numbers, evidence + mismatches)
    speedup = without.speedup(parts)
    changes = [change for change in lasting_changes(records) if change.part == EXCHANGE]
    if changes:
        numbers["changes"] = [change.numbers for change in changes]
        evidence.append(CHANGES_EVIDENCE)
    sentences = [_answer(records, parts, without), *(f"{text}." for text in mismatches), *map(str, changes)]
    return Finding(
        id="network",
        verdict=verdict_of(speedup),
        answer=" ".join(sentences),
        numbers=numbers | known(speedup_without_exchange=speedup),
        evidence=evidence,
        confidence="measured" if without.is_measured else "estimated",
        advice=_advice(records, parts, without, differences) + _advice_on_changes(changes),
    )


def _advice_on_changes(changes: Sequence[Change]) -> list[str]:
    return [
        f"find out what slowed the exchange at step {change.step:,}: before that, a step took only "
        f"{format_units.seconds(change.before)}"
        for change in changes
        if change.after > change.before
    ]


def verdict_of(speedup: float) -> str:
    """Returns the verdict if steps without the exchange are this many times faster."""
    if speedup >= BOTTLENECK:
        return "bottleneck"
    return "not_bottleneck" if speedup < NEGLIGIBLE else "balanced"


def _numbers(records: Records, parts: StepParts, without: WithoutExchange | None) -> dict[str, Any]:
    seen, rate = sent_per_step(records), link_rate(records) or records.facts.ordered_link_bits_per_second
    return known(
        exposed_share=parts.share(parts.link),
        straggler_share=parts.share(parts.straggler),
        step_seconds=parts.seconds,
        step_seconds_without_exchange=without.seconds if without else None,
        bytes_per_step_per_host=seen,
        expected_bytes_per_step_per_host=expected_bytes(records),
        **_slowest(records, parts),
        link_bits_per_second=rate,
        link_used_share=8 * seen / parts.seconds / rate if seen and rate else None,
    )


def _evidence(records: Records, parts: StepParts, without: WithoutExchange | None) -> list[str]:
    facts = records.facts
    evidence = [f"step_seconds: mean of {format_units.counted(parts.steps, 'step')}"]
    if parts.link is not None:
        evidence.append("exposed_share: exposed exchange of the rank that waits least, over the step")
    if parts.straggler is not None:
        evidence.append("straggler_share: mean exposed exchange over ranks minus the least, over the step")
    if without:
        evidence.append(f"step_seconds_without_exchange: {without.how}")
    evidence += sent_evidence(records)
    if expected := expected_bytes(records):
        evidence.append(
            f"expected_bytes_per_step_per_host: {_arithmetic(facts)}, {format_units.size(expected)} per step"
        )
    if count := len(records.probes_of("link")):
        evidence.append(f"link_bits_per_second: test bursts between the hosts, median of {count}")
    elif facts.ordered_link_bits_per_second:
        evidence.append("link_bits_per_second: as ordered, which may not be what the link carries")
    if facts.exchange_why:
        evidence.append(f"{facts.way}: {facts.exchange_why}")
    return evidence


def _arithmetic(facts: RunFacts) -> str:
    members = facts.way.ring_members(facts.rank_hosts)
    ring = f"2({members}-1)/{members} x that"
    often = f" every {facts.exchange_every} steps" if facts.exchange_every > 1 else ""
    size = format_units.size(facts.gradient_bytes or 0)
    return f"{facts.way.shape} all-reduce of {size} of gradients: {ring}{often}"


def _answer(records: Records, parts: StepParts, without: WithoutExchange) -> str:
    speedup, rate = without.speedup(parts), link_rate(records)
    opening = {
        "bottleneck": "Yes",
        "balanced": "In part",
        "not_bottleneck": "No",
    }[verdict_of(speedup)]
    text = (
        f"{opening}: a step took {format_units.seconds(parts.seconds)} and would take "
        f"{format_units.seconds(without.seconds)} without the exchange ({speedup:.2f} x faster)."
    )
    moves = ""
    if moved := expected_bytes(records) or sent_per_step(records):
        moves = f"moves {format_units.size(moved)} per step out of each host"
        moves += f" by {records.facts.way}" if records.facts.source == "dragoman" else ""
        when = " before it slowed down" if exchange_slowed(records) else ""
        moves += f" over a link measured at {format_units.rate(rate)}{when}" if rate else ""
    if parts.link is not None:
        share = format_units.share(parts.link / parts.seconds)
        text += f" Ranks spent {share} of each step in the exchange{f', which {moves}' if moves else ''}."
    elif moves:
        text += f" The exchange {moves}."
    return f"{text}{_straggler_note(records, parts)}"


def _slowest(records: Records, parts: StepParts) -> dict[str, float]:
    """Returns the numbers of the rank that the note is about."""
    slow = straggler(records) if _straggler_note(records, parts) else None
    return slow.numbers() if slow else {}


def _straggler_note(records: Records, parts: StepParts) -> str:
    """Says how long ranks waited for a slow one, which looks like waiting for the network; empty if short."""
    share = parts.share(parts.straggler)
    if share is None or share < 0.05:
        return ""
    slow = straggler(records) or "the slowest rank, which changes from step to step"
    return f" Ranks spent another {format_units.share(share)} waiting for {slow}."


def _single(
    records: Records, parts: StepParts | None, numbers: dict[str, Any], evidence: list[str]
) -> Finding:
    host = f" ({records.facts.hosts[0]})" if records.facts.hosts else ""
    text = f"No network was involved: all ranks ran on one machine{host}."
    if parts and parts.link is not None and (records.facts.ranks or 0) > 1:
        share = format_units.share(parts.link / parts.seconds)
        text += f" Their exchange within it took {share} of each step.{_straggler_note(records, parts)}"
    return Finding(id="network", verdict="single_machine", answer=text, numbers=numbers, evidence=evidence)


def _advice(
    records: Records, parts: StepParts, without: WithoutExchange, differences: Sequence[dict[str, Any]]
) -> list[str]:
    if without.speedup(parts) < NEGLIGIBLE:
        return []
    model = cost(records, parts, without)
    advice = network_advice(records, model) if model else []
    if any(difference["expected_share"] > 1 for difference in differences):  # more than the exchange needs
        advice.insert(0, "find what else uses the link between these hosts, and move it or the run")
    return advice
