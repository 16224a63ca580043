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
    """A model with its source and target language, if known."""

    name: str
    engine: Engine
    languages: tuple[str, str] | None

    def fits(self, source: str | None, target: str | None) -> bool:
        if self.languages is None:
            return True
        return source in (None, self.languages[0]) and target in (None, self.languages[1])


class Models:
    """The models of a server, at least one; the first is the default."""

    def __init__(self, served: Sequence[Served]):
        self.served = {model.name: model for model in served}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The language pairs of all models, without repetition."""
        return list(dict.fromkeys(model.languages for model in self.served.values() if model.languages))

    def calls_at_once(self, threads: int) -> int:
        """Engine calls to make at once: CTranslate2 uses one thread per call, our own search uses all."""
        return threads if all(model.engine.name == "ctranslate2" for model in self.served.values()) else 1

    def choose(self, name: str | None, source: str | None, target: str | None) -> Served:
        """The model of this name, or the first for these languages."""
        if name is not None and name not in self.served:
            raise Refusal(400, f"no model {name}; this server has {', '.join(self.served)}")
        candidates = [self.served[name]] if name is not None else list(self.served.values())
        for model in candidates:
            if model.fits(source, target):
                return model
        pairs = dict.fromkeys("-".join(model.languages) for model in candidates if model.languages)
        known = ", ".join(pairs)
        raise Refusal(400, f"no model from {source or 'any'} to {target or 'any'}; this server has {known}")


def load(words: Sequence[str], open_engine: Callable[[Path], Engine]) -> Models:
    """Load models given as NAME=MODEL or MODEL; without a name, a model is named after its folder."""
    served: dict[str, Served] = {}
    for word in words:
        name, path = _parse(word)
        if name in served:
            raise UsageError(f"two models have the name {name}", hint="give each its own name: NAME=MODEL")
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
            f"{name!r} is not a valid name for a model",
            hint="NAME=MODEL with a name of letters, digits, '.', '-' and '_'",
        )
    return name, Path(path)


def _languages(name: str) -> tuple[str, str] | None:
    """The languages in a model's name, such as en-de, for a model that does not record them."""
    match = _LANGUAGES.fullmatch(name)
    return (match[1], match[2]) if match else None
