"""What the commands do with each kind of input: read it, and use what was read.

A feeder ends well if the input is accepted, and raises an error of ours if it is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dragoman import config, figures
from dragoman.config import CleanRules, Section, Training
from dragoman.data import archive, formats
from dragoman.data.batches import Batches, Position, StepSize
from dragoman.data.corpus import RawPair
from dragoman.data.filters import Cleaner
from dragoman.data.recipes.sgm import sgm_to_lines
from dragoman.data.store import VOCABULARY_FILE, DataSet
from dragoman.data.tokens import Tokenizer
from dragoman.decode.documents import format_of
from tests.fuzz import seeds

Feed = Callable[[bytes], object]
_LONGEST_WORD_BYTES = 2**17 - 1  # of Linux
Opened = tuple[Sequence[bytes], Feed]  # valid input, and what takes one


def file(
    name: str, content: Sequence[bytes], use: Callable[[Path], object], shared: Path, own: Path
) -> Opened:
    """An entrance that is one file."""

    def feed(data: bytes) -> None:
        (own / name).write_bytes(data)
        use(own / name)

    return content, feed


def word(content: Sequence[bytes], use: Callable[[str], object], shared: Path, own: Path) -> Opened:
    """A word of a command line, as the system passes it on: without NUL, and no longer than one may be."""

    def feed(data: bytes) -> None:
        use(data.replace(b"\0", b"")[:_LONGEST_WORD_BYTES].decode("utf-8", "surrogateescape"))

    return content, feed


def is_one_of_many(data: bytes) -> bool:
    """For what costs ten times the rest; the same for the same input."""
    return zlib.crc32(data) % 16 == 0


def settings(model: type[Section], path: Path) -> None:
    loaded = config.load(model, path)
    if is_one_of_many(path.read_bytes()):
        config.text(loaded)


def sets(words: str) -> None:
    config.load(Training, None, words.split("\n"))


def figure(said: str) -> None:
    for read in (figures.figure, figures.hours, figures.step_seconds, figures.rounding, figures.figures):
        read(said)
    if readings := figures.readings(said):
        figures.best(readings, 2e8)


def data_set(name: str, shared: Path, own: Path) -> Opened:
    """One file of a data set; the card agrees with its size, as it does if somebody made both."""
    folder = own / "data"
    shutil.copytree(shared / "data", folder)
    card = json.loads((folder / "card.json").read_text())

    def feed(data: bytes) -> None:
        (folder / name).write_bytes(data)
        if name != "card.json":
            card["files"][name] = len(data)
            if name == VOCABULARY_FILE:
                card["vocabulary_sha256"] = hashlib.sha256(data).hexdigest()
            (folder / "card.json").write_text(json.dumps(card))
        data_set = DataSet(folder)
        data_set.check_contents()  # as train does
        _use_data(data_set)

    return [(folder / name).read_bytes()], feed


def _use_data(data: DataSet) -> None:
    data.card.markdown()
    steps = Batches(data, StepSize(64, 16), seed=1).after(Position())
    for _ in range(3):
        for numbers in next(steps).microbatches:
            data.train.source.take(numbers)
            data.train.target.take(numbers)
    for name, part in data.parts.items():
        if name != "train":
            tokens, _ = part.target.take(np.arange(min(len(part), 100)))
            data.tokenizer.decode([tokens.tolist()])
            part.text("source")


def vocabulary(shared: Path, own: Path) -> Opened:
    def feed(data: bytes) -> None:
        (own / "vocabulary.model").write_bytes(data)
        tokenizer = Tokenizer.load(own / "vocabulary.model")
        tokens, _ = tokenizer.encode(["a red dog", "Ähnlich große 日本", ""])
        tokenizer.decode([tokens.tolist(), []])

    return [(shared / "data" / "vocabulary.model").read_bytes()], feed


def pairs(path: Path) -> None:
    _clean(list(formats.reader(path)(path, "en", "de", Counter())), path)


def side_by_side(path: Path) -> None:
    target = path.with_name("target")
    target.write_bytes(seeds.LINES)
    _clean(list(formats.lines.read(path, target)), path)


def _clean(found: list[RawPair], path: Path) -> None:
    Cleaner(CleanRules(check_script=True), "en", "de").clean(found, str(path))


def sgm(path: Path) -> None:
    sgm_to_lines(path, path.with_suffix(".txt"))


def unpacked(path: Path) -> None:
    folder = path.with_name("unpacked")
    try:
        archive.extract(path, ["*/a.en", "*/a.de"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def translated(path: Path) -> None:
    for again in (False, True):
        format_of(path)(path, io.BytesIO(), lambda texts: [text.upper() for text in texts], again)
