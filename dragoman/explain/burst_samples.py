"""When traffic flows within a step, from seconds that were sampled many times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.measure.records import PHASES, Records

LEAST_SAMPLES = 8  # per step: two in each quarter


@dataclass(frozen=True)
class Bursts:
    share: float  # the part of a step's bytes in its busiest quarter of time, median over steps
    steps: int
    phase: str | None  # the phase in which most bytes flow
    phase_share: float  # the part of all bytes that flow in it


def bursts(records: Records) -> Bursts | None:
    """Returns when traffic flows within a step; None if no step was sampled often enough."""
    samples = records.lens
    known = np.isfinite(samples["time"]) & np.isfinite(samples["sent_bytes"]) & np.isfinite(samples["step"])
    shares: list[float] = []
    by_phase = np.zeros(len(PHASES))
    for host in np.unique(samples["host"][known]):
        rows = np.flatnonzero(known & (samples["host"] == host))
        rows = rows[np.argsort(samples["time"][rows], kind="stable")]
        time, sent = samples["time"][rows], samples["sent_bytes"][rows]
        step, phase = samples["step"][rows], samples["phase"][rows]
        starts = np.flatnonzero(np.diff(step, prepend=np.nan) != 0)
        # The first and the last step were sampled only in part.
        for start, end in zip(starts[1:-1], starts[2:], strict=False):
            share = _busiest_quarter(time[start : end + 1], sent[start : end + 1])
            if share is not None:
                shares.append(share)
                _add_by_phase(by_phase, phase[start:end], np.diff(sent[start : end + 1]))
    if not shares:
        return None
    total, most = by_phase.sum(), int(by_phase.argmax())
    return Bursts(
        share=float(np.median(shares)),
        steps=len(shares),
        phase=PHASES[most] if total > 0 else None,
        phase_share=float(by_phase[most] / total) if total > 0 else 0.0,
    )


def _busiest_quarter(time: np.ndarray, sent: np.ndarray) -> float | None:
    """Returns the largest share of the bytes that flows within a quarter of the step, wherever it begins."""
    total, length = sent[-1] - sent[0], time[-1] - time[0]
    if len(time) < LEAST_SAMPLES or total <= 0 or length <= 0 or (np.diff(sent) < 0).any():
        return None
    begin = np.linspace(time[0], time[-1] - length / 4, 4 * len(time))
    carried = np.interp(begin + length / 4, time, sent) - np.interp(begin, time, sent)
    return float(min(1.0, carried.max() / total))


def _add_by_phase(by_phase: np.ndarray, phase: np.ndarray, sent: np.ndarray) -> None:
    for index in range(len(PHASES)):
        by_phase[index] += sent[phase == index].sum()
