"""Messages between a rank and the process that started it: lines of JSON over a pair of Unix sockets.

Nobody else can reach the pair: it has no name, and each process closes the end that is not its own. It also
tells each side at once that the other has ended, however that ended.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

CONTROL = "DRAGOMAN_CONTROL"  # environment of a rank: the descriptor of its end of the pair

Message = dict[str, Any]


class Channel:
    def __init__(self, end: socket.socket):
        self._end = end
        self._sending = threading.RLock()  # a signal handler may send in the middle of another message

    @classmethod
    def of_environment(cls) -> Channel:
        """The rank's end. The variable is removed: a descriptor has one owner."""
        return cls(socket.socket(fileno=int(os.environ.pop(CONTROL))))

    def send(self, **message: Any) -> None:
        """Sends a message, in vain if the other side has ended: `messages` tells of that."""
        with self._sending, suppress(OSError):
            self._end.sendall(json.dumps(message).encode() + b"\n")

    def messages(self) -> Iterator[Message]:
        """What the other side sends, until it ends."""
        with suppress(OSError), self._end.makefile("rb") as lines:  # OSError: reset, because it was killed
            for line in lines:
                yield json.loads(line)

    def close(self) -> None:
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)  # wakes the thread in `messages`
        self._end.close()


def pair() -> tuple[Channel, socket.socket]:
    """The launcher's channel, and the end for a rank."""
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs
