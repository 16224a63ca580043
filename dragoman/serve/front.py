"""What stands before every endpoint: who may ask, how many at once, and what is written down about it."""

from __future__ import annotations

import hmac
import time
import traceback

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal, busy

TRANSLATING = ("/v1/translate", "/translate")
OPEN = ("/", "/healthz", "/openapi.json", "/page/page.css", "/page/page.js")  # asked before a token is known

# Nothing from elsewhere, nothing inline: even a tag smuggled into the page could neither run nor call home.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
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
    """Counts and limits requests, and adds headers. An `api_key` is in the body: its endpoint looks at it."""

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, token: str | None, paths: set[str]):
        self._app = app
        self._limits = limits
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
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        is_translating = path in TRANSLATING
        place = Place(self._limits, self._metrics)
        scope.setdefault("state", {})["place"] = place
        try:
            is_known = self._is_known(scope)
            if is_translating:
                place.take(is_known)
            await self._app(scope, receive, answer)
        except Refusal as refusal:
            place.leave()  # before the answer, which a client may refuse to read
            await refusal.response()(scope, receive, answer)
        except ClientDisconnect:
            status = _GONE
        except Exception:  # ours to mend: the place goes to the log, not to the client
            traceback.print_exc()
            await Refusal(500, "the server failed at this request").response()(scope, receive, answer)
        finally:
            place.leave()
            self._metrics.requests[path, status] += 1
            if is_translating and status == 200:
                self._metrics.translation.add(time.monotonic() - began)

    def _is_known(self, scope: Scope) -> bool:
        """By its token; who may ask without one, or has it in the body, need not be."""
        given = Headers(scope=scope).get("authorization", "")
        is_known = self._token is None or is_right(f"Bearer {self._token}", given)
        if not is_known and scope["path"] not in OPEN and scope["path"] != "/translate":
            raise unauthorised()
        return is_known


class Place:
    """Of a request for a translation among those under way.

    Strangers, whose `api_key` is still on its way, have few places of their own: bodies that never come must
    not keep out those who have a token.
    """

    def __init__(self, limits: Limits, metrics: Metrics):
        self._limits = limits
        self._metrics = metrics
        self.is_known: bool | None = None  # None: it has no place

    def take(self, is_known: bool) -> None:
        """Instead of the one it has, if any. Refuses if there is none left."""
        self.leave()
        self.is_known = is_known
        self._metrics.requests_under_way += is_known
        self._metrics.strangers_under_way += not is_known
        if is_known and self._metrics.requests_under_way > self._limits.requests:
            raise busy(f"{self._limits.requests} requests are under way")
        if not is_known and self._metrics.strangers_under_way > self._limits.strangers:
            raise busy(f"{self._limits.strangers} requests without a token are under way")

    def leave(self) -> None:
        if self.is_known is not None:
            self._metrics.requests_under_way -= self.is_known
            self._metrics.strangers_under_way -= not self.is_known
        self.is_known = None


def unauthorised() -> Refusal:
    return Refusal(
        401, "the token is missing or wrong: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
    )
