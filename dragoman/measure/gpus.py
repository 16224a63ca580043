"""What the GPUs of this host say of themselves, through NVIDIA's management library. None is a good answer.

Written with care; not run on hardware yet.
"""

from __future__ import annotations


class Gpus:
    """Readings of every GPU, or of none where there is no driver."""

    def __init__(self) -> None:
        self._handles: list[object] = []
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            count = pynvml.nvmlDeviceGetCount()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
        except Exception:  # no package, no driver, no device: there is nothing to read
            return

    def read(self) -> list[tuple[float, ...]]:
        """Per GPU: number, utilisation, watts, their limit, clock in Hz, memory in bytes, degrees Celsius."""
        return [(number, *self._one(handle)) for number, handle in enumerate(self._handles)]

    def _one(self, handle: object) -> tuple[float, ...]:
        nvml = self._nvml
        return (
            nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
            nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
            nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6,
            nvml.nvmlDeviceGetMemoryInfo(handle).used,
            nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        )
