"""The GPUs of this host: those the driver lists, and those torch may use. Not yet run on hardware."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dragoman.doctor.facts import Gpu, GpuFacts


def inspect(nvml: Any = None, torch: Any = None) -> GpuFacts:
    """The GPUs; empty if there is no driver or no GPU. Tests can pass their own libraries."""
    try:
        nvml = nvml or import_module("pynvml")
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
        driver = _text(nvml.nvmlSystemGetDriverVersion())
    except Exception:  # no package, no driver, no device: there is nothing to list
        return GpuFacts()
    torch = torch or import_module("torch")
    return GpuFacts(
        driver=driver,
        listed=[_gpu(nvml, handle) for handle in handles],
        usable=torch.cuda.device_count() if torch.cuda.is_available() else 0,
        cuda=torch.version.cuda,
    )


def _gpu(nvml: Any, handle: object) -> Gpu:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(name=_text(nvml.nvmlDeviceGetName(handle)), memory_bytes=memory.total, free_bytes=memory.free)


def _text(value: str | bytes) -> str:
    """The value as text: older versions of the library give bytes."""
    return value.decode() if isinstance(value, bytes) else value
