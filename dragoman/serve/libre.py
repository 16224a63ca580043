"""LibreTranslate's `POST /translate` and `GET /languages`, so that its clients work here unchanged.

Written from its public API description. HTML is refused, not translated as plain text. The source language is
not detected: `auto` means the model's source language.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.datastructures import Headers

from dragoman.serve import sites
from dragoman.serve.messages import LibreForm, LibreLanguage, LibreRequest, invalid, parse
from dragoman.serve.refusal import Refusal

FORM = "application/x-www-form-urlencoded"


def request(body: bytes, headers: Headers) -> LibreRequest:
    """The request in a body of JSON or a form."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return parse(LibreRequest, body)
    if kind == FORM:
        sites.check_form(headers)
        return _of_form(body)
    raise Refusal(415, f"the body must be application/json or {FORM}")


def _of_form(body: bytes) -> LibreRequest:
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=100))
        return LibreRequest(**LibreForm.model_validate(fields).model_dump())
    except ValidationError as error:
        raise invalid(error) from None
    except ValueError as error:  # broken UTF-8 among others
        raise Refusal(400, f"not a form: {error}") from None


def languages(pairs: Iterable[tuple[str, str]]) -> list[LibreLanguage]:
    """Every language of the server, with the languages it can be translated into."""
    pairs = list(pairs)
    codes = sorted({code for pair in pairs for code in pair})
    return [
        LibreLanguage(code=code, name=code, targets=[to for source, to in pairs if source == code])
        for code in codes
    ]
