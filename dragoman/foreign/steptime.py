"""Checks a time per step that somebody wrote down against hours divided by steps."""

from __future__ import annotations

from dragoman import format_units

FINE = 0.005  # rounding of a precise written step time, as a share of it
SAME_STEP = 0.15  # the two may differ by this share, because the quotient includes evaluations and restarts


def settled(
    written: float | None, rounding: float, steps: float | None, hours: float | None, hours_rounding: float
) -> tuple[float | None, str]:
    """The more reliable of both times, and a remark if they contradict each other."""
    whole = 3600 * hours / steps if hours and steps else None
    if not whole or not written:
        return whole or written, ""
    if abs(written / whole - 1) <= SAME_STEP:
        # The quotient includes evaluations and restarts, so a precise written figure is better.
        return (written if rounding <= max(FINE, hours_rounding) else whole), ""
    length, many = format_units.seconds(3600 * (hours or 0)), format_units.counted(round(steps or 0), "step")
    quotient = f"{length} for {many} is {format_units.seconds(whole)} per step"
    if is_rate(written, whole):
        return whole, f"The written {written:g} must be steps per second: {quotient}"
    return whole, f"The written {written:g} s per step does not fit: {quotient}"


def is_rate(value: float, step_seconds: float) -> bool:
    """Whether a value given as seconds per step must be steps per second."""
    return abs(1 / value / step_seconds - 1) <= SAME_STEP < abs(value / step_seconds - 1)
