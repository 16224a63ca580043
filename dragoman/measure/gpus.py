"""What the GPUs of this host say of themselves, through NVIDIA's management library. None is a good answer.

Written with care; not run on hardware yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection


class GpuReader:
    """Readings of the GPUs of these UUIDs, or of none where there is no driver.

    The library knows all of a machine's, also those that CUDA_VISIBLE_DEVICES hides: others may train there.
    """

    def __init__(self, uuids: Collection[str] = ()) -> None:
        self._handles: list[object] = []
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            every = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
            self._handles = [
                handle for handle in every if _plain(pynvml.nvmlDeviceGetUUID(handle)) in map(_plain, uuids)
            ]
        except Exception:  # no package, no driver, no device: there is nothing to read
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
        """NaN where this GPU does not tell: a virtual one has no power, a slice of one no utilisation."""
        try:
            return reading()
        except self._nvml.NVMLError:
            return math.nan


def _plain(uuid: str) -> str:
    """NVIDIA's library writes GPU-..., torch leaves that out."""
    return str(uuid).removeprefix("GPU-")
