"""What stands before every endpoint: who may ask, and what is written down about it."""

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
# Asked before a token is known. The languages stand in the document as well, and LibreTranslate's clients
# send their key in the body of a GET, in the query or not at all.
OPEN = ("/", "/healthz", "/openapi.json", "/languages", "/page/page.css", "/page/page.js")

# Nothing from elsewhere, nothing inline: even a tag smuggled into the page could neither run nor call home.
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

_GONE = 499  # as nginx counts a client that left before its answer


def is_right(token: str, given: str) -> bool:
    """Takes as long for a nearly right token as for a wrong one."""
    return hmac.compare_digest(token.encode(), given.encode())


class Front:
    """Checks and counts requests, and adds headers. An `api_key` is in the body: its endpoint looks at it."""

    def __init__(self, app: ASGIApp, metrics: Metrics, token: str | None, paths: set[str]):
        self._app = app
        self._metrics = metrics
        self._token = token
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self._paths else "other"  # few labels, whatever is asked for
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
                # Where this ends, a proxy before us may see differently: what follows could be another's.
                raise Refusal(400, "both Content-Length and Transfer-Encoding", {"Connection": "close"})
            if self._token is None:
                sites.check_host(headers)
            scope.setdefault("state", {})["is_known"] = self._is_known(scope["path"], headers)
            await self._app(scope, receive, answer)
        except Refusal as refusal:
            await refusal.response()(scope, receive, answer)
        except ClientDisconnect:
            status = _GONE
        except DragomanError as error:  # said in words meant for users; the file's place is for the log only
            print(f"dragoman serve: {path}: {error}", file=sys.stderr, flush=True)
            await Refusal(500, error.what).response()(scope, receive, answer)
        except Exception:  # ours to mend: the place goes to the log, not to the client
            traceback.print_exc()
            await Refusal(500, "the server failed at this request").response()(scope, receive, answer)
        finally:
            self._metrics.requests[path, status] += 1
            if path in TRANSLATING and status == 200:
                self._metrics.translation.add(time.monotonic() - began)

    def _is_known(self, path: str, headers: Headers) -> bool:
        """By its token; who may ask without one, or has it in the body, need not be."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        is_known = self._token is None or (
            scheme.lower() == "bearer" and is_right(self._token, given.strip())
        )
        if not is_known and path not in OPEN and path != "/translate":
            raise unauthorised()
        return is_known


def unauthorised() -> Refusal:
    return Refusal(
        401, "the token is missing or wrong: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
    )
