"""The middleware before every endpoint: authorisation, security headers, error answers and counting."""

from __future__ import annotations

import hmac
import sys
import time
import traceback

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.errors import DragomanError
from dragoman.serve import sites
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal

TRANSLATING = ("/v1/translate", "/translate")
# Paths that need no token. The OpenAPI document names the languages anyway, and LibreTranslate's clients send
# their key in the body of a GET, in the query or not at all.
OPEN = ("/", "/healthz", "/openapi.json", "/languages", "/page/page.css", "/page/page.js")

# Nothing from other sites, nothing inline: even a tag injected into the page could not run or send data.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",  # translations are private, and a page must not outlive its server
}

_GONE = 499  # nginx's status for a client that left before its answer


def is_right(token: str, given: str) -> bool:
    """Whether the token matches, compared in constant time."""
    return hmac.compare_digest(token.encode(), given.encode())


class Front:
    """Checks and counts requests and adds headers; an `api_key` in a body is checked by its endpoint."""

    def __init__(self, app: ASGIApp, metrics: Metrics, token: str | None, paths: set[str]):
        self._app = app
        self._metrics = metrics
        self._token = token
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # One label for all unknown paths: clients must not create new ones.
        path = scope["path"] if scope["path"] in self._paths else "other"
        began = time.monotonic()
        status = 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            headers = Headers(scope=scope)
            if "content-length" in headers and "transfer-encoding" in headers:
                # A proxy may see this request end elsewhere, and take the rest for another client's request.
                raise Refusal(
                    400, "both Content-Length and Transfer-Encoding are set", {"Connection": "close"}
                )
            if self._token is None:
                sites.check_host(headers)
            scope.setdefault("state", {})["is_authorised"] = self._is_authorised(scope["path"], headers)
            await self._app(scope, receive, answer)
        except Refusal as refusal:
            await refusal.response()(scope, receive, answer)
        except ClientDisconnect:
            status = _GONE
        except DragomanError as error:  # the message is meant for users; the path is for the log only
            print(f"dragoman serve: {path}: {error}", file=sys.stderr, flush=True)
            await Refusal(500, error.what).response()(scope, receive, answer)
        except Exception:  # our fault: the traceback goes to the log, not to the client
            traceback.print_exc()
            await Refusal(500, "the server failed on this request").response()(scope, receive, answer)
        finally:
            self._metrics.requests[path, status] += 1
            if path in TRANSLATING and status == 200:
                self._metrics.translation.add(time.monotonic() - began)

    def _is_authorised(self, path: str, headers: Headers) -> bool:
        """Whether the token is right; refuses a wrong one unless the path is open or the body may hold it."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        is_authorised = self._token is None or (
            scheme.lower() == "bearer" and is_right(self._token, given.strip())
        )
        if not is_authorised and path not in OPEN and path != "/translate":
            raise unauthorised()
        return is_authorised


def unauthorised() -> Refusal:
    return Refusal(
        401, "the token is missing or wrong: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
    )
