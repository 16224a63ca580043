"""How a launcher handles SIGINT, SIGTERM and SIGHUP: each is a request to stop the run.

Ranks are sent the same signal: after SIGINT they also score the model; after the others they may lack the
time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_requests(note: Callable[[int], None]) -> Iterator[None]:
    """Calls `note` with the signal of each request. An ignored signal (nohup's SIGHUP) stays ignored."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, lambda signum, _: note(signum))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
