"""Writes curves for TensorBoard, under the tags that the public runs use, and some of our own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.measure.clock import RunClock
from dragoman.measure.quality import Evaluation, Sample

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

# With less room than this, nothing is drawn: on a full disk TensorBoard's thread would die with a stack dump.
# The next checkpoint then stops the run with a clear message.
_ROOM_BYTES = 1 << 20


class Curves:
    """Draws nothing; used on all ranks but 0."""

    def step(self, step: int, loss: float, rate: float, norm: float, tokens_per_second: float) -> None:
        """Adds a point to every training curve."""

    def evaluation(self, evaluation: Evaluation, samples: Sequence[Sample]) -> None:
        """Adds a point to every evaluation curve, and some translations."""

    def close(self) -> None:
        """Returns when everything is on disk."""


class TensorBoardCurves(Curves):
    """Draws curves. Points from `first_step` on replace those of an earlier attempt that got further."""

    def __init__(self, folder: Path, first_step: int):
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._first_step = first_step
        self._clock = RunClock()  # with the wall clock, curves would run backwards if it is set back

    @cached_property
    def _writer(self) -> SummaryWriter:
        """TensorBoard's writer, imported only with the first point, so that the run starts sooner."""
        from torch.utils.tensorboard import SummaryWriter

        _make_older(self._folder, int(time.time()))
        return SummaryWriter(str(self._folder), purge_step=self._first_step)

    def step(self, step: int, loss: float, rate: float, norm: float, tokens_per_second: float) -> None:
        if not self._has_room():
            return
        self._scalars(
            step,
            train_loss=loss,
            learning_rate=rate,
            global_gradient_norm=norm,
            target_tokens_per_second=tokens_per_second,
        )
        self._writer.flush()  # a killed run resumes from a checkpoint, and no point before it may be missing

    def evaluation(self, evaluation: Evaluation, samples: Sequence[Sample]) -> None:
        if not self._has_room():
            return
        self._scalars(
            evaluation.step,
            eval_loss=evaluation.eval_loss,
            train_sample_loss=evaluation.train_sample_loss,
            Eval_BLEU_Score=evaluation.bleu.value,
            Eval_chrF_Score=evaluation.chrf.value,
        )
        for number, sample in enumerate(samples):
            text = f"{sample.source}\n\n**{sample.translation}**\n\n{sample.reference}"
            self._writer.add_text(f"translation/{number}", text, evaluation.step, walltime=self._clock.now())
        self._writer.flush()

    def close(self) -> None:
        if "_writer" in vars(self):  # otherwise nothing was drawn
            self._writer.close()

    def _has_room(self) -> bool:
        return shutil.disk_usage(self._folder).free > _ROOM_BYTES

    def _scalars(self, step: int, **values: float) -> None:
        for tag, value in values.items():
            self._writer.add_scalar(tag, value, step, walltime=self._clock.now())


def _make_older(folder: Path, now: int) -> None:
    """Renames earlier files that carry a later time than `now`, as happens if the wall clock was set back.

    TensorBoard reads files in the order of the Unix seconds in their names, and the newest must come last.
    """
    for place, path in enumerate(sorted(folder.glob("events.out.tfevents.*"), reverse=True), start=1):
        *before, seconds, rest = path.name.split(".", maxsplit=4)
        if seconds.isdecimal() and int(seconds) > now - place:
            path.rename(folder / ".".join((*before, f"{now - place:010d}", rest)))
