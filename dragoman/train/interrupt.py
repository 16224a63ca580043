"""Ctrl-C, SIGTERM and a closed terminal as a wish: the step under way is finished, the state saved."""

from __future__ import annotations

import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def die_at_once() -> None:
    """While there is nothing to save. No handler of Python's is heard while torch waits for other ranks."""
    for number in _heard():
        signal.signal(number, signal.SIG_DFL)


class Interrupt:
    """Becomes `wanted` at the first signal. Further ones change nothing: launchers send several."""

    def __init__(self) -> None:
        self.wanted = False
        for number in _heard():
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.wanted = True


def _heard() -> list[signal.Signals]:
    """nohup has SIGHUP ignored."""
    return [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
