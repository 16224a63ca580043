"""measure/gpus.py against a stand-in for NVIDIA's library, as there is no GPU here."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace

import pytest

from dragoman.measure.gpus import GpuReader

UUIDS = ["GPU-aaaa", "GPU-bbbb", "GPU-cccc"]
WATTS = {"GPU-aaaa": 60, "GPU-bbbb": 210, "GPU-cccc": None}  # None: it does not tell


class NVMLError(Exception):
    pass


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    def power(uuid: str) -> int:
        if WATTS[uuid] is None:
            raise NVMLError("Not Supported")
        return 1_000 * WATTS[uuid]

    module = ModuleType("pynvml")
    vars(module).update(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(UUIDS),
        nvmlDeviceGetHandleByIndex=lambda number: UUIDS[number],
        nvmlDeviceGetUUID=lambda uuid: uuid,
        nvmlDeviceGetUtilizationRates=lambda uuid: SimpleNamespace(gpu=100),
        nvmlDeviceGetPowerUsage=power,
        nvmlDeviceGetEnforcedPowerLimit=lambda uuid: 250_000,
        nvmlDeviceGetClockInfo=lambda uuid, kind: 1_400,
        nvmlDeviceGetMemoryInfo=lambda uuid: SimpleNamespace(used=12_000_000_000),
        nvmlDeviceGetTemperature=lambda uuid, kind: 60,
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)


def test_only_the_gpus_of_this_run_are_read() -> None:
    """The library lists the whole machine; what others do on the rest is no matter of this run."""
    assert GpuReader(["bbbb"]).read() == [(0, 1.0, 210.0, 250.0, 1.4e9, 12e9, 60)]
    assert GpuReader([]).read() == []


def test_a_gpu_that_does_not_tell_its_power_tells_the_rest() -> None:
    ((number, utilisation, watts, limit, *_),) = GpuReader(["cccc"]).read()
    assert (number, utilisation, limit) == (0, 1.0, 250.0)
    assert math.isnan(watts)
