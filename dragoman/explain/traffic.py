"""Bytes on the wire per step, counted at the start and end of steps or taken from counters over time.

Our runs count at the start and end of each step, so that traffic between steps is left out. Other programs'
records, and early ones of ours, have a row per second or minute, which begins and ends anywhere in a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman import format_units
from dragoman.explain.step_breakdown import mean, step_parts
from dragoman.measure.records import PHASES, Records

# Packet headers are 4 to 6 % of a full Ethernet frame, and a run sends a little besides its gradients. A
# larger difference has another cause.
MISMATCH = 0.15
STRETCH_STEPS = 3  # enough that a step cut in two at the edge of a stretch matters little
WHOLLY = 0.9  # a row that overlaps steps by this share contains no traffic from outside them


@dataclass(frozen=True)
class HostTraffic:
    """What one interface of a host carries per step."""

    host: int
    interface: str
    sent_bytes: float
    received_bytes: float
    carries_gradients: bool  # False: it is not known which one does, and this is the busiest


class Clock:
    """Tells how many steps, and how many seconds of steps, lie between two times."""

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
    """Whether all ranks are known to be on one host, so that gradients cross no network."""
    return len(set(records.facts.rank_hosts)) == 1


def gradient_traffic(records: Records) -> list[HostTraffic]:
    """Returns each host's traffic on the gradients' interface, or on the busiest if that is not known."""
    if is_one_machine(records):
        return []
    traffic = []
    clock = Clock(records)
    for host in _hosts(records):
        if counted := _counted(records, host):
            traffic.append(counted)
            continue
        rows = interfaces(records, host, clock)
        if name := _gradient_interface(records, host):
            traffic += [row for row in rows if row.interface == name]
        elif rows := [row for row in rows if row.interface != "lo"]:
            traffic.append(max(rows, key=lambda row: row.sent_bytes))
    return traffic


def _counted(records: Records, host: int) -> HostTraffic | None:
    """Returns what this host's first rank counted in its steps, if it did."""
    chosen = _windows_of(records, host)
    if not chosen.any():
        return None
    windows, steps = records.windows, _steps_of_windows(records)[chosen]
    sent, received = (
        float(windows[f"{way}_bytes"][chosen].sum() / steps.sum()) for way in ("sent", "received")
    )
    return HostTraffic(host, _gradient_interface(records, host) or "", sent, received, True)


def _windows_of(records: Records, host: int) -> np.ndarray:
    """Selects the windows of a host's ranks with counted bytes."""
    windows = records.windows
    ranks = [rank for rank, place in enumerate(records.facts.rank_hosts) if place == host]
    counted = np.isfinite(windows["sent_bytes"]) & np.isfinite(windows["received_bytes"])
    return np.isin(windows["rank"], ranks) & counted & (_steps_of_windows(records) > 0)


def _steps_of_windows(records: Records) -> np.ndarray:
    return records.windows["last_step"] - records.windows["first_step"] + 1


def interfaces(records: Records, host: int, clock: Clock | None = None) -> list[HostTraffic]:
    """Returns what every interface of a host carried per step."""
    clock = clock or Clock(records)
    usable = (records.nics["host"] == host) & np.isfinite(records.nics["time"]) & (records.nics["span"] > 0)
    if not clock or not usable.any():
        return []
    nics = {name: values[usable] for name, values in records.nics.items()}
    end = nics["time"] + nics["span"]
    steps = clock.steps(nics["time"], end)
    during = (steps > 0) & ~_during_probes(records, nics["time"], end)
    inside = clock.seconds(nics["time"], end) >= WHOLLY * nics["span"]
    traffic = []
    for name in np.unique(nics["interface"][during]):
        rows = during & (nics["interface"] == name)
        # Start-up and evaluations send too, so rows that overlap them count only if there are few others.
        if steps[rows & inside].sum() >= steps[rows].sum() / 2:
            rows &= inside
        bytes_per_step = [
            mean_per_step(nics[column][rows] * nics["span"][rows], steps[rows])
            for column in ("sent_bytes", "received_bytes")
        ]
        if bytes_per_step[0] is not None:
            received = bytes_per_step[1] if bytes_per_step[1] is not None else float("nan")
            carries = name == _gradient_interface(records, host)
            traffic.append(HostTraffic(host, str(name), bytes_per_step[0], received, carries))
    return traffic


def _gradient_interface(records: Records, host: int) -> str | None:
    names = records.facts.gradient_interfaces
    return names[host] or None if host < len(names) else None


def mean_per_step(amounts: np.ndarray, steps: np.ndarray) -> float | None:
    """Returns the recorded amounts divided by their steps; None if there are no steps."""
    known = np.isfinite(amounts)
    total = steps[known].sum()
    return float(amounts[known].sum() / total) if total > 0 else None


def sent_per_step(records: Records) -> float | None:
    """Returns the bytes that leave by the gradients' interface in a step, mean over hosts."""
    if is_one_machine(records):
        return 0.0
    seen = mean(np.array([row.sent_bytes for row in gradient_traffic(records)]))
    rate, parts = records.facts.nic_bytes_per_second, step_parts(records)
    return rate * parts.seconds if seen is None and rate and parts else seen


def sent_evidence(records: Records) -> list[str]:
    """Says where `bytes_per_step_per_host` comes from; empty if it is not known."""
    if is_one_machine(records):
        return ["bytes_per_step_per_host: none, because all ranks ran on one machine"]
    if rows := gradient_traffic(records):
        names = format_units.listed(sorted({row.interface for row in rows}))
        which = "the gradients' interface" if rows[0].carries_gradients else "the busiest interface"
        return [f"bytes_per_step_per_host: sent by {which} ({names}) during steps"]
    if records.facts.nic_bytes_per_second:
        return ["bytes_per_step_per_host: the rate read from the interface, times the step time"]
    return []


def bytes_of_steps(records: Records) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean seconds of a step and bytes sent per step and host, for stretches of a few steps.

    A stretch is a log interval or some rows of a second or a minute, which need not end with a step.
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
    together = int(np.ceil(STRETCH_STEPS * len(steps) / steps.sum()))  # rows that hold a few steps
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
    """Selects rows that overlap a probe of link or exchange, whose bursts belong to no step."""
    if not records.probes:
        return np.zeros(len(start), dtype=bool)
    began = np.sort([probe.time for probe in records.probes])
    ended = np.sort([probe.time + probe.seconds for probe in records.probes])
    # More probes began before the row's end than ended by its start: one of them overlaps the row.
    return np.searchsorted(began, end, side="left") > np.searchsorted(ended, start, side="right")
