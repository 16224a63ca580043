"""The endpoints of the service and the application that holds them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dragoman.decode.engine import Options
from dragoman.serve import libre, messages, openapi, page_files, receiving
from dragoman.serve.batching import Batcher, Translations
from dragoman.serve.front import Front, is_right, unauthorised
from dragoman.serve.limits import Limits
from dragoman.serve.messages import Answer, Health, LibreAnswer, Search
from dragoman.serve.metrics import Metrics
from dragoman.serve.models import Models, Served
from dragoman.serve.refusal import Refusal, too_large
from dragoman.serve.slots import Slots


@dataclass(frozen=True)
class Service:
    """The endpoints and what they share."""

    models: Models
    limits: Limits
    token: str | None
    metrics: Metrics
    slots: Slots
    batcher: Batcher

    async def v1_translate(self, request: Request) -> Response:
        body = await receiving.body(request, self.limits)
        _check_json(request)
        wanted = messages.parse(messages.Request, body)
        model = self.models.choose(wanted.model, wanted.source, wanted.target)
        options = messages.search_options(wanted.options, wanted.alternatives)
        results = await self._translate(request, model, wanted.texts, options)
        source, target = model.languages or (wanted.source, wanted.target)
        translations = [messages.translated(translations) for translations in results]
        return _json(Answer(model=model.name, source=source, target=target, translations=translations))

    async def libre_translate(self, request: Request) -> Response:
        body = await receiving.body(request, self.limits)
        wanted = libre.request(body, request.headers)
        if not request.state.is_authorised and not is_right(self.token or "", wanted.api_key or ""):
            raise unauthorised()
        source = None if wanted.source == "auto" else wanted.source
        model = self.models.choose(None, source, wanted.target)
        options = messages.search_options(Search(), wanted.alternatives)
        results = await self._translate(request, model, wanted.texts, options)
        best = [translations[0].text for translations in results]
        others = [[other.text for other in translations[1:]] for translations in results]
        is_one = isinstance(wanted.q, str)
        answer = LibreAnswer(
            translatedText=best[0] if is_one else best,
            alternatives=(others[0] if is_one else others) if wanted.alternatives else [],
        )
        return _json(answer)

    async def _translate(
        self, request: Request, model: Served, texts: Sequence[str], options: Options
    ) -> list[Translations]:
        characters = sum(map(len, texts))
        _check_size(texts, characters, options.max_length, self.limits)
        client = request.client.host if request.client else ""
        with self.slots.held(client, characters):
            work = self.batcher.translate(model, texts, options)
            return await receiving.while_connected(request, work)

    async def libre_languages(self, request: Request) -> Response:
        rows = libre.languages(self.models.pairs)
        return JSONResponse([row.model_dump() for row in rows])

    async def health(self, request: Request) -> Response:
        return _json(Health(status="ok", models=list(self.models.served)))

    async def prometheus(self, request: Request) -> Response:
        return PlainTextResponse(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def document(self, request: Request) -> Response:
        return JSONResponse(openapi.document(self.models, self.limits, bool(self.token)))

    def routes(self) -> list[Route]:
        return [
            Route("/v1/translate", self.v1_translate, methods=["POST"]),
            Route("/translate", self.libre_translate, methods=["POST"]),
            Route("/languages", self.libre_languages, methods=["GET", "POST"]),
            Route("/healthz", self.health),
            Route("/metrics", self.prometheus),
            Route("/openapi.json", self.document),
            *page_files.routes(self.models, self.limits),
        ]


def build(models: Models, limits: Limits, token: str | None, threads: int) -> Starlette:
    """The application, for any ASGI server; `threads` is the number of engine calls made at once."""
    metrics = Metrics()
    batcher = Batcher(limits, metrics, threads)
    service = Service(models, limits, token, metrics, Slots(limits, metrics), batcher)
    routes = service.routes()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        """The server leaves this when it has answered every accepted request."""
        async with service.batcher.running():
            yield

    paths = {route.path for route in routes}
    front = Middleware(Front, metrics=metrics, token=token, paths=paths)
    handlers = {HTTPException: _no_such_endpoint}
    app = Starlette(routes=routes, middleware=[front], lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False  # a redirect would repeat whatever host name the client sent
    return app


_ENDS = ".!?…。！？।\n"  # of sentences; a text has at most one sentence more than it has of these marks


def _check_size(texts: Sequence[str], characters: int, max_length: int | None, limits: Limits) -> None:
    if len(texts) > limits.texts:
        raise too_large(f"{len(texts)} texts, at most {limits.texts} are accepted")
    if characters > limits.characters:
        raise too_large(f"{characters:,} characters, at most {limits.characters:,} are accepted")
    # By default a translation is at most about twice as long as its sentence. With a max_length of 1,024 and
    # 10,000 sentences of one word, a model that repeats itself would be busy for hours.
    sentences = len(texts) + sum(text.count(end) for text in texts for end in _ENDS)
    if max_length and max_length * sentences > limits.tokens:
        raise too_large(
            f"a max_length of {max_length} for about {sentences:,} sentences; "
            f"together they may have at most {limits.tokens:,} tokens"
        )


def _check_json(request: Request) -> None:
    """Refuse other content, and so other sites' forms: browsers send JSON to other sites only if allowed."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "the body must be application/json")


def _json(model: BaseModel) -> Response:
    return Response(model.model_dump_json(), media_type="application/json")


async def _no_such_endpoint(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
