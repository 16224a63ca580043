"""The systems scored: a model that translates the held-out text now, or a file of existing translations."""

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
    """Translations of the held-out text, with what made them and how."""

    name: str
    made: str
    translations: list[str]


@dataclass(frozen=True)
class DecodingOptions:
    """How models are opened and searched; None means the run's own setting."""

    engine: EngineName = "auto"
    precision: Precision = "auto"
    average: int = 1
    of: Literal["last", "best"] = "last"
    beam: int | None = None
    length_penalty: float | None = None


def find(path: Path, held_out: HeldOut, decoding: DecodingOptions) -> System:
    """The system at `path`: a file of translations, one per line, or a MODEL that translates now."""
    if path.is_file():
        return _read(path, held_out)
    engine = engines.load(path, decoding.engine, decoding.precision, decoding.average, decoding.of)
    _check_languages(path, engine, held_out)
    options = _options(path, decoding)
    results = engine.translate(held_out.sources, options)
    averaged = f", mean of {decoding.average} checkpoints" if decoding.average > 1 else ""
    search = f"beam {options.beam}, length penalty {options.length_penalty:g}"
    made = f"{engine.name}, {engine.precision}, {search}{averaged}"
    return System(str(path), made, [translations[0].text for translations in results])


def _read(path: Path, held_out: HeldOut) -> System:
    translations = sentences(path)
    if len(translations) != len(held_out.sources):
        raise DataError(
            f"has {len(translations):,} lines, but the held-out text has {len(held_out.sources):,} sentences",
            path=path,
            hint="one translation per line, in the same order",
        )
    return System(str(path), "read from a file", translations)


def _options(path: Path, decoding: DecodingOptions) -> Options:
    """The search options: for a run, those of its own evaluations; for an exported model, the defaults."""
    settings = Evaluate()
    if not (path / CTRANSLATE2_FILE).is_file():
        settings = saved_model.run_settings(saved_model.find(path)).evaluate
    return Options(
        beam=settings.beam if decoding.beam is None else decoding.beam,
        length_penalty=settings.length_penalty
        if decoding.length_penalty is None
        else decoding.length_penalty,
    )


def _check_languages(path: Path, engine: Engine, held_out: HeldOut) -> None:
    if engine.languages and held_out.languages and engine.languages != held_out.languages:
        model_pair, text_pair = ("-".join(pair) for pair in (engine.languages, held_out.languages))
        raise UsageError(f"translates {model_pair}, but the held-out text is {text_pair}", path=path)
