"""Bytes on the wire per step: counted at the edges of the steps, or by the second and laid over their times.

Runs of ours count at the edges: what is sent between steps is in none of them. Records of others, and ours
from before, have rows of a second or a minute that begin and end anywhere in a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman import format_units
from dragoman.explain.step_breakdown import mean, step_parts
from dragoman.measure.records import PHASES, Records

# Packet headers are 4 to 6 % of a full Ethernet frame, and a run sends a little beside its gradients. More
# than this is something else.
MISMATCH = 0.15
SPELL_STEPS = 3  # so that a step cut in two at the edge of a spell matters little
WHOLLY = 0.9  # a row so much inside steps holds nothing of what is sent beside them


@dataclass(frozen=True)
class HostTraffic:
    """Of one interface, per step."""

    host: int
    interface: str
    sent_bytes: float
    received_bytes: float
    carries_gradients: bool  # known; otherwise it is only the busiest one


class Clock:
    """How many steps, and how many seconds of steps, had passed at a time."""

    def __init__(self, records: Records):
        ended, seconds = records.steps["ended"], records.steps["seconds"]
        known = np.isfinite(ended) & np.isfinite(seconds) & (seconds > 0)
        order = np.argsort(ended[known], kind="stable")
        ended, seconds = ended[known][order], seconds[known][order]
        before = np.concatenate(([-np.inf], ended[:-1]))
        started = np.maximum(ended - seconds, before)
        self._times = np.stack((started, ended), 1).ravel()
        count = np.arange(len(ended), dtype=np.float64)
        self._steps = np.stack((count, count + 1), 1).ravel()
        busy = np.cumsum(ended - started)
        self._seconds = np.stack((busy - (ended - started), busy), 1).ravel()

    def __bool__(self) -> bool:
        return len(self._times) > 0

    def steps(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        return np.interp(end, self._times, self._steps) - np.interp(start, self._times, self._steps)

    def seconds(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        return np.interp(end, self._times, self._seconds) - np.interp(start, self._times, self._seconds)


def is_one_machine(records: Records) -> bool:
    """Known to be: then gradients cross no network, and what `lo` counts is anything else as well."""
    return len(set(records.facts.rank_hosts)) == 1


def gradient_traffic(records: Records) -> list[HostTraffic]:
    """Each host's traffic on the gradients' interface; on the busiest one where that is not known."""
    if is_one_machine(records):
        return []
    found = []
    clock = Clock(records)
    for host in _hosts(records):
        if counted := _counted(records, host):
            found.append(counted)
            continue
        rows = interfaces(records, host, clock)
        if name := _gradient_interface(records, host):
            found += [row for row in rows if row.interface == name]
        elif rows := [row for row in rows if row.interface != "lo"]:
            found.append(max(rows, key=lambda row: row.sent_bytes))
    return found


def _counted(records: Records, host: int) -> HostTraffic | None:
    """What this host's first rank counted in its steps."""
    chosen = _windows_of(records, host)
    if not chosen.any():
        return None
    windows, steps = records.windows, _steps_of_windows(records)[chosen]
    sent, received = (
        float(windows[f"{way}_bytes"][chosen].sum() / steps.sum()) for way in ("sent", "received")
    )
    return HostTraffic(host, _gradient_interface(records, host) or "", sent, received, True)


def _windows_of(records: Records, host: int) -> np.ndarray:
    """Those with bytes, of whole log intervals."""
    windows = records.windows
    ranks = [rank for rank, place in enumerate(records.facts.rank_hosts) if place == host]
    counted = np.isfinite(windows["sent_bytes"]) & np.isfinite(windows["received_bytes"])
    return np.isin(windows["rank"], ranks) & counted & (_steps_of_windows(records) > 0)


def _steps_of_windows(records: Records) -> np.ndarray:
    return records.windows["last_step"] - records.windows["first_step"] + 1


