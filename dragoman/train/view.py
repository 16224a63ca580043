"""Shows a run's progress: a bar on a terminal, plain lines elsewhere, and always log.txt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from dragoman import format_units, terminal
from dragoman.measure.quality import Evaluation, Sample
from dragoman.train.pace import Left
from dragoman.train.state import StepOutcome

_LEAST_BAR = 10  # columns
_LONG_SECONDS = 86_400.0  # a longer run gets a warning


class View:
    """Shows nothing, as on ranks other than 0."""

    def say(self, text: str) -> None:
        """Writes a line to the log and the terminal."""

    def step(
        self, step: int, loss: float, outcome: StepOutcome, tokens_per_second: float, left: Left
    ) -> None:
        """Shows the state of the run, once per interval."""

    def plan(self, steps: int) -> None:
        """Changes the number of steps that the run will have."""

    def tick(self, step: int, left: Left) -> None:
        """Notes that a step was made."""

    def evaluation(self, evaluation: Evaluation, samples: Sequence[Sample], is_best: bool) -> None:
        """Shows scores and a few translations."""

    def close(self) -> None:
        """Ends the display."""


class LogView(View):
    """Writes plain lines to standard output and to log.txt."""

    def __init__(self, log: Path, steps: int):
        self._log: TextIO = open(log, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  closed in close()
        self._steps = steps
        self._forecast_has_evaluations: bool | None = None  # of the last forecast shown; None: none yet
        self._is_warned = False

    def say(self, text: str) -> None:
        text = terminal.plain(text)
        self._write(text)
        self._show(text)

    def plan(self, steps: int) -> None:
        self._steps = steps

    def tick(self, step: int, left: Left) -> None:
        """Shows how long the rest takes as soon as it is known, and again once an evaluation was timed."""
        has_evaluations = left.seconds_per_evaluation is not None
        is_shown = self._forecast_has_evaluations in (True, has_evaluations)
        if not left.steps or not left.is_settled or is_shown:
            return
        self._forecast_has_evaluations = has_evaluations
        self.say(forecast(left))
        if left.seconds > _LONG_SECONDS and not self._is_warned:
            self._is_warned = True
            self.say(long_warning(left))

    def step(
        self, step: int, loss: float, outcome: StepOutcome, tokens_per_second: float, left: Left
    ) -> None:
        text = (
            f"step {step:,}/{self._steps:,}  loss {loss:.4f}  {tokens_per_second:,.0f} tokens/s  "
            f"lr {outcome.learning_rate:.3e}  gradient norm {outcome.gradient_norm:.3f}  {_time(left)}"
        )
        self._write(text)
        self._show_step(text)

    def evaluation(self, evaluation: Evaluation, samples: Sequence[Sample], is_best: bool) -> None:
        note = " (best so far)" if is_best else ""
        self.say(
            f"evaluation at step {evaluation.step:,}: loss {evaluation.eval_loss:.4f}, "
            f"on training pairs {evaluation.train_sample_loss:.4f}, BLEU {evaluation.bleu.value:.2f}, "
            f"chrF {evaluation.chrf.value:.2f}{note}, {evaluation.seconds:.1f} s"
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
        with suppress(OSError):  # a closed terminal or pipe must not end a run: the log has everything
            self._print(text)

    def _print(self, text: str) -> None:
        print(text, flush=True)

    def _show_step(self, text: str) -> None:
        self._show(text)


class QuietView(LogView):
    """Writes log.txt only: on the host that keeps a second copy."""

    def _print(self, text: str) -> None: ...


class BarView(LogView):
    """As LogView, with a progress bar that shows what plain lines say once per interval."""

    def __init__(self, log: Path, steps: int, first_step: int, console: Console):
        super().__init__(log, steps)
        self._newest: list[str] = []  # of the last interval, the most important first
        columns = (BarColumn(bar_width=None), TextColumn("{task.fields[now]}", markup=False))
        self._bar = Progress(*columns, console=console, expand=True)
        self._task = self._bar.add_task("", total=steps, completed=first_step, now="")
        self._bar.start()

    def plan(self, steps: int) -> None:
        super().plan(steps)
        self._bar.update(self._task, total=steps)

    def tick(self, step: int, left: Left) -> None:
        super().tick(step, left)
        room = self._bar.console.width - _LEAST_BAR - 1
        now = _fitting(f"step {step:,}/{self._steps:,}  {_time(left)}", self._newest, room)
        self._bar.update(self._task, completed=step, now=now)

    def step(
        self, step: int, loss: float, outcome: StepOutcome, tokens_per_second: float, left: Left
    ) -> None:
        super().step(step, loss, outcome, tokens_per_second, left)
        self._newest = [
            f"loss {loss:.3f}",
            f"{tokens_per_second:,.0f} tokens/s",
            f"lr {outcome.learning_rate:.2e}",
            f"gradient norm {outcome.gradient_norm:.2f}",
        ]
        self.tick(step, left)

    def close(self) -> None:
        with suppress(OSError):
            self._bar.stop()
        super().close()

    def _print(self, text: str) -> None:
        self._bar.console.print(text, highlight=False, markup=False)

    def _show_step(self, text: str) -> None:
        """Nothing: the bar shows it."""


def view(log: Path, steps: int, first_step: int, is_forwarded: bool = False) -> View:
    """A bar if a person is watching, lines elsewhere.

    `is_forwarded`: another program forwards the output; a terminal does not mean that a person is watching.
    """
    console = terminal.console()
    is_watched = console.is_terminal and not is_forwarded
    return BarView(log, steps, first_step, console) if is_watched else LogView(log, steps)


def forecast(left: Left) -> str:
    """How long the rest takes, in words."""
    each = left.seconds_per_evaluation
    steps = f"{left.steps:,} step{'s' * (left.steps != 1)} at {format_units.seconds(left.seconds_per_step)}"
    count = f"{left.evaluations:,} evaluation{'s' * (left.evaluations != 1)}"
    if each is None:
        return f"Time left: about {format_units.seconds(left.seconds)} for {steps}, plus {count}"
    about = format_units.seconds(left.seconds)
    return f"Time left: about {about} for {steps} and {count} at {format_units.seconds(each)}"


def long_warning(left: Left) -> str:
    return (
        f"warning: this takes {left.seconds / 86_400:.1f} days; --minutes N fits a new run to a time, "
        "and more --workers or --hosts make it faster"
    )


def _time(left: Left) -> str:
    return f"left {timedelta(seconds=round(left.seconds))}"


def _fitting(text: str, parts: Sequence[str], room: int) -> str:
    """The text and as many of the parts as fit."""
    for part in parts:
        if len(text) + 2 + len(part) > room:
            break
        text += f"  {part}"
    return text
