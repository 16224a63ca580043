"""The models of one server, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.decode.engine import Engine
from dragoman.errors import UsageError
from dragoman.serve.refusal import Refusal

_LANGUAGES = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")


@dataclass(frozen=True)
class Served:
    """A model, and what it translates from and to if that is known."""

    name: str
    engine: Engine
    languages: tuple[str, str] | None

    def fits(self, source: str | None, target: str | None) -> bool:
        if self.languages is None:
            return True
        return all(asked in (None, own) for asked, own in zip((source, target), self.languages, strict=True))


class Models:
    """At least one; the first is the default."""

    def __init__(self, served: Sequence[Served]):
        self.served = {model.name: model for model in served}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The language pairs there are, each once."""
        return list(dict.fromkeys(model.languages for model in self.served.values() if model.languages))

    def calls_at_once(self, threads: int) -> int:
        """CTranslate2 gives each call a thread of its own; our own search gives every call all of them."""
        return threads if all(model.engine.name == "ctranslate2" for model in self.served.values()) else 1

    def choose(self, name: str | None, source: str | None, target: str | None) -> Served:
        """The model of this name, or the first for these languages."""
        if name is not None and name not in self.served:
            raise Refusal(400, f"there is no model {name}; there are {', '.join(self.served)}")
        asked = [self.served[name]] if name is not None else list(self.served.values())
        for model in asked:
            if model.fits(source, target):
                return model
        known = ", ".join("-".join(model.languages) for model in asked if model.languages)
        raise Refusal(400, f"no model from {source or 'any'} to {target or 'any'}; there are {known}")


def load(words: Sequence[str], open_engine: Callable[[Path], Engine]) -> Models:
    """Of NAME=MODEL or MODEL each; without a name it is called after its folder."""
    served: dict[str, Served] = {}
    for word in words:
        name, path = _parse(word)
        if name in served:
            raise UsageError(f"two models are called {name}", hint="give each a name: NAME=MODEL")
        engine = open_engine(path)
        served[name] = Served(name, engine, engine.languages or _languages(name))
    return Models(list(served.values()))


def _parse(word: str) -> tuple[str, Path]:
    name, is_named, path = word.partition("=")
    if not is_named:
        folder = Path(word).resolve()
        name, path = folder.parent.name if folder.name == "best" else folder.name, word
    if not re.fullmatch(r"[\w.-]{1,64}", name):
        raise UsageError(
            f"{name!r} is not a name for a model", hint="letters, digits, '.', '-' and '_': NAME=MODEL"
        )
    return name, Path(path)


def _languages(name: str) -> tuple[str, str] | None:
    """Of a model that does not know its languages and is called after them, such as en-de."""
    found = _LANGUAGES.fullmatch(name)
    return (found[1], found[2]) if found else None
