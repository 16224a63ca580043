"""Turns the command line of `dragoman prepare`, or a recipe, into the files and settings to prepare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dragoman import __version__, config
from dragoman.config import Preparation
from dragoman.data import recipes
from dragoman.data.card import SourceFile
from dragoman.data.corpus import Corpus, parse
from dragoman.data.download import Downloader
from dragoman.data.files import check_is_file
from dragoman.errors import UsageError, naming
from dragoman.progress import Reporter, Stage


@dataclass(frozen=True)
class PreparationJob:
    train: tuple[Corpus, ...]
    dev: Corpus | None
    test: Corpus | None
    settings: Preparation
    vocabulary: Path | None = None  # a SentencePiece model to use unchanged
    expected_raw_pairs: int | None = None  # counts that are known from the public record
    expected_clean_pairs: int | None = None

    @property
    def corpora(self) -> tuple[Corpus, ...]:
        return (*self.train, *(part for part in (self.dev, self.test) if part))

    @cached_property
    def sources(self) -> list[SourceFile]:
        """Every input file, once, with its checksum."""
        sides = [
            path for corpus in self.corpora for files in corpus.files for path in (files.source, files.target)
        ]
        return [_source_file(path) for path in dict.fromkeys([*sides, self.vocabulary]) if path]

    @cached_property
    def clean_key(self) -> str:
        """Identifies the clean text: a checksum of the training files' content, languages and rules."""
        return _digest([__version__, self._contents(self.train), self.settings.clean.model_dump()])

    @cached_property
    def key(self) -> str:
        """Identifies the data set: a checksum of all files' content and roles, and of all settings."""
        parts = [len(self.train), self.dev is not None, self.test is not None]
        weights = [corpus.weight for corpus in self.train]
        vocabulary = self._checksums[str(self.vocabulary)]
        contents = self._contents(self.corpora)
        return _digest([__version__, contents, parts, weights, vocabulary, self.settings.model_dump()])

    @cached_property
    def _checksums(self) -> dict[str, str | None]:
        return {source.path: source.sha256 for source in self.sources} | {"None": None}

    def _contents(self, corpora: Sequence[Corpus]) -> list[object]:
        return [
            (corpus.name, corpus.source_language, corpus.target_language)
            + tuple((self._checksums[str(f.source)], self._checksums[str(f.target)]) for f in corpus.files)
            for corpus in corpora
        ]


@dataclass(frozen=True)
class PrepareRequest:
    """The arguments of the command line."""

    what: Sequence[str]  # a recipe's name, or files
    out: Path
    dev: Sequence[str] = ()
    test: Sequence[str] = ()
    vocabulary: Path | None = None
    config: Path | None = None
    changes: Sequence[str] = ()
    downloads: Path | None = None
    mirror: str | None = None


def resolve(request: PrepareRequest, reporter: Reporter) -> PreparationJob:
    """The requested job. Downloads the files of a recipe."""
    given = {
        name: _one(name, words) for name, words in (("dev", request.dev), ("test", request.test)) if words
    }
    settings = config.load(Preparation, request.config, request.changes)  # a typo fails before any download
    if len(request.what) == 1 and "=" not in request.what[0]:
        recipe = recipes.find(request.what[0], reporter.note)
        collected = _collect(recipe, request, reporter)
        train, parts = collected.train, {"dev": collected.dev, "test": collected.test, **given}
        defaults = [f"{key}={json.dumps(value)}" for key, value in recipe.settings.items()]
        settings = config.load(Preparation, request.config, request.changes, defaults)
        # With other cleaning rules than the public record's, its count of clean pairs means nothing.
        has_own_rules = settings.clean != config.load(Preparation, defaults=defaults).clean
        expected = (recipe.expected_raw_pairs, None if has_own_rules else recipe.expected_clean_pairs)
    else:
        train, parts, expected = (
            tuple(parse(request.what)),
            {"dev": None, "test": None, **given},
            (None, None),
        )
    job = PreparationJob(train, parts["dev"], parts["test"], settings, request.vocabulary, *expected)
    _check_languages(job)
    return job


def _one(name: str, words: Sequence[str]) -> Corpus:
    corpora = parse(words)
    if len(corpora) > 1:
        raise UsageError(f"--{name} names {len(corpora)} sets, expected one")
    return corpora[0]


def _collect(recipe: recipes.Recipe, request: PrepareRequest, reporter: Reporter) -> recipes.Collected:
    downloads = request.downloads or request.out.parent / "downloads"
    with naming(downloads), ExitStack() as stack:
        stages: dict[str, Stage] = {}

        def show(name: str, done_bytes: int, total_bytes: int | None) -> None:
            if name not in stages:
                stack.close()  # the previous file is done
                stages[name] = stack.enter_context(reporter.stage(f"Downloading {name}", "bytes"))
            stages[name].at(done_bytes, total_bytes)

        downloader = Downloader(downloads, request.mirror, show, reporter.note)
        return recipe.collect(downloads / recipe.name, downloader.fetch)


def _check_languages(job: PreparationJob) -> None:
    languages = {(corpus.source_language, corpus.target_language) for corpus in job.corpora}
    if len(languages) > 1:
        directions = ", ".join(f"{source} to {target}" for source, target in sorted(languages))
        raise UsageError(
            f"training, dev and test text are in different languages: {directions}",
            hint="name the same two languages in the same order for all of them",
        )


def _digest(facts: list[object]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _source_file(path: Path) -> SourceFile:
    try:
        path.stat()
        check_is_file(path)  # a device may have no end
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return SourceFile(path=str(path), bytes=path.stat().st_size, sha256=digest)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", path=path) from None
