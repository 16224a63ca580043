"""Refusals of a request, with status and reason."""

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
    """Refuse with 429 and close the connection, so that a client that keeps sending is refused only once."""
    return Refusal(429, f"busy: {what}", {"Retry-After": "1", "Connection": "close"})


def too_large(what: str) -> Refusal:
    return Refusal(413, what)
