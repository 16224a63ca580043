"""One connection: deadlines for slow clients, and which connection is dropped when there are too many.

By itself uvicorn waits for ever for the rest of a request's headers and for a client to read its answer, and
accepts any number of connections.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.serve.front import HEADERS
from dragoman.serve.limits import Limits


class Connection(H11Protocol):
    """uvicorn's protocol with deadlines and limits."""

    limits: Limits

    _headers: _Deadline  # for a request's headers to arrive
    _answer: _Deadline  # for the client to read its answer
    _since = 0.0  # when it connected, or its newest request began or was answered
    _is_dropped = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._headers = _Deadline(self.loop, self.limits.receive_seconds, self._headers_are_late)
        self._answer = _Deadline(self.loop, self.limits.send_seconds, self._drop)
        transport.set_write_buffer_limits(high=0)  # report every byte that the client has not read
        self._since = self.loop.time()
        self._watch_headers()
        if len(self._all()) > self.limits.connections:
            self._drop_one([other for other in self._all() if not other._is_working()])

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._since = self.loop.time()
        self._watch_headers()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._answer.start()
        unread = {other: other.transport.get_write_buffer_size() for other in self._all()}
        if sum(unread.values()) > self.limits.unread_bytes:
            self._drop_one([other for other, size in unread.items() if size and other is not self])

    def resume_writing(self) -> None:
        self._answer.stop()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers.stop()
        self._answer.stop()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse as elsewhere; after an answer has begun, only close the connection."""
        if self.cycle:
            self.cycle.disconnected = True  # for the endpoint waiting for the rest of the body
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": msg}).encode()
            fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), **HEADERS}
            headers = [*fields.items(), ("Connection", "close")]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch_headers(self) -> None:
        if not self._is_between_requests():
            self._headers.stop()
        else:
            self._headers.start()

    def _headers_are_late(self) -> None:
        if self._is_between_requests() and not self.transport.is_closing():
            self.transport.close()

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _is_working(self) -> bool:
        """Whether the client waits for us; in all other cases we wait for the client."""
        return not (self._is_between_requests() or self.cycle.more_body or self.flow.write_paused)

    def _all(self) -> list[Connection]:
        return [
            other for other in self.connections if isinstance(other, Connection) and not other._is_dropped
        ]

    def _drop_one(self, candidates: Collection[Connection]) -> None:
        """Drop the oldest candidate of the client with the most connections, which may be a proxy for all."""
        of_client = Counter(other._address() for other in self._all())
        if candidates:
            first = max(candidates, key=lambda other: (of_client[other._address()], -other._since))
            first._drop()

    def _drop(self) -> None:
        """Close at once; an ordinary close waits, here and in the kernel, until the client has read."""
        self._is_dropped = True
        linger = struct.pack("ii", 1, 0)  # for 0 seconds
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.transport.abort()

    def _address(self) -> str:
        return self.client[0] if self.client else ""


class _Deadline:
    """Calls `late` when the time is up unless stopped before; starting it twice changes nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, late: Callable[[], None]):
        self._loop = loop
        self._seconds = seconds
        self._late = late
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._is_late)

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _is_late(self) -> None:
        self._timer = None
        self._late()
