"""What is scored: a model that translates the held-out text now, or a file of translations made elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dragoman import engines
from dragoman.checkpoint import saved_model
from dragoman.config import Evaluate
from dragoman.decode.engine import CTRANSLATE2_FILE, Engine, Options
from dragoman.engines import EngineName, Precision
from dragoman.errors import DataError, UsageError
from dragoman.evaluate.heldout import HeldOut, sentences


@dataclass(frozen=True)
class System:
    """Translations of the held-out text, with who made them and how."""

    name: str
    made: str
    translations: list[str]


@dataclass(frozen=True)
class DecodingOptions:
    """How models are opened and searched; what is None is the run's own."""

    engine: EngineName = "auto"
    precision: Precision = "auto"
    average: int = 1
    of: Literal["last", "best"] = "last"
    beam: int | None = None
    length_penalty: float | None = None


def find(path: Path, held_out: HeldOut, way: DecodingOptions) -> System:
    """A file holds translations, one to a line; anything else is a MODEL."""
    if path.is_file():
        return _read(path, held_out)
    engine = engines.load(path, way.engine, way.precision, way.average, way.of)
    _check_languages(path, engine, held_out)
    options = _options(path, way)
    found = engine.translate(held_out.sources, options)
    averaged = f", mean of {way.average} checkpoints" if way.average > 1 else ""
    search = f"beam {options.beam}, length penalty {options.length_penalty:g}"
    made = f"{engine.name}, {engine.precision}, {search}{averaged}"
    return System(str(path), made, [translations[0].text for translations in found])


def _read(path: Path, held_out: HeldOut) -> System:
    translations = sentences(path)
    if len(translations) != len(held_out.sources):
        raise DataError(
            f"holds {len(translations):,} lines, the held-out text {len(held_out.sources):,} sentences",
            path=path,
            hint="one translation to a line, in the same order",
        )
    return System(str(path), "read from a file", translations)


def _options(path: Path, way: DecodingOptions) -> Options:
    """A run is searched as its own evaluations were; an exported model with the defaults."""
    own = Evaluate()
    if not (path / CTRANSLATE2_FILE).is_file():
        own = saved_model.run_settings(saved_model.find(path)).evaluate
    return Options(
        beam=own.beam if way.beam is None else way.beam,
        length_penalty=own.length_penalty if way.length_penalty is None else way.length_penalty,
    )


def _check_languages(path: Path, engine: Engine, held_out: HeldOut) -> None:
    if engine.languages and held_out.languages and engine.languages != held_out.languages:
        own, asked = ("-".join(pair) for pair in (engine.languages, held_out.languages))
        raise UsageError(f"translates {own}, the held-out text is {asked}", path=path)
