"""Which held-out text the options of `dragoman evaluate` mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.data.store import DataSet
from dragoman.errors import UsageError
from dragoman.evaluate import heldout, named, of_run
from dragoman.evaluate.heldout import HeldOut, Languages


@dataclass(frozen=True)
class Asked:
    """As on the command line."""

    data: Path | None = None
    part: str | None = None
    source: Path | None = None
    reference: Path | None = None
    test_set: str | None = None
    languages: str | None = None  # en-de
    mirror: str | None = None


def held_out(asked: Asked, model: Path) -> HeldOut:
    """One of the three ways to say it, or else what the model's own run was trained on holds out."""
    ways = [asked.data, asked.source or asked.reference, asked.test_set]
    if sum(way is not None for way in ways) > 1:
        raise UsageError(
            "what to translate is not clear",
            hint="one of: --data DATA; --source FILE --reference FILE; --test-set NAME --languages en-de",
        )
    languages = _languages(asked.languages)
    if asked.data or not any(ways):
        data = DataSet(asked.data) if asked.data else of_run.data(model)
        return heldout.of_part(data, asked.part or ("test" if "test" in data.parts else "dev"))
    if asked.test_set:
        if languages is None:
            raise UsageError("--test-set without --languages", hint="--languages en-de")
        return named.find(asked.test_set, languages, asked.mirror)
    if not (asked.source and asked.reference):
        raise UsageError("--source and --reference belong together")
    return heldout.of_files(asked.source, asked.reference, languages)


def _languages(text: str | None) -> Languages | None:
    if text is None:
        return None
    source, _, target = text.partition("-")
    if not source or not target:
        raise UsageError(f"--languages {text}", hint="source and target with a '-' between: en-de")
    return source, target
