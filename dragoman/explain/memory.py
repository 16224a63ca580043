"""Hosts whose memory use grows steadily, and when their memory will be full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman import format_units
from dragoman.explain.finding import known
from dragoman.explain.step_breakdown import settled
from dragoman.explain.traffic import Clock
from dragoman.measure.records import Records

LEAST_SHARE = 0.02  # of the host's memory: a run's own history and the system's tables grow by less
QUARTERS = 4  # of the run: each must use more memory than the one before
STEADY = 0.4  # each rise is at least this share of the mean: memory filled at the start is no steady growth
LEAST_ROWS = 2 * QUARTERS


@dataclass(frozen=True)
class Growth:
    host: str
    first_bytes: float  # in use in the first quarter
    last_bytes: float
    host_bytes: float
    bytes_per_second: float
    steps_per_second: float
    also: int = 0  # other hosts on which it grows

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.host_bytes - self.last_bytes) / self.bytes_per_second

    @property
    def numbers(self) -> dict[str, Any]:
        return known(
            host=self.host,
            first_bytes=self.first_bytes,
            last_bytes=self.last_bytes,
            host_bytes=self.host_bytes,
            bytes_per_1000_steps=1000 * self.bytes_per_second / self.steps_per_second,
            full_after_seconds=self.seconds_left,
            full_after_steps=round(self.seconds_left * self.steps_per_second),
            other_hosts=self.also,
        )

    def __str__(self) -> str:
        numbers = self.numbers
        text = f"Memory in use on {self.host} grew steadily from {format_units.size(self.first_bytes)} to "
        text += f"{format_units.size(self.last_bytes)} of {format_units.size(self.host_bytes)}, by "
        text += (
            f"{format_units.size(numbers['bytes_per_1000_steps'])} per 1,000 steps; at this pace it would "
        )
        text += f"be full {format_units.seconds(self.seconds_left)}"
        text += f" ({format_units.count(numbers['full_after_steps'])} steps) later"
        others = f"; it also grew on {format_units.counted(self.also, 'other host')}" if self.also else ""
        return f"{text}{others}."

    @property
    def advice(self) -> str:
        return (
            f"find the program whose memory grows on {self.host} (`top`, sorted by memory): "
            "when memory is full, the run is killed"
        )


def growth(records: Records) -> Growth | None:
    """Returns the growth on the host that will be full first; None if no host's memory grows steadily."""
    growths = [
        grown
        for host, total in enumerate(records.facts.host_memory_bytes)
        if (grown := _of_host(records, host, float(total)))
    ]
    if not growths:
        return None
    first = min(growths, key=lambda grown: grown.seconds_left)
    return Growth(**{**vars(first), "also": len(growths) - 1})


def _of_host(records: Records, host: int, total: float) -> Growth | None:
    time, memory = _in_use(records, host)
    if len(time) < LEAST_ROWS or total <= 0:
        return None
    quarters = np.array_split(np.arange(len(time)), QUARTERS)
    levels = np.array([np.median(memory[quarter]) for quarter in quarters])
    middles = np.array([time[quarter].mean() for quarter in quarters])
    rises = np.diff(levels)
    if levels[-1] - levels[0] < LEAST_SHARE * total or rises.min() < STEADY * rises.mean():
        return None
    steps = float(Clock(records).steps(time[:1], time[-1:])[0])
    if steps <= 0:
        return None
    names = records.facts.hosts
    return Growth(
        names[host] if host < len(names) else f"host {host}",
        float(levels[0]),
        float(levels[-1]),
        total,
        float((levels[-1] - levels[0]) / (middles[-1] - middles[0])),
        steps / float(time[-1] - time[0]),
    )


def _in_use(records: Records, host: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns times and bytes in use during the latest attempt's steps, because a restart frees memory."""
    hosts, ended = records.hosts, records.steps["ended"][settled(records)]
    started = records.attempts[-1].started if records.attempts else -np.inf
    ended = ended[np.isfinite(ended) & (ended >= started)]
    if not len(ended):
        return np.array([]), np.array([])
    chosen = (hosts["host"] == host) & np.isfinite(hosts["memory_bytes"])
    chosen &= (hosts["time"] >= ended[0]) & (hosts["time"] <= ended[-1])
    order = np.argsort(hosts["time"][chosen], kind="stable")
    return hosts["time"][chosen][order], hosts["memory_bytes"][chosen][order]
