"""Plain text: each line is translated separately, and empty lines stay where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from dragoman.data import files
from dragoman.decode.documents.document import OutputWriter, Translate, UnitTally
from dragoman.errors import DataError

LINES_AT_A_TIME = 1024  # enough to sort by length and keep every core busy


def fill(source: Path, out: OutputWriter, translate: Translate, again: bool) -> UnitTally:
    tally = UnitTally()
    for texts in groups(decoded(files.lines(source), source)):
        out.write("".join(f"{translation}\n" for translation in translate(texts)).encode())
        tally.translated += len(texts)
    return tally


def groups(texts: Iterable[str]) -> Iterator[list[str]]:
    texts = iter(texts)
    while group := list(islice(texts, LINES_AT_A_TIME)):
        yield group


def decoded(lines: Iterable[bytes], path: Path | str, first_line: int = 1) -> Iterator[str]:
    for number, line in enumerate(lines, start=first_line):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"byte {error.start + 1} of this line is not UTF-8",
                path=path,
                line=number,
                hint="iconv -f ISO-8859-1 -t UTF-8, with the file's own encoding after -f",
            ) from None
