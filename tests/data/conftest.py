"""Small corpora, and a `prepare` that runs in this process: a pool of workers takes seconds to start."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.data import encode, prepare
from dragoman.data.card import Card
from dragoman.data.jobs import PrepareRequest, resolve
from dragoman.data.parallel import Workers
from dragoman.data.store import DataSet
from dragoman.progress import Reporter, Stage

Pairs = Iterable[tuple[str, str]]


class StageNames(Reporter):
    """Remembers which stages ran; breaks off in the one it is told to."""

    def __init__(self, break_in: str = "nowhere"):
        self.names: list[str] = []
        self._break_in = break_in

    @contextmanager
    def stage(self, name: str, unit: str = "") -> Iterator[Stage]:
        self.names.append(name)
        if name.startswith(self._break_in):
            raise KeyboardInterrupt
        yield Stage()


class _OneProcess(Workers):
    def __init__(self) -> None:
        encode._tokenizer.cache_clear()

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(function, items)


@pytest.fixture(scope="session")
def sentences() -> Callable[..., list[tuple[str, str]]]:
    """So many pairs, none twice, lengths and words as uneven as those of a language."""

    def make(count: int, seed: int = 1) -> list[tuple[str, str]]:
        draw = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyzäöü"
        words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(1_000)]
        pairs = []
        for number in range(count):
            chosen = [words[int(1_000 * draw.random() ** 3)] for _ in range(draw.randint(2, 20))]
            turned = [word[::-1] for word in reversed(chosen)]
            pairs.append((" ".join([*chosen, f"{seed}.{number}"]), " ".join([f"{seed}.{number}", *turned])))
        return pairs

    return make


@pytest.fixture(scope="session")
def write() -> Callable[..., list[str]]:
    """Writes a corpus as two files; returns the words that name it on the command line."""

    def write_files(folder: Path, name: str, pairs: Pairs) -> list[str]:
        folder.mkdir(parents=True, exist_ok=True)
        words = []
        for language, side in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            path = folder / f"{name}.{language}"
            path.write_text("".join(f"{line}\n" for line in side), encoding="utf-8", newline="\n")
            words.append(f"{language}={path}")
        return words

    return write_files


@pytest.fixture(scope="session")
def run() -> Iterator[Callable[..., Card]]:
    """`dragoman prepare` in this process, with a vocabulary that is learnt in no time."""

    def prepare_here(
        words: Sequence[str],
        out: Path,
        *changes: str,
        reporter: Reporter | None = None,
        pieces: int | None = 200,
        **request: Any,
    ) -> Card:
        reporter = reporter or Reporter()
        if pieces:
            changes = (f"vocabulary.size={pieces}", *changes)
        return prepare.prepare(
            resolve(PrepareRequest(words, out, changes=changes, **request), reporter), out, reporter
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "Workers", _OneProcess)
        yield prepare_here


@pytest.fixture(scope="session")
def stage_names() -> type[StageNames]:
    return StageNames


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory, sentences, write, run) -> DataSet:
    """3,000 pairs, 40 dev, 30 test. Not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    words = write(folder, "train", sentences(3_000))
    held_out = {part: write(folder, part, sentences(n, seed=n)) for part, n in (("dev", 40), ("test", 30))}
    run(words, folder / "data", **held_out)
    return DataSet(folder / "data")
