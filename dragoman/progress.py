"""Shows the progress of long work: as a bar on a terminal, as lines at intervals in a log, or not at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dragoman import terminal

_LINE_SECONDS = 10.0  # between two lines in a log


class Stage:
    """One piece of work in progress. This one shows nothing; subclasses do."""

    def at(self, done: float, total: float | None = None) -> None:
        """Shows how much is done, out of the total if that is known."""


class Reporter:
    """Shows nothing: for tests, and for callers that nobody watches."""

    def note(self, text: str) -> None:
        """Prints a line that stays."""

    @contextmanager
    def stage(self, name: str, unit: str = "") -> Iterator[Stage]:
        yield Stage()


class _BarStage(Stage):
    def __init__(self, bar: Progress, task: int, unit: str):
        self._bar, self._task, self._unit = bar, task, unit

    def at(self, done: float, total: float | None = None) -> None:
        amount = f"{done:,.0f} {self._unit}" if total is None else f"{done:,.0f} of {total:,.0f} {self._unit}"
        self._bar.update(self._task, completed=done, total=total, amount=amount)  # type: ignore[arg-type]


class BarReporter(Reporter):
    """rich's progress bars, for a person at a terminal."""

    def __init__(self, console: Console):
        self._console = console

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False)

    @contextmanager
    def stage(self, name: str, unit: str = "") -> Iterator[Stage]:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console) as bar:
            yield _BarStage(bar, bar.add_task(name, total=None, amount=""), unit)


class _LineStage(Stage):
    def __init__(self, name: str, unit: str):
        self._name, self._unit = name, unit
        self._next = time.monotonic() + _LINE_SECONDS

    def at(self, done: float, total: float | None = None) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LINE_SECONDS
        share = f" ({done / total:.0%})" if total else ""
        terminal.warn(f"{self._name}: {done:,.0f} {self._unit}{share}")


class LineReporter(Reporter):
    """Plain lines on standard error, for a log file."""

    def note(self, text: str) -> None:
        terminal.warn(text)

    @contextmanager
    def stage(self, name: str, unit: str = "") -> Iterator[Stage]:
        began = time.monotonic()
        yield _LineStage(name, unit)
        self.note(f"{name}: {time.monotonic() - began:.1f} s")


def reporter() -> Reporter:
    """Bars if standard error is a terminal, else lines. Standard output is kept free for answers."""
    console = terminal.console(stderr=True)
    return BarReporter(console) if console.is_terminal else LineReporter()
