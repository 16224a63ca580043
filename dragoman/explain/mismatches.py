"""Interfaces that carried clearly more or less than the exchange needs, and the likely causes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dragoman import format_units
from dragoman.explain.counterfactual import expected_bytes
from dragoman.explain.finding import known
from dragoman.explain.traffic import MISMATCH, HostTraffic, gradient_traffic, interfaces
from dragoman.measure.records import Records


@dataclass(frozen=True)
class _Mismatch:
    """A difference on one host, per step."""

    host: str
    way: str  # sent or received
    interface: str
    seen_bytes: float
    is_more: bool
    instead: str = ""  # the interface that carried the bytes expected of this one
    instead_bytes: float = 0.0

    @property
    def kind(self) -> tuple[str, str, bool, str]:
        return self.way, self.interface, self.is_more, self.instead


def byte_mismatches(records: Records) -> list[str]:
    """Returns a sentence for each kind of difference above 15 %, however many hosts show it."""
    expected = expected_bytes(records)
    kinds: dict[tuple[str, str, bool, str], list[_Mismatch]] = {}
    for mismatch in _mismatches(records):
        kinds.setdefault(mismatch.kind, []).append(mismatch)
    return [_sentence(alike, expected or 0.0) for alike in kinds.values()]


def mismatch_numbers(records: Records) -> list[dict[str, Any]]:
    """Returns the numbers of those sentences, host by host."""
    expected = expected_bytes(records) or 1.0
    return [
        known(
            host=mismatch.host,
            interface=mismatch.interface,
            way=mismatch.way,
            bytes_per_step=mismatch.seen_bytes,
            expected_share=mismatch.seen_bytes / expected,
            instead=mismatch.instead or None,
            instead_bytes_per_step=mismatch.instead_bytes if mismatch.instead else None,
        )
        for mismatch in _mismatches(records)
    ]


def _mismatches(records: Records) -> list[_Mismatch]:
    expected = expected_bytes(records)
    if not expected:
        return []
    checked = [_mismatch(records, row, expected) for row in gradient_traffic(records)]
    return [mismatch for mismatch in checked if mismatch]


def _mismatch(records: Records, row: HostTraffic, expected: float) -> _Mismatch | None:
    ways = {"sent": row.sent_bytes, "received": row.received_bytes}
    ways = {name: seen for name, seen in ways.items() if math.isfinite(seen)}
    way = max(ways, key=lambda name: abs(ways[name] - expected))
    if abs(ways[way] / expected - 1) <= MISMATCH:
        return None
    hosts = records.facts.hosts
    host = hosts[row.host] if row.host < len(hosts) else f"host {row.host}"
    if ways[way] > expected:
        return _Mismatch(host, way, row.interface, ways[way], is_more=True)
    for other in interfaces(records, row.host):
        if other.interface != row.interface and abs(other.sent_bytes / expected - 1) <= MISMATCH:
            instead = (other.interface, other.sent_bytes)
            return _Mismatch(host, way, row.interface, ways[way], False, *instead)
    return _Mismatch(host, way, row.interface, ways[way], is_more=False)


def _sentence(alike: list[_Mismatch], expected: float) -> str:
    first, count = alike[0], len(alike)
    seen = [mismatch.seen_bytes for mismatch in alike]
    sizes = _span(format_units.size(min(seen)), format_units.size(max(seen)))
    low, high = min(seen) / expected, max(seen) / expected
    if first.is_more:
        times = f"{_span(f'{low:.2f}', f'{high:.2f}')} x"
        cause = "other traffic on this link, or retransmissions"
    else:
        times = f"{_span(format_units.share(low), format_units.share(high))} of"
        cause = "the wrong interface, or gradients compressed on the way"
    if first.instead:
        carried = [mismatch.instead_bytes for mismatch in alike]
        sizes_instead = _span(format_units.size(min(carried)), format_units.size(max(carried)))
        cause = f"the wrong interface, as {first.instead} carried {sizes_instead} per step"
    hosts = format_units.hosts([mismatch.host for mismatch in alike]) + " each" * (count > 1)
    needed = f"{times} the {format_units.size(expected)} that the exchange needs"
    return f"{hosts} {first.way} {sizes} per step over {first.interface}, {needed}: {cause}"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
