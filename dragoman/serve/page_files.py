"""The translation page: three files from this package, nothing from the internet."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from importlib import resources

from jinja2 import Environment, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.serve.limits import Limits
from dragoman.serve.messages import MOST_ALTERNATIVES
from dragoman.serve.models import Models

_SHOWN_ALTERNATIVES = 3
assert _SHOWN_ALTERNATIVES <= MOST_ALTERNATIVES


def routes(models: Models, limits: Limits) -> list[Route]:
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_file("index.html"))
    index = template.render(
        models=[
            {"name": model.name, "source": source, "target": target}
            for model in models.served.values()
            for source, target in [model.languages or ("", "")]
        ],
        characters=limits.characters,
        alternatives=_SHOWN_ALTERNATIVES,
    )
    return [
        Route("/", _serving(index, "text/html")),
        Route("/page/page.css", _serving(_file("page.css"), "text/css")),
        Route("/page/page.js", _serving(_file("page.js"), "text/javascript")),
    ]


def _serving(text: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return Response(text, media_type=kind)

    return endpoint


@functools.cache
def _file(name: str) -> str:
    return resources.files("dragoman.serve").joinpath("page", name).read_text(encoding="utf-8")
