"""GPUs by name: the peak on the maker's data sheet, and the share of it that training reaches."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragoman.cost.capability import Capability, has_bf16

# The share of the data sheet's peak reached on real tokens: padding, small kernels and memory take the rest.
# Matrix products of thousands of rows reach 60 to 85 % of a device's peak, and up to a third of the rows is
# padding. In mixed precision the matrix units are so fast that everything else sets the pace.
REACHED = (0.3, 0.7)
MIXED_MOST = 0.5
_TF32_PACE = 0.5  # of the matrix units' peak in fp16 and bf16, on every GPU that has TF32


@dataclass(frozen=True)
class GpuType:
    name: str
    pattern: str
    fp32_flops: float  # peak per second, one die, plain fp32
    fastest_flops: float  # with matrix units in fp16 or bf16, if it has any
    watts: float  # the usual limit
    memory_bytes: float  # of the smallest model sold
    capability: Capability  # of the oldest that the pattern matches

    @property
    def has_bf16(self) -> bool:
        """Does it have matrix units for bf16 and TF32?"""
        return has_bf16(self.capability)

    def reached_flops(self, precision: str | None) -> tuple[float, float]:
        """The least and the most FLOP/s that training reaches in fp32 or tf32, else in half precision."""
        slow, fast = REACHED[0] * self.fp32_flops, REACHED[1] * self.fp32_flops
        if precision != "fp32":  # matrix units are never slower than fp32, or nobody would use them
            fast = max(fast, MIXED_MOST * self.fastest_flops * (_TF32_PACE if precision == "tf32" else 1.0))
        return slow, fast


# From the makers' data sheets, dense figures. Order matters: the first pattern that matches is used.
_T, _G = 1e12, 1e9
GPU_TYPES = (
    GpuType("H100", r"H100|H200|GH200", 67 * _T, 990 * _T, 700, 80 * _G, (9, 0)),
    GpuType("A100", r"A100", 19.5 * _T, 312 * _T, 400, 40 * _G, (8, 0)),
    GpuType("A40", r"A40", 37.4 * _T, 150 * _T, 300, 48 * _G, (8, 6)),
    GpuType("RTX A6000", r"A6000", 38.7 * _T, 155 * _T, 300, 48 * _G, (8, 6)),
    GpuType("L40S", r"L40S", 91.6 * _T, 362 * _T, 350, 48 * _G, (8, 9)),
    GpuType("L40", r"L40(?!S)", 90.5 * _T, 181 * _T, 300, 48 * _G, (8, 9)),
    GpuType("A10", r"A10G?", 31.2 * _T, 125 * _T, 150, 24 * _G, (8, 6)),
    GpuType("L4", r"L4", 30.3 * _T, 121 * _T, 72, 24 * _G, (8, 9)),
    GpuType("V100", r"V100", 14 * _T, 112 * _T, 250, 16 * _G, (7, 0)),
    GpuType("T4", r"T4", 8.1 * _T, 65 * _T, 70, 16 * _G, (7, 5)),
    GpuType("P100", r"P100", 9.3 * _T, 18.7 * _T, 250, 16 * _G, (6, 0)),
    GpuType("P40", r"P40", 11.8 * _T, 11.8 * _T, 250, 24 * _G, (6, 1)),
    GpuType("P4", r"P4", 5.5 * _T, 5.5 * _T, 75, 8 * _G, (6, 1)),
    GpuType("M60", r"M60", 4.8 * _T, 4.8 * _T, 150, 8 * _G, (5, 2)),
    GpuType("K80", r"K80", 4.1 * _T, 4.1 * _T, 150, 12 * _G, (3, 7)),  # one of the card's two dies
    GpuType("RTX 4090", r"4090", 82.6 * _T, 165 * _T, 450, 24 * _G, (8, 9)),
    GpuType("RTX 3090", r"3090", 35.6 * _T, 71 * _T, 350, 24 * _G, (8, 6)),
    GpuType("RTX 2080 Ti", r"2080", 13.4 * _T, 54 * _T, 250, 11 * _G, (7, 5)),
    GpuType("GTX 1080 Ti", r"1080", 11.3 * _T, 11.3 * _T, 250, 11 * _G, (6, 1)),
)
RENTED = ("K80", "M60", "P100", "T4", "V100", "A100")  # types clouds have had: the range if none is named


def named(text: str | None) -> list[GpuType]:
    """All types named in a text: `one 2xP100 VM + one 2xV100 VM` names two. An A1000 is no A100."""
    return [kind for kind in GPU_TYPES if text and re.search(_whole(kind.pattern), text, re.IGNORECASE)]


def _whole(pattern: str) -> str:
    """The pattern as a name of its own. An x may stand before it: 2xP100, GTX1080."""
    return rf"(?<![a-wyz\d])(?:{pattern})(?!\d)"


def rented() -> list[GpuType]:
    return [kind for kind in GPU_TYPES if kind.name in RENTED]
