"""A request that is not answered as asked: status and reason."""

from __future__ import annotations

from starlette.responses import JSONResponse


class Refusal(Exception):
    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None):
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers

    def response(self) -> JSONResponse:
        return JSONResponse({"error": self.reason}, self.status, self.headers)


def busy(what: str) -> Refusal:
    """Ends the connection, too: who sends on without reading is refused once, not a thousand times."""
    return Refusal(429, f"busy: {what}", {"Retry-After": "1", "Connection": "close"})


def too_large(what: str) -> Refusal:
    return Refusal(413, what)
