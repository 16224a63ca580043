"""All pairs of hosts: the order in which they are measured, and checks from the measurements."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from dragoman import format_units
from dragoman.cost.step import bytes_per_host
from dragoman.doctor.check import ALL, Check, Status
from dragoman.doctor.facts import HostFacts
from dragoman.doctor.link import TriedConnection
from dragoman.plan.needs import Needs

_SLOW = 0.5  # times the median of the others


@dataclass(frozen=True)
class ConnectionAttempt:
    """One host connecting to another."""

    sender: str
    receiver: str
    port: int
    ports: str  # the range from which the receiver's kernel takes ports
    connection: TriedConnection


def rounds(hosts: int) -> list[list[tuple[int, int]]]:
    """All pairs, in rounds with each host in one pair: two measurements at once would share its link."""
    waiting = list(combinations(range(hosts), 2))
    rounds_so_far = []
    while waiting:
        busy: set[int] = set()
        chosen = []
        for pair in waiting:
            if not busy & set(pair):
                chosen.append(pair)
                busy |= set(pair)
        rounds_so_far.append(chosen)
        waiting = [pair for pair in waiting if pair not in chosen]
    return rounds_so_far


def ports(attempts: Sequence[ConnectionAttempt]) -> list[Check]:
    """Can every host open a connection to every other?"""
    failures = [attempt for attempt in attempts if attempt.connection.failure]
    if not failures:
        return [Check("ports", ALL, "ok", "reachable in both directions")]
    return [
        Check(
            "ports",
            f"{attempt.sender} to {attempt.receiver}",
            "error",
            f"{attempt.connection.address or attempt.receiver} port {attempt.port}: "
            f"{attempt.connection.failure}",
            f"let {attempt.sender} reach TCP ports {attempt.ports} of {attempt.receiver} (firewall, security "
            "group): gradients use ports that the kernel picks",
        )
        for attempt in failures
    ]


def links(attempts: Sequence[ConnectionAttempt]) -> list[Check]:
    """The rates both ways and the round trip of each pair; a warning for one much slower than the others."""
    measured = [attempt for attempt in attempts if attempt.connection.sent_bits_per_second]
    rates = [_rates(attempt) for attempt in measured]
    checks = []
    for attempt, (there, back) in zip(measured, rates, strict=True):
        others = [rate for pair in rates for rate in pair]
        others.remove(min(there, back))
        is_slow = min(there, back) < _SLOW * statistics.median(others)
        value = (
            f"{format_units.rate(there)} there, {format_units.rate(back)} back, "
            f"round trip {format_units.seconds(attempt.connection.round_trip_seconds)}"
        )
        advice = "check for other traffic, and check the ordered rate" if is_slow else ""
        status: Status = "warning" if is_slow else "ok"
        checks.append(Check("link", f"{attempt.sender} to {attempt.receiver}", status, value, advice))
    return checks


def exchange(
    hosts: Sequence[HostFacts], attempts: Sequence[ConnectionAttempt], needs: Needs | None
) -> list[Check]:
    """Would a step's exchange over the slowest link take longer than its computing at the measured peak?"""
    rates = [min(_rates(attempt)) for attempt in attempts if attempt.connection.sent_bits_per_second]
    if not needs or not rates:
        return []
    rank_hosts = [number for number, host in enumerate(hosts) for _ in range(host.ranks)]
    nbytes = bytes_per_host(rank_hosts, needs.gradient_bytes, is_hierarchical=needs.gathered is not None)
    wire_seconds = 8 * nbytes / min(rates)
    value = f"each host sends {format_units.size(nbytes)} per step, "
    value += f"{format_units.seconds(wire_seconds)} on the slowest link"
    peak = sum(sum(host.peaks) for host in hosts)
    if not peak:
        return [Check("exchange", ALL, "ok", value)]
    computing_seconds = needs.step_flops / peak
    value += f"; computing takes at least {format_units.seconds(computing_seconds)}"
    if wire_seconds <= computing_seconds:
        return [Check("exchange", ALL, "ok", value)]
    advice = "set sync.mode=auto, or make steps larger (data.step): the devices would wait for the network"
    return [Check("exchange", ALL, "warning", value, advice)]


def _rates(attempt: ConnectionAttempt) -> tuple[float, float]:
    return attempt.connection.sent_bits_per_second, attempt.connection.received_bits_per_second
