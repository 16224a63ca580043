"""Ctrl-C, SIGTERM and a closed terminal as a wish: the step under way is finished, the state saved."""

from __future__ import annotations

import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupt:
    """Becomes `wanted` at the first signal. Further ones change nothing: launchers send several."""

    def __init__(self) -> None:
        self.wanted = False
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup has SIGHUP ignored
                signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.wanted = True
