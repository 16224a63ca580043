"""`dragoman translate`: files to files, or one stream to another."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from dragoman import atomic
from dragoman.data import files
from dragoman.decode.documents import Translate, UnitTally, check_languages, format_of, is_plain
from dragoman.decode.documents.lines import decoded, groups
from dragoman.decode.documents.output import opened
from dragoman.decode.engine import Engine, Options, Translation
from dragoman.errors import UsageError

_READ_BYTES = 2**16  # as much as a pipe holds


@dataclass(frozen=True)
class Task:
    """The files to translate, and how."""

    sources: Sequence[Path]
    out: Path | None
    options: Options
    plain: bool = False  # treat every file as plain text, whatever its suffix
    again: bool = False  # also replace existing translations
    as_json: bool = False


def check(task: Task) -> None:
    """Refuse whatever is visibly wrong before a model is loaded."""
    if task.out and not task.sources:
        raise UsageError("-o without files", hint="name the files to translate, or leave out -o")
    for source in task.sources:
        files.check_is_file(source)
        format_of(source, task.plain)  # refuses unknown file types
    if task.out:
        _destinations(task.sources, task.out)
    if not task.as_json and task.options.best == 1:
        return
    what = "JSON" if task.as_json else f"{task.options.best} translations of each text"
    if task.out:
        raise UsageError(f"{what} can only go to standard output", hint="leave out -o")
    for source in task.sources:
        if not is_plain(source, task.plain):
            raise UsageError(f"{what} can only be written for plain text", path=source)


def to_files(engine: Engine, task: Task, out: Path) -> UnitTally:
    """Translate a file to `out`; in a folder, or if there are several files, each keeps its name."""
    _check_languages(engine, task)
    tally = UnitTally()
    for source, target in _destinations(task.sources, out):
        target.parent.mkdir(parents=True, exist_ok=True)
        fill = format_of(source, task.plain)
        with opened(target) as writer:
            tally.add(fill(source, writer, _best(engine, task.options), task.again))
    return tally


def to_stream(engine: Engine, task: Task, out: BinaryIO) -> None:
    """Translate the files to one stream, one after the other."""
    _check_languages(engine, task)
    options = task.options
    for source in task.sources:
        if task.as_json or options.best > 1:
            answer(engine, groups(decoded(files.lines(source), source)), out, options, task.as_json)
        else:
            format_of(source, task.plain)(source, out, _best(engine, options), task.again)
    out.flush()


def _check_languages(engine: Engine, task: Task) -> None:
    """Refuses files for other languages than the engine's, before anything is written."""
    for source in task.sources:
        check_languages(source, engine.languages, task.plain)


def from_stream(engine: Engine, descriptor: int, out: BinaryIO, options: Options, as_json: bool) -> None:
    """Translate lines as they arrive: a typed line is answered at once, lines from a pipe go together."""
    answer(engine, _arriving(descriptor), out, options, as_json)


def answer(
    engine: Engine, groups_of_lines: Iterable[Sequence[str]], out: BinaryIO, options: Options, as_json: bool
) -> None:
    """Write a line per translation; with several per text, its line number, score and text; or JSON."""
    number = 0
    for lines in groups_of_lines:
        for text, translations in zip(lines, engine.translate(lines, options), strict=True):
            number += 1
            rows = _rows(number, text, translations, options, as_json)
            out.write("".join(f"{row}\n" for row in rows).encode())
        out.flush()


def _arriving(descriptor: int) -> Iterator[list[str]]:
    number, tail = 0, bytearray()
    while block := os.read(descriptor, _READ_BYTES):
        tail += block
        if b"\n" in block:
            *whole, rest = bytes(tail).split(b"\n")
            yield _texts(whole, number)
            number += len(whole)
            tail = bytearray(rest)
        files.check_length(tail, "standard input", number + 1)
    if tail:
        yield _texts([bytes(tail)], number)


def _texts(lines: Sequence[bytes], before: int) -> list[str]:
    """Lines of standard input as text, without carriage returns and BOM; `before` lines came earlier."""
    bare = [line.removesuffix(b"\r") for line in lines]
    if bare and before == 0:
        bare[0] = bare[0].removeprefix(files.BYTE_ORDER_MARK)
    return list(decoded(bare, "standard input", before + 1))


def _rows(
    number: int, text: str, translations: Sequence[Translation], options: Options, as_json: bool
) -> Iterable[str]:
    if as_json:
        objects = [asdict(translation) for translation in translations]
        yield json.dumps({"line": number, "source": text, "translations": objects}, ensure_ascii=False)
    elif options.best > 1:
        yield from (f"{number}\t{translation.score:.4f}\t{translation.text}" for translation in translations)
    else:
        yield translations[0].text


def _best(engine: Engine, options: Options) -> Translate:
    def translate(texts: Sequence[str]) -> list[str]:
        return [translations[0].text for translations in engine.translate(texts, options)]

    return translate


def _destinations(sources: Sequence[Path], out: Path) -> list[tuple[Path, Path]]:
    """Each file with the path of its translation."""
    if len(sources) > 1 and out.exists() and not out.is_dir():
        raise UsageError(
            "is a file, but there are several files to translate", path=out, hint="-o with a folder"
        )
    is_folder = len(sources) > 1 or out.is_dir()
    pairs = [(source, out / source.name if is_folder else out) for source in sources]
    names = [target.name for _, target in pairs]
    for source, target in pairs:
        atomic.destination(target)  # refuses links of other users
        if names.count(target.name) > 1:
            raise UsageError(f"two files have the name {target.name}", hint="translate them one at a time")
        if target.resolve() == source.resolve():
            raise UsageError(
                "would be overwritten by its own translation", path=source, hint="another name with -o"
            )
    return pairs
