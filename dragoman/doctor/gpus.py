"""The GPUs of this host: those the driver lists, and those torch may use. Not yet run on hardware."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dragoman.doctor.facts import Gpu, GpuFacts, UsableGpu


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
        usable=_usable(torch.cuda) if torch.cuda.is_available() else [],
        cuda=torch.version.cuda,
        architectures=torch.cuda.get_arch_list(),
    )


def _usable(cuda: Any) -> list[UsableGpu]:
    return [
        UsableGpu(name=cuda.get_device_name(number), capability=cuda.get_device_capability(number))
        for number in range(cuda.device_count())
    ]


def _gpu(nvml: Any, handle: object) -> Gpu:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(name=_text(nvml.nvmlDeviceGetName(handle)), memory_bytes=memory.total, free_bytes=memory.free)


def _text(value: str | bytes) -> str:
    """The value as text: older versions of the library give bytes."""
    return value.decode() if isinstance(value, bytes) else value
