"""The GPUs' own meters, and what they mean: a busy GPU is not always computing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.explain.traffic import Clock
from dragoman.measure.records import Records

BUSY = 0.9  # share of the time with a running kernel, which may be one that waits for the network
# A GPU that multiplies matrices draws most of its power limit; one that only waits in a kernel draws little
# more than when idle, 10 to 20 %. Half is far from both.
LOW_POWER = 0.5
SERIES = 5  # fewer readings of a GPU are moments, and every step has moments of computing and of waiting


@dataclass(frozen=True)
class GpuUse:
    """Means over all GPUs; only during steps, if the times are known."""

    utilisation: float | None
    power_share: float | None
    power_watts: float | None
    power_limit_watts: float | None
    memory_bytes: float | None
    readings: float  # per GPU

    @property
    def is_moment(self) -> bool:
        """Whether there are only a few readings, which show moments of a step rather than most of it."""
        return self.readings < SERIES

    @property
    def is_busy_waiting(self) -> bool:
        """Whether the GPUs report being busy, but draw too little power to be computing."""
        if self.utilisation is None or self.power_share is None:
            return False
        return self.utilisation >= BUSY and self.power_share < LOW_POWER

    @property
    def is_waiting(self) -> bool:
        """Whether the GPUs draw too little power to be computing and are not known to be idle.

        Someone may have noted only the power.
        """
        if self.power_share is None or self.power_share >= LOW_POWER:
            return False
        return self.utilisation is None or self.utilisation >= BUSY

    @property
    def is_working(self) -> bool:
        """Whether the GPUs draw the power of computing."""
        return self.power_share is not None and self.power_share >= LOW_POWER


def gpu_use(records: Records) -> GpuUse | None:
    """Returns the GPUs' mean use; None if no GPU was watched."""
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
