"""How fast a rank computes: from the GPU table, or measured here or in an earlier run."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.cost import capability, gpu_types
from dragoman.errors import UsageError
from dragoman.plan.cluster import PlannedLink
from dragoman.plan.estimate import Estimate

# What no table says about a GPU, in seconds, with wide ranges. The optimizer moves 28 bytes per parameter: it
# reads weight, gradient and two moments, and writes all but the gradient. The ranks of a host exchange over
# PCIe or NVLink. A search decodes one token at a time. For a checkpoint, 12 bytes per parameter are copied
# before training continues.
SERIAL_SECONDS = Estimate(28 / 500e9, 28 / 1500e9, 28 / 200e9, "28 bytes at 200 to 1,500 GB/s")
# gloo between CPUs: 244 MB took 0.8 s between two ranks on one core, with no link in the way.
CPU_DRAG_SECONDS = Estimate(1 / 0.8e9, 1 / 3e9, 1 / 0.3e9, "gloo on CPUs, 0.3 to 3 GB/s")
DRAG_SECONDS = Estimate(1 / 10e9, 1 / 50e9, 1 / 3e9, "3 to 50 GB/s between ranks of a host")
DATA_SHARE = Estimate(0.005, 0.0, 0.05, "tokens come from mapped files: 0 to 5% of computing")
# 5 to 20 times slower in recorded runs on CPUs; a GPU loses more.
DECODING = Estimate(12.0, 5.0, 100.0, "decoding runs at 1 to 20% of the pace of training")
SAVING_SECONDS = Estimate(12 / 3e9, 12 / 10e9, 12 / 1e9, "12 bytes copied at 1 to 10 GB/s")
# In fp16 and bf16, as shares of the matrix units' peak. The bounds of benchmarks/roofline.py for our step are
# 0.29 to 0.49 of it; a run below a third of its bound has something wrong with it. Not measured on a GPU.
HALF_PRECISION = (0.1, 0.45)
STARTUP_SECONDS = Estimate(40.0, 15.0, 120.0, "usual for imports, connecting and probes")


@dataclass(frozen=True)
class Pace:
    """Seconds that one rank takes while all ranks of its host work."""

    device: str
    seconds_per_flop: Estimate  # of forward and backward
    data_share: Estimate = DATA_SHARE  # of computing
    serial_seconds_per_parameter: Estimate = SERIAL_SECONDS  # the optimizer and all else done once per step
    drag_seconds_per_byte: Estimate = DRAG_SECONDS  # that a rank sends, besides the time on the link
    decoding: Estimate = DECODING  # times the seconds per FLOP of training
    saving_seconds_per_parameter: Estimate = SAVING_SECONDS
    startup_seconds: Estimate = STARTUP_SECONDS
    memory_bytes: float | None = None  # of the device
    used_bytes: Estimate | None = None  # peak of a rank, if measured
    link: PlannedLink | None = None  # if a run measured one


def of_gpu(name: str, precision: str) -> Pace:
    """The pace of a GPU in a `train.precision`: the share of its data sheet's peak that training reaches."""
    kinds = gpu_types.named(name)
    if not kinds:
        known = ", ".join(kind.name for kind in gpu_types.GPU_TYPES)
        raise UsageError(
            f"--gpu {name} is not in the table",
            hint=f"give one of {known}, or use --calibrate on the machine",
        )
    kind = kinds[0]
    computed = capability.automatic([kind.capability]) if precision == "auto" else precision
    lacks_bf16 = computed == "bf16" and not kind.has_bf16
    if lacks_bf16:
        units, words = "fp32", "fp32, as it has no units for bf16 (try train.precision=fp16)"
    elif computed == "fp32" and kind.has_bf16:
        units, words = "tf32", "fp32, with products in TF32"
    else:
        units, words = computed, computed
    slow, fast = kind.reached_flops(units)
    if units in ("bf16", "fp16"):
        slow = max(slow, HALF_PRECISION[0] * kind.fastest_flops)
        fast = max(slow, min(fast, HALF_PRECISION[1] * kind.fastest_flops))
    words += f" (train.precision={precision})" if precision == "auto" else ""
    source = f"{kind.name}: {slow / 1e12:.1f} to {fast / 1e12:.1f} TFLOP/s of its data sheet in {words}"
    rate = Estimate((slow * fast) ** 0.5, slow, fast, source)
    return Pace(kind.name, rate.inverse(), memory_bytes=kind.memory_bytes)
