"""What the GPUs' own meters said, and what it means: a busy GPU need not be computing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.explain.traffic import Clock
from dragoman.measure.records import Records

BUSY = 0.9  # of the time some kernel runs; a kernel that waits for the network is one
# A GPU that multiplies matrices draws most of its limit; one that only spins draws little more than idle,
# which is a tenth to a fifth. Half lies well away from both.
LOW_POWER = 0.5
SERIES = 5  # readings of a GPU, fewer of which are moments: a step has moments of computing and of waiting


@dataclass(frozen=True)
class GpuUse:
    """Means over all GPUs, during steps where that can be told."""

    utilisation: float | None
    power_share: float | None
    power_watts: float | None
    power_limit_watts: float | None
    memory_bytes: float | None
    readings: float  # of each GPU

    @property
    def is_moment(self) -> bool:
        """Read off a screen rather than watched: it shows what a step does at times, not what fills it."""
        return self.readings < SERIES

    @property
    def is_busy_waiting(self) -> bool:
        """Busy by its own account, and too cool to be computing."""
        if self.utilisation is None or self.power_share is None:
            return False
        return self.utilisation >= BUSY and self.power_share < LOW_POWER

    @property
    def is_waiting(self) -> bool:
        """Too cool to be computing, and not known to be idle: somebody may have read off the power alone."""
        if self.power_share is None or self.power_share >= LOW_POWER:
            return False
        return self.utilisation is None or self.utilisation >= BUSY

    @property
    def is_working(self) -> bool:
        return self.power_share is not None and self.power_share >= LOW_POWER


def gpu_use(records: Records) -> GpuUse | None:
    """None where no GPU was watched."""
    gpus = records.gpus
    if not len(gpus["time"]):
        return None
    span = np.where(np.isfinite(gpus["span"]) & (gpus["span"] > 0), gpus["span"], 1.0)
    weight, clock = span, Clock(records)
    if clock and np.isfinite(gpus["time"]).all():
        inside = clock.seconds(gpus["time"], gpus["time"] + span)
        weight = inside if inside.sum() > 0 else span
    with np.errstate(all="ignore"):
        power_share = gpus["power_watts"] / gpus["power_limit_watts"]
    return GpuUse(
        utilisation=_mean(gpus["utilisation"], weight),
        power_share=_mean(power_share, weight),
        power_watts=_mean(gpus["power_watts"], weight),
        power_limit_watts=_mean(gpus["power_limit_watts"], weight),
        memory_bytes=_mean(gpus["memory_bytes"], weight),
        readings=len(weight) / len({*zip(gpus["host"].tolist(), gpus["gpu"].tolist(), strict=True)}),
    )


def _mean(values: np.ndarray, weight: np.ndarray) -> float | None:
    known = np.isfinite(values) & (weight > 0)
    return float(np.average(values[known], weights=weight[known])) if known.any() else None
