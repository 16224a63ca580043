"""The evaluations of a run as arrays, and what can be read off them: a lasting rise, divergence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.explain.curves import noise_of
from dragoman.measure.records import Records

# A held-out loss has passed its minimum when its last two values stand above it by more than noise does
# (three standard deviations) and by more than what matters (1 %).
RISE_IN_NOISE = 3.0
RISE_SHARE = 0.01
# A loss has diverged, rather than wandered, when it stands a fifth above its best.
DIVERGED_SHARE = 0.20
BAD_OF_LAST = (10, 20)  # so many of the last steps had a gradient that is not finite
BINS = 20


@dataclass(frozen=True)
class History:
    """Evaluations in order of steps; NaN where something was not scored."""

    steps: np.ndarray
    eval_loss: np.ndarray
    train_sample_loss: np.ndarray
    bleu: np.ndarray

    def of(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values, where there is one."""
        known = np.isfinite(values)
        return self.steps[known], values[known]


def history(records: Records) -> History:
    rows = sorted(records.evaluations, key=lambda row: row.step)
    names = ("step", "eval_loss", "train_sample_loss", "bleu")
    columns = [[getattr(row, name) for row in rows] for name in names]
    return History(*(np.array([_number(value) for value in column], dtype=np.float64) for column in columns))


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def rise(values: np.ndarray) -> float:
    """By how much a loss stands above its minimum for good; 0 if it does not.

    The lower of the last two values decides, so that one unlucky evaluation is no rise.
    """
    if len(values) < 4 or values.argmin() >= len(values) - 2:
        return 0.0
    best, last = values.min(), values[-2:].min()
    limit = max(RISE_IN_NOISE * noise_of(values), RISE_SHARE * abs(best))
    return float(last - best) if last - best > limit else 0.0


def divergence(records: Records) -> str | None:
    """How it shows that training broke down, or None. While the training loss falls, it did not."""
    if records.attempts and records.attempts[-1].reason == "diverged":
        return "the run was stopped because its gradients were no longer finite"
    bad = records.steps["is_bad"][-BAD_OF_LAST[1] :]
    if (bad == 1).sum() >= BAD_OF_LAST[0]:
        return f"{int((bad == 1).sum())} of the last {len(bad)} steps had a gradient that is not finite"
    past = history(records)
    if past.eval_loss.size and np.isinf(past.eval_loss[-1]):
        return "the held-out loss is not finite"
    _, held_out = past.of(past.eval_loss)
    _, sample = past.of(past.train_sample_loss)
    training = sample if len(sample) >= 3 else _binned(records)
    if _rise_share(training) <= DIVERGED_SHARE:
        return None
    if len(held_out) >= 3 and _rise_share(held_out) <= DIVERGED_SHARE:
        return None
    text = f"the loss on training pairs rose from {training.min():.3g} to {training[-1]:.3g}"
    if len(held_out) >= 3:
        text += f", and the held-out loss from {held_out.min():.3g} to {held_out[-1]:.3g}"
    return text


def _rise_share(values: np.ndarray) -> float:
    """Of the last value (the lower of the last two) above the best."""
    if len(values) < 3 or values.min() <= 0:
        return 0.0
    return float(values[-2:].min() / values.min() - 1)


def _binned(records: Records) -> np.ndarray:
    """The loss of the steps themselves, as means over a twentieth of the run each."""
    loss = records.steps["loss"]
    loss = loss[np.isfinite(loss)]
    if len(loss) < 2 * BINS:
        return np.array([])
    return np.array([part.mean() for part in np.array_split(loss, BINS)])