def interfaces(records: Records, host: int, clock: Clock | None = None) -> list[HostTraffic]:
    """What every interface of a host carried per step."""
    clock = clock or Clock(records)
    usable = (records.nics["host"] == host) & np.isfinite(records.nics["time"]) & (records.nics["span"] > 0)
    if not clock or not usable.any():
        return []
    nics = {name: values[usable] for name, values in records.nics.items()}
    end = nics["time"] + nics["span"]
    steps = clock.steps(nics["time"], end)
    during = (steps > 0) & ~_during_probes(records, nics["time"], end)
    inside = clock.seconds(nics["time"], end) >= WHOLLY * nics["span"]
    found = []
    for name in np.unique(nics["interface"][during]):
        rows = during & (nics["interface"] == name)
        # Start-up and evaluations send as well: rows on their edges speak only if there are no others.
        if steps[rows & inside].sum() >= steps[rows].sum() / 2:
            rows &= inside
        bytes_per_step = [
            mean_per_step(nics[column][rows] * nics["span"][rows], steps[rows])
            for column in ("sent_bytes", "received_bytes")
        ]
        if bytes_per_step[0] is not None:
            received = bytes_per_step[1] if bytes_per_step[1] is not None else float("nan")
            carries = name == _gradient_interface(records, host)
            found.append(HostTraffic(host, str(name), bytes_per_step[0], received, carries))
    return found


def _gradient_interface(records: Records, host: int) -> str | None:
    names = records.facts.gradient_interfaces
    return names[host] or None if host < len(names) else None


def mean_per_step(amounts: np.ndarray, steps: np.ndarray) -> float | None:
    known = np.isfinite(amounts)
    total = steps[known].sum()
    return float(amounts[known].sum() / total) if total > 0 else None


def sent_per_step(records: Records) -> float | None:
    """Mean over hosts of what left by the gradients' interface in a step."""
    if is_one_machine(records):
        return 0.0
    seen = mean(np.array([row.sent_bytes for row in gradient_traffic(records)]))
    rate, parts = records.facts.nic_bytes_per_second, step_parts(records)
    return rate * parts.seconds if seen is None and rate and parts else seen


def sent_evidence(records: Records) -> list[str]:
    """Where that number comes from; nothing where there is none."""
    if is_one_machine(records):
        return ["bytes_per_step_per_host: none, as all ranks were on one machine"]
    if rows := gradient_traffic(records):
        names = format_units.listed(sorted({row.interface for row in rows}))
        which = "the gradients' interface" if rows[0].carries_gradients else "the busiest interface"
        return [f"bytes_per_step_per_host: sent by {which} ({names}) during steps"]
    if records.facts.nic_bytes_per_second:
        return ["bytes_per_step_per_host: the rate read off the interface, times the step"]
    return []


def bytes_of_steps(records: Records) -> tuple[np.ndarray, np.ndarray]:
    """Mean seconds of a step, and bytes sent per step and host, over spells of a few rows of the counters.

    A spell is a log interval; or a row of a second or a minute, and steps need not end with it.
    """
    rows = gradient_traffic(records)
    clock, nics = Clock(records), records.nics
    if not rows or not clock:
        return np.array([]), np.array([])
    row = max(rows, key=lambda row: row.sent_bytes)
    counted = _windows_of(records, row.host)
    if counted.any():
        steps = _steps_of_windows(records)[counted]
        seconds = np.sum([records.windows[phase][counted] for phase in PHASES], axis=0)
        return seconds / steps, records.windows["sent_bytes"][counted] / steps
    mine = (nics["host"] == row.host) & (nics["interface"] == row.interface) & np.isfinite(nics["sent_bytes"])
    start, span, sent = nics["time"][mine], nics["span"][mine], nics["sent_bytes"][mine]
    inside = clock.seconds(start, start + span)
    steps = clock.steps(start, start + span)
    wholly = (inside >= WHOLLY * span) & (steps > 0)
    inside, steps, sent = inside[wholly], steps[wholly], (sent * span)[wholly]
    if not steps.sum():
        return np.array([]), np.array([])
    together = int(np.ceil(SPELL_STEPS * len(steps) / steps.sum()))  # rows that hold a few steps
    count = len(steps) // together * together
    sums = [part[:count].reshape(-1, together).sum(1) for part in (inside, sent, steps)]
    return sums[0] / sums[2], sums[1] / sums[2]


def _hosts(records: Records) -> list[int]:
    hosts = records.nics["host"]
    metered = {int(host) for host in np.unique(hosts[np.isfinite(hosts)]) if host >= 0}
    return sorted(
        metered | {host for host in set(records.facts.rank_hosts) if _windows_of(records, host).any()}
    )


def _during_probes(records: Records, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Rows that may have seen a measurement of the link or of the exchange: bursts that no step sends."""
    touched = np.zeros(len(start), dtype=bool)
    for probe in records.probes:
        touched |= (start < probe.time + probe.seconds) & (end > probe.time)
    return touched
