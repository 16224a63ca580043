"""The OpenAPI document, made from the models that check the requests."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from dragoman import __version__
from dragoman.serve.front import OPEN
from dragoman.serve.libre import FORM
from dragoman.serve.limits import Limits
from dragoman.serve.messages import (
    Answer,
    Error,
    Health,
    LibreAnswer,
    LibreForm,
    LibreLanguage,
    LibreRequest,
    Request,
)
from dragoman.serve.models import Models

Json = dict[str, Any]

_REFUSALS = {
    400: "The body is not JSON, or a value is wrong",
    401: "The token is missing or wrong",
    403: "The request comes from another site",
    408: "The body did not arrive in time",
    413: "Too many bytes, texts, characters or tokens",
    415: "The content type is not accepted",
    429: "Busy; try again after the seconds in Retry-After",
    500: "The server failed",
}


def document(models: Models, limits: Limits, needs_token: bool) -> Json:
    """The OpenAPI document of this server, with its model names, languages and limits."""
    accepted: list[type[BaseModel]] = [Request, LibreRequest, LibreForm]
    returned: list[type[BaseModel]] = [Answer, LibreAnswer, LibreLanguage, Health, Error]
    modes = [(model, "validation") for model in accepted] + [(model, "serialization") for model in returned]
    _, schemas = models_json_schema(modes, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    definitions = schemas["$defs"]
    _narrow(definitions, models, limits)
    parts: Json = {"schemas": definitions}
    if needs_token:
        parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dragoman", "version": __version__, "description": "Translation over HTTP."},
        "paths": _paths(needs_token),
        "components": parts,
    }


def _narrow(definitions: Json, models: Models, limits: Limits) -> None:
    """Add to the schemas what only the running server knows."""
    definitions["LibreForm"]["properties"]["q"]["maxLength"] = limits.characters
    for name, field in (("Request", "text"), ("LibreRequest", "q")):
        one, several = definitions[name]["properties"][field]["anyOf"]
        one["maxLength"] = limits.characters
        several["maxItems"] = limits.texts
        several["description"] = f"At most {limits.characters} characters in all."
    names = {"model": list(models.served)}
    if all(model.languages for model in models.served.values()):
        sources, targets = (sorted(set(side)) for side in zip(*models.pairs, strict=True))
        names |= {"source": sources, "target": targets}
        for name in ("LibreRequest", "LibreForm"):
            definitions[name]["properties"]["source"]["enum"] = ["auto", *sources]
            definitions[name]["properties"]["target"]["enum"] = targets
    for field, known in names.items():
        definitions["Request"]["properties"][field]["anyOf"][0]["enum"] = known


def _paths(needs_token: bool) -> Json:
    libre = _translating("Translate, compatible with LibreTranslate", LibreRequest, LibreAnswer)
    libre["requestBody"]["content"][FORM] = _json_of(LibreForm)["application/json"]
    languages = "Language pairs, compatible with LibreTranslate"
    paths: Json = {
        "/v1/translate": {"post": _translating("Translate", Request, Answer)},
        "/translate": {"post": libre},
        "/languages": {method: _reading(languages, _list_of(LibreLanguage)) for method in ("get", "post")},
        "/healthz": {"get": _reading("Whether the server is up", _json_of(Health))},
        "/metrics": {
            "get": _reading("Counters for Prometheus", {"text/plain": {"schema": {"type": "string"}}})
        },
    }
    if needs_token:
        for path, operations in paths.items():
            for operation in operations.values():
                if path not in OPEN:
                    operation["security"] = [{"bearer": []}]
                    operation["responses"]["401"] = _refusal(401)
    return paths


def _translating(summary: str, body: type[BaseModel], answer: type[BaseModel]) -> Json:
    responses = {"200": {"description": "Translations", "content": _json_of(answer)}}
    responses |= {str(status): _refusal(status) for status in _REFUSALS if status != 401}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": _json_of(body)},
        "responses": responses,
    }


def _reading(summary: str, content: Json) -> Json:
    return {"summary": summary, "responses": {"200": {"description": summary, "content": content}}}


def _refusal(status: int) -> Json:
    return {"description": _REFUSALS[status], "content": _json_of(Error)}


def _json_of(model: type[BaseModel]) -> Json:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}


def _list_of(model: type[BaseModel]) -> Json:
    items = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"application/json": {"schema": {"type": "array", "items": items}}}
