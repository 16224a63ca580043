"""The time of a step that somebody wrote down, held against hours over steps."""

from __future__ import annotations

from dragoman import format_units

FINE = 0.005  # rounding of a written step time, as a share of it
SAME_STEP = 0.15  # a written step time and total over steps, which holds evaluations and restarts too


def settled(
    written: float | None, rounding: float, steps: float | None, hours: float | None, hours_rounding: float
) -> tuple[float | None, str]:
    """The better of both, and a remark where they do not fit."""
    whole = 3600 * hours / steps if hours and steps else None
    if not whole or not written:
        return whole or written, ""
    if abs(written / whole - 1) <= SAME_STEP:
        # Their quotient also holds evaluations and restarts: a written figure of some digits is better.
        return (written if rounding <= max(FINE, hours_rounding) else whole), ""
    length, many = format_units.seconds(3600 * (hours or 0)), format_units.counted(round(steps or 0), "step")
    took = f"{length} for {many} is {format_units.seconds(whole)} per step"
    if is_rate(written, whole):
        return whole, f"The {written:g} that was written down is steps per second: {took}"
    return whole, f"The {written:g} s that were written down do not fit: {took}"


def is_rate(value: float, step_seconds: float) -> bool:
    """Steps per second, where seconds per step were asked for."""
    return abs(1 / value / step_seconds - 1) <= SAME_STEP < abs(value / step_seconds - 1)
