"""The GPUs of this host: those the driver lists, and those torch may use. Not yet run on hardware."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dragoman.doctor.facts import Gpu, GpuFacts, UsableGpu


def inspect(nvml: Any = None, torch: Any = None) -> GpuFacts:
    """The GPUs; empty if there is no driver or no GPU. Tests can pass their own libraries."""
    driver, listed = _listed(nvml)
    torch = torch or import_module("torch")
    if not listed and not torch.cuda.is_available():
        return GpuFacts()
    return GpuFacts(
        driver=driver,
        listed=listed,
        usable=_usable(torch.cuda) if torch.cuda.is_available() else [],
        cuda=torch.version.cuda,
        architectures=torch.cuda.get_arch_list(),
    )


def _listed(nvml: Any) -> tuple[str | None, list[Gpu]]:
    """The driver's version and its GPUs, by its library, which a container may lack."""
    try:
        nvml = nvml or import_module("pynvml")
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
        return _text(nvml.nvmlSystemGetDriverVersion()), [_gpu(nvml, handle) for handle in handles]
    except Exception:  # no package, no driver, no device: there is nothing to list
        return None, []


def _usable(cuda: Any) -> list[UsableGpu]:
    found = map(cuda.get_device_properties, range(cuda.device_count()))
    return [
        UsableGpu(name=each.name, capability=(each.major, each.minor), memory_bytes=each.total_memory)
        for each in found
    ]


def _gpu(nvml: Any, handle: object) -> Gpu:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(name=_text(nvml.nvmlDeviceGetName(handle)), memory_bytes=memory.total, free_bytes=memory.free)


def _text(value: str | bytes) -> str:
    """The value as text: older versions of the library give bytes."""
    return value.decode() if isinstance(value, bytes) else value
