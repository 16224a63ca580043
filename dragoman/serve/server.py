"""Runs the application in uvicorn: the socket, the token, and a shutdown that loses no accepted request."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from dragoman.errors import DragomanError, UsageError
from dragoman.serve.connections import Connection
from dragoman.serve.limits import Limits
from dragoman.serve.sites import is_loopback

_SHUTDOWN_SECONDS = 60  # for accepted requests; then even these are dropped
_SHORTEST_TOKEN = 16  # characters
_SEND_BUFFER_BYTES = 128 * 1024  # per connection; Linux would buffer megabytes for one that does not read


def read_token(path: Path | None, host: str) -> str | None:
    """The token in a file; on the command line, every user of the machine could see it."""
    if path is None:
        if not is_loopback(host):
            raise UsageError(
                f"{host} can be reached from other machines, so a token is needed",
                hint="--token-file FILE with a long random line in it, or --host 127.0.0.1",
            )
        return None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8", path=path) from None
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"expected one word of at least {_SHORTEST_TOKEN} ASCII letters, digits and signs",
            path=path,
            hint="openssl rand -hex 32 > FILE",
        )
    return token


def run(app: ASGIApp, listening: socket.socket, limits: Limits, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; then accept nothing new, answer every accepted request, and return."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # When done, uvicorn raises again the signal that stopped it; this one must have no effect.
        signal.signal(number, lambda *_: None)

    protocol = type("LimitedConnection", (Connection,), {"limits": limits})
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    _Server(config, lambda: ready(url)).run(sockets=[listening])


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; called before any model is loaded, so that a taken port is reported at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        listening.bind(address)
    except OSError as error:
        raise DragomanError(
            f"cannot listen on {host} port {port}: {error.strerror}", hint="another --port or --host"
        ) from None
    return listening


class _Server(uvicorn.Server):
    """Calls `ready` when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()
