"""Cuts this process's connections to other ranks, so that a collective that can never complete ends at once.

A collective waits for a rank that is gone until its timeout, minutes later: the other ranks keep their
connections to this one, and gloo's own `abort` does not wake the thread that waits (torch 2.13). A connection
that is shut down fails at both its ends, whoever waits there.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress


def cut() -> int:
    """Shuts down all TCP connections of this process, and returns their number.

    A rank has no others than those of gloo and its store. Sockets that listen, and Unix sockets, stay.
    """
    return sum(_shut_down(int(name)) for name in os.listdir("/proc/self/fd"))


def _shut_down(descriptor: int) -> bool:
    with suppress(OSError):  # closed meanwhile, or not connected
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            if copy.family in (socket.AF_INET, socket.AF_INET6) and copy.type == socket.SOCK_STREAM:
                copy.getpeername()  # raises unless connected
                copy.shutdown(socket.SHUT_RDWR)
                return True
    return False
