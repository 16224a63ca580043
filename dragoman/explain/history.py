"""The evaluations of a run as arrays, and what they show: a lasting rise of the loss, or divergence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dragoman.explain.curves import noise_of
from dragoman.measure.records import Records

# A held-out loss has passed its minimum when its last two values are above it by more than the noise (three
# standard deviations) and by more than 1 %.
RISE_IN_NOISE = 3.0
RISE_SHARE = 0.01
# A loss has diverged, rather than fluctuated, when it is a fifth above its best; or a tenth, if it never fell
# below its first value.
DIVERGED_SHARE = 0.20
NEVER_FELL_SHARE = 0.10
# A model whose loss ends above that of the first step, by more than steps differ, is worse than untrained. If
# the first step is not known, the limit is ln(vocabulary), the loss of guessing; new weights miss it by 10 %.
ABOVE_FIRST_SHARE = 0.05
ABOVE_GUESSING_SHARE = 0.20
BAD_OF_LAST = (10, 20)  # diverged: at least 10 of the last 20 steps had a gradient that is not finite
BINS = 20


@dataclass(frozen=True)
class History:
    """Evaluations in order of steps; NaN where nothing was scored, inf where the score was not a number."""

    steps: np.ndarray
    eval_loss: np.ndarray
    train_sample_loss: np.ndarray
    bleu: np.ndarray

    @property
    def last_eval_loss(self) -> float:
        """The last held-out loss that was scored: inf if it was not a number, NaN if none was scored."""
        scored = self.eval_loss[~np.isnan(self.eval_loss)]
        return float(scored[-1]) if len(scored) else float("nan")

    def of(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the finite values and their steps."""
        known = np.isfinite(values)
        return self.steps[known], values[known]


def history(records: Records) -> History:
    """Returns the run's evaluations as arrays."""
    rows = sorted(records.evaluations, key=lambda row: row.step)
    names = ("step", "eval_loss", "train_sample_loss", "bleu")
    columns = [[getattr(row, name) for row in rows] for name in names]
    return History(*(np.array([_number(value) for value in column], dtype=np.float64) for column in columns))


def _number(value: float | None) -> float:
    if value is None:
        return float("nan")
    return float("inf") if np.isnan(value) else float(value)


def rise(values: np.ndarray) -> float:
    """Returns by how much a loss has risen above its minimum for good; 0 if it has not.

    The lower of the last two values decides, so that one bad evaluation does not count as a rise.
    """
    if len(values) < 4:
        return 0.0
    best, last = values.min(), values[-2:].min()
    limit = max(RISE_IN_NOISE * noise_of(values), RISE_SHARE * abs(best))
    return float(last - best) if last - best > limit else 0.0


def divergence(records: Records) -> str | None:
    """Returns how it shows that training diverged; None if it did not, as while the training loss falls."""
    kind, _, why = ((records.attempts[-1].reason or "") if records.attempts else "").partition(": ")
    if kind == "diverged":
        return f"the run was stopped because {why or 'its gradients were no longer finite'}"
    bad = records.steps["is_bad"][-BAD_OF_LAST[1] :]
    if (bad == 1).sum() >= BAD_OF_LAST[0]:
        return f"{int((bad == 1).sum())} of the last {len(bad)} steps had gradients that were not finite"
    past = history(records)
    if np.isinf(past.last_eval_loss):
        return "the last held-out loss was not a finite number"
    if step := _not_finite_from(records):
        return f"the training loss was not a finite number from step {step:,} on"
    return _lasting_rise(records, past) or _worse_than_untrained(records, past)


def _not_finite_from(records: Records) -> int | None:
    """Returns the step after which no recorded loss is finite, if that holds for at least the last two."""
    is_recorded = ~np.isnan(records.steps["loss"])
    is_finite = np.isfinite(records.steps["loss"][is_recorded])
    if len(is_finite) < 2 or is_finite[-2:].any():
        return None
    first = np.flatnonzero(is_finite)[-1] + 1 if is_finite.any() else 0
    return int(records.steps["step"][is_recorded][first])


def _lasting_rise(records: Records, past: History) -> str | None:
    _, held_out = past.of(past.eval_loss)
    training = training_losses(records, past)
    if not _has_broken(training) or (len(held_out) >= 3 and not _has_broken(held_out)):
        return None
    text = f"the loss on training pairs rose from {training.min():.3g} to {training[-1]:.3g}"
    if len(held_out) >= 3:
        text += f", and the held-out loss from {held_out.min():.3g} to {held_out[-1]:.3g}"
    return text


def _worse_than_untrained(records: Records, past: History) -> str | None:
    """A rate far too high does its harm before the first evaluation, after which losses may even fall."""
    loss, pieces = records.steps["loss"], records.facts.data_card.get("vocabulary_pieces")
    if len(loss) and records.steps["step"][0] == 1 and np.isfinite(loss[0]):
        level, of_what = float(loss[0]), "of the first step"
        limit = (1 + ABOVE_FIRST_SHARE) * level
    elif isinstance(pieces, int) and pieces > 1:
        level, of_what = float(np.log(pieces)), "of guessing"
        limit = (1 + ABOVE_GUESSING_SHARE) * level
    else:
        return None
    losses = (training_losses(records, past), past.of(past.eval_loss)[1])
    ended = min((float(values[-2:].min()) for values in losses if len(values)), default=0.0)
    if not len(losses[0]) or ended <= limit:  # a high held-out loss alone may only show overfitting
        return None
    return f"the loss ended at {ended:.3g}, above the {level:.3g} {of_what}: worse than an untrained model"


def training_losses(records: Records, past: History) -> np.ndarray:
    """Returns the losses of the training sample at each evaluation or, without them, those of the steps."""
    _, sample = past.of(past.train_sample_loss)
    return sample if len(sample) >= 3 else _binned(records)


def _has_broken(losses: np.ndarray) -> bool:
    """Whether the lower of the last two values is too far above the best."""
    if len(losses) < 3 or losses.min() <= 0:
        return False
    share = losses[-2:].min() / losses.min() - 1
    return bool(share > (DIVERGED_SHARE if losses.argmin() else NEVER_FELL_SHARE))


def _binned(records: Records) -> np.ndarray:
    """Returns the losses of the steps as 20 means, each over a twentieth of the run."""
    loss = records.steps["loss"]
    loss = loss[np.isfinite(loss)]
    if len(loss) < 2 * BINS:
        return np.array([])
    return np.array([part.mean() for part in np.array_split(loss, BINS)])
