"""Whether a run that lost a rank tries again, or ends with the reason."""

from __future__ import annotations

from collections import deque

MOST_RESTARTS = 100  # in an hour, unless --max-restarts says otherwise
MOST_IN_VAIN = 3  # in a row, without a step between them
_WINDOW_SECONDS = 3600.0
_BLOW_SECONDS = 1.0  # ranks lost within this time were lost together; none is started again and fails as soon


class Restarts:
    """Counts the faults of a run. A machine that is lost every minute does not end it, a rank that fails at
    once every time does."""

    def __init__(self, most: int = MOST_RESTARTS):
        self._most = most
        self._moments: deque[float] = deque()
        self._step = -2  # the most that was completed at a fault; -1 if that was none
        self._in_vain = 0

    def note(self, now: float, step: int) -> str:
        """Counts a fault after this step; returns why the run should end, or an empty text to try again.

        All ranks that one blow takes are one fault.
        """
        if self._moments and now - self._moments[-1] < _BLOW_SECONDS and self._most:
            self._step = max(self._step, step)
            return ""
        self._in_vain = 0 if step > self._step else self._in_vain + 1
        self._step = max(self._step, step)
        self._moments.append(now)
        while now - self._moments[0] > _WINDOW_SECONDS:
            self._moments.popleft()
        if self._most == 0:
            return "--max-restarts is 0"
        if self._in_vain >= MOST_IN_VAIN:
            return f"{self._in_vain + 1} times in a row without completing a step"
        if len(self._moments) > self._most:
            return f"{len(self._moments)} faults in an hour; --max-restarts allows {self._most}"
        return ""
