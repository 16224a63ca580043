"""Reads the bytes or lines of a file, plain or compressed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from dragoman.data import compression
from dragoman.errors import DataError

# A longer "line" means another kind of file, and holding it would take unbounded memory.
LONGEST_LINE_BYTES = 16 * 2**20

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")  # UTF-16 and UTF-32


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a text file without their ends (LF or CR LF).

    Only LF ends a line: U+2028, U+0085 and a lone CR occur inside sentences, and splitting there would shift
    one side against the other.
    """
    # Chained lists instead of a generator of lines, so that the loop over lines runs in C.
    return itertools.chain.from_iterable(_lists_of_lines(path))


def text(path: Path) -> Iterator[bytes]:
    """The contents in blocks, without a byte order mark. Raises for UTF-16 and UTF-32."""
    stream = blocks(path)
    start = b""
    for block in stream:
        start += block
        if len(start) >= 4:  # enough for the longest mark
            break
    if start.startswith(_WIDE_MARKS):
        raise DataError(
            "the file is UTF-16 or UTF-32, expected UTF-8",
            path=path,
            line=1,
            hint=f"iconv -f UTF-16 -t UTF-8 {path.name} > {path.name}.utf8",
        )
    yield start.removeprefix(BYTE_ORDER_MARK)
    yield from stream


def blocks(path: Path) -> Iterator[bytes]:
    """The decompressed contents in blocks of about a megabyte or less, otherwise unchanged."""
    check_is_file(path)
    line = 1
    try:
        with open(path, "rb") as file:
            for block in compression.blocks(file):
                yield block
                line += block.count(b"\n")
    except PermissionError as error:
        raise DataError("no permission to read the file", path=path, hint=f"chmod +r {path}") from error
    except (compression.Damaged, OSError) as error:
        raise DataError(
            f"the file is damaged or cut off here ({error or type(error).__name__})",
            path=path,
            line=line,
            hint="fetch or compress the file again, and compare its size with that of the original",
        ) from error


def without_compression(name: str) -> str:
    """The file name without a compression suffix: `train.en` for `train.en.gz`."""
    return next((name.removesuffix(end) for end in compression.SUFFIXES if name.lower().endswith(end)), name)


def _lists_of_lines(path: Path) -> Iterator[list[bytes]]:
    tail = bytearray()  # grows in place while a line continues over many blocks
    count = 0
    for block in text(path):
        tail += block
        if b"\n" in block:
            # A CR at the very end stays in `tail` until the block that may bring its LF.
            *whole, rest = bytes(tail).replace(b"\r\n", b"\n").split(b"\n")
            count += len(whole)
            yield whole
            tail = bytearray(rest)
        check_length(tail, path, count + 1)
    if tail:
        yield [bytes(tail.removesuffix(b"\r"))]


def check_length(unfinished: bytearray, path: Path | str, line: int) -> None:
    """Raises if the line read so far is too long to be a line of text."""
    if len(unfinished) > LONGEST_LINE_BYTES:
        raise DataError(
            f"a line of more than {LONGEST_LINE_BYTES:,} bytes: this is not line-by-line text",
            path=path,
            line=line,
            hint="check that this is the file you meant, one sentence per line",
        )


def check_is_file(path: Path) -> None:
    """Raises unless this is a regular file, as far as that can be told without opening it."""
    # os.path instead of Path: for names that are too long and folders without access it does not raise.
    if os.path.isdir(path):
        raise DataError(
            "this is a directory", path=path, hint=f"name a file in it, or use a glob such as {path}/*"
        )
    if not os.path.exists(path):
        raise DataError("no such file", path=path, hint="check the spelling and the current directory")
    if not os.path.isfile(path):
        raise DataError(
            "this is a pipe or a device, expected a regular file",
            path=path,
            hint="write it to a file first; dragoman translate also takes text from standard input",
        )
