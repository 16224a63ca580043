"""Formats numbers for people: rounded, with a unit."""

from __future__ import annotations

from collections.abc import Sequence

NAMED_HOSTS = 3


def seconds(value: float) -> str:
    """A duration: 47 ms, 1.93 s, 12 min 5 s, 3 h 20 min, 2 d 4 h."""
    if value < 0:
        return f"-{seconds(-value)}"
    if value < 0.0995:
        return f"{value * 1e3:.3g} ms"
    if value < 100:
        return f"{value:.3g} s"
    for large, small, size, part in (("min", "s", 60, 1), ("h", "min", 3600, 60)):
        if value < 90 * 60 or large == "h" and value < 48 * 3600:
            whole, rest = divmod(round(value / part), size // part)
            return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"
    days, hours = divmod(round(value / 3600), 24)
    return f"{days} d {hours} h"


def size(value: float) -> str:
    """A number of bytes, in powers of ten, as disks and links are sold."""
    return _scaled(value, ("bytes", "kB", "MB", "GB", "TB", "PB"))


def rate(bits_per_second: float) -> str:
    return _scaled(bits_per_second, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def flops(per_second: float) -> str:
    return _scaled(per_second, ("FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"))


def count(value: float) -> str:
    """1,234, 45.6 million or 2.5 billion."""
    if abs(value) < 1e7:
        return f"{round(value):,}"
    return f"{value / 1e6:.3g} million" if abs(value) < 999.5e6 else f"{value / 1e9:,.1f} billion"


def counted(number: int, noun: str, several: str = "") -> str:
    """1 step, 2,000 steps. `several` is the plural if it is not formed with an s."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def share(value: float) -> str:
    return f"{100 * value:.2g}%" if abs(value) < 0.01 else f"{100 * value:.0f}%"


def listed(parts: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def hosts(names: Sequence[str]) -> str:
    """The first few names, then how many more there are: nobody reads a sentence with 64 names."""
    more = len(names) - NAMED_HOSTS
    return listed([*names[:NAMED_HOSTS], f"{more} more"] if more > 0 else names)


def _scaled(value: float, units: Sequence[str]) -> str:
    power = 0
    while abs(value) >= 999.5 and power < len(units) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {units[power]}"
