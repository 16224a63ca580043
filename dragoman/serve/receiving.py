"""Reads the body of a request, with limits on its size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from dragoman.serve.limits import Limits
from dragoman.serve.refusal import Refusal, too_large

_DISCARDED_BYTES = 16 * 2**20  # of a body too large: a client reads the answer only after sending its body

Result = TypeVar("Result")


async def body(request: Request, limits: Limits) -> bytes:
    """The whole body; refuses one that is too large or too slow."""
    try:
        async with asyncio.timeout(limits.receive_seconds):
            return await _read(request, limits.body_bytes)
    except TimeoutError:
        seconds = f"{limits.receive_seconds:g}"
        raise Refusal(408, f"the body did not arrive within {seconds} s", {"Connection": "close"}) from None


async def _read(request: Request, most_bytes: int) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size <= most_bytes:
            pieces.append(piece)
        elif size > _DISCARDED_BYTES:
            break
    if size > most_bytes:
        raise too_large(f"the body has more than {most_bytes:,} bytes")
    return b"".join(pieces)


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of the work, which is cancelled if the client disconnects."""
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
