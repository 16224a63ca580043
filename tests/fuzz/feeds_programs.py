"""Other programs at the other end of a connection: agents on hosts, clients of the server."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch import remote
from dragoman.serve import app
from dragoman.serve.limits import Limits
from dragoman.serve.models import Models, Served
from dragoman.terminal import plain
from tests.fuzz import seeds
from tests.fuzz.feeds import Opened
from tests.fuzz.feeds_runs import terminal
from tests.serve.stand_in import CapitalEngine


class _Talk:
    """In place of the agent's process: has said all that it will say, and has gone."""

    returncode = 0

    def __init__(self, said: bytes):
        self.stdin, self.stderr = io.StringIO(), io.StringIO()
        self.stdout = io.TextIOWrapper(io.BytesIO(said), encoding="utf-8", errors="replace")

    def wait(self, timeout: float | None = None) -> int:
        return self.returncode


def said_by_agent(shared: Path, own: Path) -> Opened:
    """A list of JSON, each a line of what an agent says."""

    def show(line: str, is_error: bool) -> None:
        print(plain(line), file=terminal())  # as launch/ssh.py does

    def feed(data: bytes) -> None:
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(lines := json.loads(data), list):
                data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        processes = SimpleNamespace(Popen=lambda *words, **options: _Talk(data), PIPE=subprocess.PIPE)
        before, remote.subprocess = remote.subprocess, processes  # type: ignore[attr-defined]
        try:
            with remote.Remote("localhost", show) as host:
                host.call("clock")
        finally:
            remote.subprocess = before  # type: ignore[attr-defined]

    return seeds.messages(), feed


class Refused(DragomanError):
    """An answer of the server that is no failure of its own: 4xx."""


class ServerFailed(Exception):
    """Any other than 200. Holds what the server wrote about it."""


def http(path: str, content_type: str, content: Sequence[bytes], shared: Path, own: Path) -> Opened:
    """The body of a request, given to the application without a network."""
    loop = asyncio.new_event_loop()
    served = Models([Served("capitals", CapitalEngine(None, None), ("en", "de"))])
    application = app.build(served, Limits(), None, threads=1)
    lifespan = application.router.lifespan_context(application)
    loop.run_until_complete(lifespan.__aenter__())

    def feed(data: bytes) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as written:
            status, answer = loop.run_until_complete(_ask(application, path, content_type, data))
        assert lifespan is not None  # held here: it would end with its last owner
        if status != 200 and not 400 <= status < 500:
            raise ServerFailed(f"{status}: {written.getvalue()}")
        answered = json.loads(answer)
        if status != 200:
            raise Refused(answered["error"])

    return content, feed


async def _ask(application: Any, path: str, content_type: str, body: bytes) -> tuple[int, bytes]:
    headers = [(b"content-type", content_type.encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": headers,
        "state": {},
    }
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()  # the client stays
        return waiting.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
