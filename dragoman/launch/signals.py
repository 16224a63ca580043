"""What a launcher does with SIGINT, SIGTERM and SIGHUP: each is a request to stop the run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_requests(note: Callable[[], None]) -> Iterator[None]:
    """Calls `note` for each request. A signal that was ignored stays ignored: nohup does that to SIGHUP."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, lambda *_: note())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
