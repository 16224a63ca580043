"""Work on all cores that is interrupted."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from dragoman.data import parallel


def test_ctrl_c_waits_until_workers_have_started_even_if_another_thread_hears_it() -> None:
    """Libraries have threads of their own, and the kernel gives a signal to any that does not block it."""
    done = threading.Event()
    listener = threading.Thread(target=done.wait)
    listener.start()
    has_started = False
    try:
        with pytest.raises(KeyboardInterrupt), parallel.ctrl_c_deferred():
            os.kill(os.getpid(), signal.SIGINT)
            while signal.SIGINT in signal.sigpending():  # until the listener has taken it
                time.sleep(0.01)
            has_started = True
    finally:
        done.set()
        listener.join()
    assert has_started
