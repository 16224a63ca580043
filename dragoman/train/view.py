"""What a person sees of a run: a bar on a terminal, plain lines elsewhere, and always log.txt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from dragoman import terminal
from dragoman.measure.quality import Evaluation, Sample
from dragoman.train.state import StepOutcome


class View:
    """Shows nothing: what ranks other than 0 have."""

    def say(self, text: str) -> None:
        """A line for the log and the terminal."""

    def step(
        self, step: int, loss: float, outcome: StepOutcome, tokens_per_second: float, seconds_left: float
    ) -> None:
        """The state of the run, once per interval."""

    def tick(self, step: int) -> None:
        """A step was made."""

    def evaluation(self, evaluation: Evaluation, samples: Sequence[Sample], is_best: bool) -> None:
        """Scores and a few translations."""

    def close(self) -> None:
        """The run is over."""


class LogView(View):
    """Plain lines to standard output and to log.txt."""

    def __init__(self, log: Path, steps: int):
        self._log: TextIO = open(log, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  closed in close()
        self._steps = steps

    def say(self, text: str) -> None:
        text = terminal.plain(text)
        self._write(text)
        self._show(text)

    def step(
        self, step: int, loss: float, outcome: StepOutcome, tokens_per_second: float, seconds_left: float
    ) -> None:
        text = (
            f"step {step:,}/{self._steps:,}  loss {loss:.4f}  {tokens_per_second:,.0f} tokens/s  "
            f"lr {outcome.learning_rate:.3e}  gradient norm {outcome.gradient_norm:.3f}  "
            f"left {timedelta(seconds=round(seconds_left))}"
        )
        self._write(text)
        self._show_step(text)

    def evaluation(self, evaluation: Evaluation, samples: Sequence[Sample], is_best: bool) -> None:
        praise = " (best so far)" if is_best else ""
        self.say(
            f"evaluation at step {evaluation.step:,}: loss {evaluation.eval_loss:.4f}, "
            f"of training pairs {evaluation.train_sample_loss:.4f}, BLEU {evaluation.bleu.value:.2f}, "
            f"chrF {evaluation.chrf.value:.2f}{praise}, {evaluation.seconds:.1f} s"
        )
        for sample in samples:
            self.say(f"  source       {sample.source}")
            self.say(f"  translation  {sample.translation}")
            self.say(f"  reference    {sample.reference}")

    def close(self) -> None:
        with suppress(OSError):
            self._log.close()

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a full disk: the next checkpoint stops the run and says so
            self._log.write(text + "\n")

    def _show(self, text: str) -> None:
        with suppress(OSError):  # a closed terminal or pipe is no reason to end a run: the log has it all
            self._print(text)

    def _print(self, text: str) -> None:
        print(text, flush=True)

    def _show_step(self, text: str) -> None:
        self._show(text)


class BarView(LogView):
    """The same with a progress bar, whose line carries what a plain log says once per interval."""

    def __init__(self, log: Path, steps: int, first_step: int, console: Console):
        super().__init__(log, steps)
        columns = (TextColumn("training"), BarColumn(), TextColumn("{task.fields[now]}"), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console)
        self._task = self._bar.add_task("", total=steps, completed=first_step, now="")
        self._bar.start()

    def tick(self, step: int) -> None:
        self._bar.update(self._task, completed=step)

    def close(self) -> None:
        with suppress(OSError):
            self._bar.stop()
        super().close()

    def _print(self, text: str) -> None:
        self._bar.console.print(text, highlight=False, markup=False)

    def _show_step(self, text: str) -> None:
        self._bar.update(self._task, now=text)


def view(log: Path, steps: int, first_step: int) -> View:
    """A bar where a person looks on, lines elsewhere."""
    console = terminal.console()
    return BarView(log, steps, first_step, console) if console.is_terminal else LogView(log, steps)
