"""What becomes of a process whose parent ends. Linux alone can say; elsewhere these calls do nothing."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)


def end_with_parent() -> None:
    """The kernel sends this process SIGTERM when its parent ends, however that ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def adopt_orphans() -> None:
    """Descendants whose parents end become children of this process, which can then end them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)
