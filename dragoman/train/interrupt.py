"""Turns Ctrl-C, SIGTERM and a closed terminal into a request to stop after the step, with the state saved.

After Ctrl-C somebody is waiting who may want to use the model, so it is scored too. SIGTERM mostly means that
the machine will be gone in seconds: there is only time to save.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

_SAME_SECONDS = 1.0  # one Ctrl-C may arrive twice: from the terminal and from a launcher that forwards it
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def die_at_once() -> None:
    """Lets signals end the process while there is nothing to save.

    Python runs no handler while torch waits for other ranks.
    """
    for number in _not_ignored():
        signal.signal(number, signal.SIG_DFL)


class Interrupt:
    """Sets `wanted` at the first signal, and `is_hurried` at a second one or at any other than Ctrl-C."""

    def __init__(self, is_passed_on: Callable[[int], bool] = lambda number: False) -> None:
        """`is_passed_on` may take a signal away: a supervisor decides who stops."""
        self.wanted = False
        self.is_hurried = False
        self._first = 0.0
        self._is_passed_on = is_passed_on
        for number in _not_ignored():
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self._is_passed_on(number):
            self.note(number)

    def note(self, number: int) -> None:
        """Asks this rank to stop; may be called by another thread."""
        now = time.monotonic()
        is_second = self.wanted and now - self._first > _SAME_SECONDS
        if not self.wanted:
            self.wanted, self._first = True, now
        self.is_hurried = self.is_hurried or is_second or number != signal.SIGINT


def _not_ignored() -> list[signal.Signals]:
    """The signals that this process does not ignore; nohup makes it ignore SIGHUP."""
    return [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
