"""Reads the meters of this host's GPUs through NVIDIA's management library, if there are any.

Not yet run on hardware.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection


class GpuReader:
    """Reads the GPUs with these UUIDs, or none if there is no driver.

    The library lists all GPUs of a machine, even those that CUDA_VISIBLE_DEVICES hides, on which other
    programs may train.
    """

    def __init__(self, uuids: Collection[str] = ()) -> None:
        self._handles: list[object] = []
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
            self._handles = [
                handle for handle in handles if _plain(pynvml.nvmlDeviceGetUUID(handle)) in map(_plain, uuids)
            ]
        except Exception:  # no package, driver or device
            return

    def read(self) -> list[tuple[float, ...]]:
        """Per GPU: number, utilisation, watts, their limit, clock in Hz, memory in bytes, degrees Celsius."""
        return [(number, *self._one(handle)) for number, handle in enumerate(self._handles)]

    def _one(self, handle: object) -> tuple[float, ...]:
        nvml = self._nvml
        readings: tuple[Callable[[], float], ...] = (
            lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
            lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
            lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6,
            lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        )
        return tuple(self._or_unknown(reading) for reading in readings)

    def _or_unknown(self, reading: Callable[[], float]) -> float:
        """The reading, or NaN if this GPU has none: virtual GPUs lack power, MIG slices lack utilisation."""
        try:
            return reading()
        except self._nvml.NVMLError:
            return math.nan


def _plain(uuid: str) -> str:
    """The UUID without the prefix GPU-, which NVIDIA's library adds and torch does not."""
    return str(uuid).removeprefix("GPU-")
