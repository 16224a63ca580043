"""Chooses the held-out text from the options of `dragoman evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.data.store import DataSet
from dragoman.errors import UsageError
from dragoman.evaluate import heldout, named, of_run
from dragoman.evaluate.heldout import HeldOut, Languages


@dataclass(frozen=True)
class HeldOutOptions:
    """The options that choose the held-out text, as on the command line."""

    data: Path | None = None
    part: str | None = None
    source: Path | None = None
    reference: Path | None = None
    test_set: str | None = None
    languages: str | None = None  # en-de
    mirror: str | None = None


def held_out(options: HeldOutOptions, model: Path) -> HeldOut:
    """The text the options name, or else the held-out part of the data set the model's run was trained on."""
    ways = [options.data, options.source or options.reference, options.test_set]
    if sum(way is not None for way in ways) > 1:
        raise UsageError(
            "more than one text to translate is given",
            hint="one of: --data DATA; --source FILE --reference FILE; --test-set NAME --languages en-de",
        )
    languages = _languages(options.languages)
    if options.data or not any(ways):
        data = DataSet(options.data) if options.data else of_run.data(model)
        return heldout.of_part(data, options.part or ("test" if "test" in data.parts else "dev"))
    if options.test_set:
        if languages is None:
            raise UsageError("--test-set needs --languages", hint="--languages en-de")
        return named.find(options.test_set, languages, options.mirror)
    if not (options.source and options.reference):
        raise UsageError("--source and --reference must be given together")
    return heldout.of_files(options.source, options.reference, languages)


def _languages(text: str | None) -> Languages | None:
    if text is None:
        return None
    source, _, target = text.partition("-")
    if not source or not target:
        raise UsageError(
            f"--languages {text} is not a language pair", hint="source and target with a '-' between: en-de"
        )
    return source, target
