"""Makes a Python process raise an exception in its main thread at SIGUSR1.

On the PYTHONPATH of the bench's hosts: Python imports a module of this name at its start.
"""

from __future__ import annotations

import signal
from types import FrameType


def _raise(number: int, frame: FrameType | None) -> None:
    raise RuntimeError("injected by benchmarks/faults.py")


signal.signal(signal.SIGUSR1, _raise)
