"""What a GPU can do, from its compute capability: number formats, and the builds of torch that run on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Capability = tuple[int, int]  # major and minor: (7, 0) is a V100, (9, 0) an H100
Precision = Literal["fp32", "bf16", "fp16"]
AskedPrecision = Literal["auto", "fp32", "bf16", "fp16"]

_AMPERE = (8, 0)
_OLDEST_IN_CUDA_13 = (7, 5)
_OLDEST_IN_CUDA_12 = (5, 0)
_ARCHITECTURE = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def has_bf16(capability: Capability) -> bool:
    """Do its matrix units multiply bf16, and TF32 (fp32 rounded to 11 bits)? Older GPUs emulate bf16."""
    return capability >= _AMPERE


def automatic(capabilities: Sequence[Capability]) -> Precision:
    """What `train.precision = "auto"` stands for on these GPUs together, or on CPUs if there are none."""
    if not capabilities:
        return "fp32"
    return "bf16" if all(map(has_bf16, capabilities)) else "fp16"


def words(precision: Precision, capabilities: Sequence[Capability]) -> str:
    """The format in which these GPUs compute, or CPUs if there are none."""
    if precision == "fp16":
        return "fp16 with loss scaling"
    able = [has_bf16(capability) for capability in capabilities]
    if precision == "bf16":
        return "bf16" if all(able) else "bf16, emulated"
    if not any(able):
        return "fp32"
    return "fp32 with products in TF32" + ("" if all(able) else " on some GPUs")


def has_kernels(capability: Capability, architectures: Sequence[str]) -> bool:
    """Does a torch built for these architectures (`torch.cuda.get_arch_list()`) run on the GPU?"""
    return any(_runs(capability, architecture) for architecture in architectures)


def _runs(capability: Capability, architecture: str) -> bool:
    if not (match := _ARCHITECTURE.fullmatch(architecture)):
        return False
    kind, built_for, suffix = match[1], (int(match[2]), int(match[3])), match[4]
    if suffix == "a":  # uses what only this one GPU has
        return capability == built_for
    # A binary runs on later GPUs of the same major version. PTX is compiled on the spot for any later one.
    is_near = capability[0] == built_for[0] or (kind == "compute" and not suffix)
    return is_near and capability >= built_for


def torch_that_fits(capability: Capability) -> str:
    """What to install so that torch runs on the GPU; see docs/gpus.md."""
    if capability < _OLDEST_IN_CUDA_12:
        return "use a newer GPU: no torch that Dragoman works with has kernels for this one"
    if capability < _OLDEST_IN_CUDA_13:
        # Builds for CUDA 12.6 are the last with kernels for Maxwell, Pascal and Volta; they end with 2.14.
        index = "https://download.pytorch.org/whl/cu126"
        return f'pip install --force-reinstall "torch<2.15" --index-url {index}'
    return "pip install --upgrade --force-reinstall torch"
