"""Tries the link between two hosts with plain sockets: one host listens, the other connects and measures.

The listener takes any free port, as gloo does for gradients. It ends by itself and serves only peers that
know its token: an address may turn out to belong to another machine, or to the one that connects.
"""

from __future__ import annotations

import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dragoman.doctor.facts import is_local
from dragoman.sync.route import interface_towards

_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CONNECT_SECONDS = 2.0
_ANSWER_SECONDS = 15.0
_BURST_SECONDS = 0.25  # shorter ones measure buffers rather than the link
_BURST_ROUND_TRIPS = 20  # a burst also lasts this long: over a long way TCP first has to find the rate
_FIRST_BURST = 1 << 18
_LARGEST_BURST = 1 << 28
_ECHOES = 20
_CHUNK = bytes(1 << 20)
_REQUEST = struct.Struct("!cQ")  # what to do, and the number of bytes
_SEND, _RECEIVE, _DONE = b"s", b"r", b"."
_TOKEN_BYTES = 16


class TriedConnection(BaseModel):
    """The outcome of connecting from one host to another, with rates and round trip if it worked."""

    address: str = ""
    interface: str = ""  # of the host that connected
    failure: str = ""
    sent_bits_per_second: float = 0.0
    received_bits_per_second: float = 0.0
    round_trip_seconds: float = 0.0


def listen(seconds: float = 30.0) -> dict[str, Any]:
    """Opens a port for this long, served by a thread; returns it, a token and the range ports come from."""
    server = _server()
    token = secrets.token_bytes(_TOKEN_BYTES)
    threading.Thread(
        target=_serve, args=(server, token, time.monotonic() + seconds), daemon=True, name="listener"
    ).start()
    text = _PORT_RANGE.read_text().split() if _PORT_RANGE.exists() else ["1024", "65535"]
    return {"port": server.getsockname()[1], "token": token.hex(), "ports": "-".join(text)}


def connect(addresses: Sequence[str], port: int, token: str, measured: bool = True) -> dict[str, Any]:
    """Connects to the first address that answers with the token; if none does, the outcome of the first."""
    tried = []
    for address in addresses:
        if not is_local(address):
            tried.append(_try(address, port, bytes.fromhex(token), measured))
            if not tried[-1].failure:
                return tried[-1].model_dump()
    first = tried[0] if tried else TriedConnection(failure="the host has no address that others can reach")
    return first.model_dump()


def _server() -> socket.socket:
    if socket.has_dualstack_ipv6():
        with suppress(OSError):  # a kernel may support IPv6 and have it switched off
            return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


def _serve(server: socket.socket, token: bytes, deadline: float) -> None:
    with server:
        while (left := deadline - time.monotonic()) > 0:
            server.settimeout(left)
            with suppress(OSError):  # the peer closed the connection
                peer, _ = server.accept()
                with peer:
                    peer.settimeout(_CONNECT_SECONDS)  # a silent peer must not keep others waiting
                    if secrets.compare_digest(_read(peer, _TOKEN_BYTES), token):
                        peer.sendall(token)
                        peer.settimeout(_ANSWER_SECONDS)
                        _answer(peer)


def _answer(peer: socket.socket) -> None:
    """Serves the peer's requests until it closes the connection."""
    while True:
        request, nbytes = _REQUEST.unpack(_read(peer, _REQUEST.size))
        if request == _SEND:
            _drain(peer, nbytes)
            peer.sendall(_DONE)
        else:
            _fill(peer, min(nbytes, _LARGEST_BURST))


def _try(address: str, port: int, token: bytes, measured: bool) -> TriedConnection:
    try:
        with socket.create_connection((address, port), _CONNECT_SECONDS) as peer:
            peer.settimeout(_ANSWER_SECONDS)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(token)
            if _read(peer, _TOKEN_BYTES) != token:
                raise ConnectionResetError
            connected = TriedConnection(address=address, interface=interface_towards(address))
            return connected.model_copy(update=_measure(peer)) if measured else connected
    except ConnectionRefusedError:
        return TriedConnection(address=address, failure="refused")
    except ConnectionError:
        return TriedConnection(address=address, failure="connected, then closed by the other side")
    except TimeoutError:
        return TriedConnection(address=address, failure="no answer")
    except OSError as error:
        return TriedConnection(address=address, failure=(error.strerror or str(error)).lower())


def _measure(peer: socket.socket) -> dict[str, float]:
    send, receive = partial(_send_burst, peer), partial(_receive_burst, peer)
    round_trip = min(_timed(send, 0) for _ in range(_ECHOES))
    enough = max(_BURST_SECONDS, _BURST_ROUND_TRIPS * round_trip)
    return {
        "round_trip_seconds": round_trip,
        "sent_bits_per_second": _rate(send, enough),
        "received_bits_per_second": _rate(receive, enough),
    }


def _rate(burst: Callable[[int], None], enough_seconds: float) -> float:
    """Bits per second of the first burst that takes long enough, each four times as large as the last."""
    nbytes = _FIRST_BURST
    while (seconds := _timed(burst, nbytes)) < enough_seconds and nbytes < _LARGEST_BURST:
        nbytes *= 4
    return 8 * nbytes / seconds


def _timed(burst: Callable[[int], None], nbytes: int) -> float:
    began = time.perf_counter()
    burst(nbytes)
    return time.perf_counter() - began


def _send_burst(peer: socket.socket, nbytes: int) -> None:
    peer.sendall(_REQUEST.pack(_SEND, nbytes))
    _fill(peer, nbytes)
    _read(peer, len(_DONE))


def _receive_burst(peer: socket.socket, nbytes: int) -> None:
    peer.sendall(_REQUEST.pack(_RECEIVE, nbytes))
    _drain(peer, nbytes)


def _fill(peer: socket.socket, nbytes: int) -> None:
    while nbytes > 0:
        part = memoryview(_CHUNK)[: min(nbytes, len(_CHUNK))]
        peer.sendall(part)
        nbytes -= len(part)


def _drain(peer: socket.socket, nbytes: int) -> None:
    buffer = bytearray(len(_CHUNK))
    while nbytes > 0:
        read = peer.recv_into(buffer, min(nbytes, len(buffer)))
        if not read:
            raise ConnectionResetError
        nbytes -= read


def _read(peer: socket.socket, nbytes: int) -> bytes:
    content = b""
    while len(content) < nbytes:
        part = peer.recv(nbytes - len(content))
        if not part:
            raise ConnectionResetError
        content += part
    return content
