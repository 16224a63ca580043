"""The bodies of requests and answers; the same models check requests and make the OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dragoman.bounds import LONGEST_TRANSLATION
from dragoman.decode.engine import Options, Translation
from dragoman.serve.refusal import Refusal

MOST_ALTERNATIVES = 9
_WIDEST_BEAM = 16


def _whole(value: object) -> object:
    """4.0 as the integer 4: JSON has only one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Must follow the limits: before them, pydantic would not write the limits as JSON Schema keywords.
_WHOLE = BeforeValidator(_whole)
_Length = Annotated[int, Field(ge=1, le=LONGEST_TRANSLATION, description="Most tokens per sentence."), _WHOLE]


class Search(BaseModel):
    """How to search; the defaults are those of `dragoman translate`."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    beam: Annotated[int, Field(ge=1, le=_WIDEST_BEAM), _WHOLE] = 4
    length_penalty: Annotated[float, Field(ge=0, le=5)] = 0.6
    max_length: _Length | None = None
    no_repeat_ngram: Annotated[int, Field(ge=0, le=16), _WHOLE] = 0


class Request(BaseModel):
    """One or several texts to translate."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str | list[str]
    source: Annotated[str | None, Field(description="Language of the texts.")] = None
    target: Annotated[str | None, Field(description="Language of the translations.")] = None
    model: Annotated[str | None, Field(description="Name; by default, the first for these languages.")] = None
    alternatives: Annotated[
        int, Field(ge=0, le=MOST_ALTERNATIVES, description="How many for each text."), _WHOLE
    ] = 0
    options: Search = Search()

    @property
    def texts(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text


class LibreForm(BaseModel):
    """A form as LibreTranslate's clients send it; other fields are ignored."""

    q: str
    source: str = "auto"
    target: str
    format: Literal["text"] = "text"
    alternatives: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES), _WHOLE] = 0
    api_key: str | None = None


class LibreRequest(LibreForm):
    """The same fields as JSON; `q` may be a list."""

    model_config = ConfigDict(strict=True)

    q: str | list[str]  # type: ignore[assignment]

    @property
    def texts(self) -> list[str]:
        return [self.q] if isinstance(self.q, str) else self.q


class Alternative(BaseModel):
    text: str
    score: Annotated[
        float | None,
        Field(description="Log-probability / length^length_penalty; null if no translation was found."),
    ]


class Translated(Alternative):
    alternatives: list[Alternative]


class Answer(BaseModel):
    """A translation of each text, in the same order."""

    model: str
    source: str | None
    target: str | None
    translations: list[Translated]


class LibreAnswer(BaseModel):
    """A string or a list, like `q`."""

    translatedText: str | list[str]  # noqa: N815  LibreTranslate's name
    alternatives: list[str] | list[list[str]] = []


class LibreLanguage(BaseModel):
    code: str
    name: str
    targets: list[str]


class Health(BaseModel):
    status: str
    models: list[str]


class Error(BaseModel):
    """Why a request was refused or failed."""

    error: str


Body = TypeVar("Body", bound=BaseModel)


def parse(model: type[Body], body: bytes) -> Body:
    """The model in a JSON body; errors become a refusal of one line."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise invalid(error) from None


def invalid(error: ValidationError) -> Refusal:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return Refusal(400, f"{where}: {first['msg']}" if where else first["msg"])


def search_options(search: Search, alternatives: int) -> Options:
    """The engine's options: a beam wide enough for the alternatives, and texts split into sentences."""
    wanted = alternatives + 1
    return Options(
        beam=max(search.beam, wanted),
        length_penalty=search.length_penalty,
        best=wanted,
        max_length=search.max_length,
        no_repeat_ngram=search.no_repeat_ngram,
        split=True,
    )


def translated(translations: Sequence[Translation]) -> Translated:
    best, *others = (
        {"text": translation.text, "score": translation.score if isfinite(translation.score) else None}
        for translation in translations
    )
    return Translated(**best, alternatives=[Alternative(**other) for other in others])
