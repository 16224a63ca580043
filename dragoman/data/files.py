"""The bytes and the lines of a file, plain or compressed."""

from __future__ import annotations

import gzip
import itertools
import lzma
import os
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import zstandard

from dragoman.errors import DataError

COMPRESSIONS = (".gz", ".xz", ".zst")

# A longer "line" is no sentence but a file of another kind; holding it would cost memory without bound.
LONGEST_LINE_BYTES = 16 * 2**20

_BLOCK_BYTES = 2**20
# 4 bytes of zstd can stand for 128 KiB of output, so this many of input never swell past 128 MiB at once.
_ZSTD_INPUT_BYTES = 4096

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")  # UTF-16 and UTF-32

_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a text file without their ends (LF or CR LF).

    Only LF ends a line: U+2028, U+0085 and a lone CR stand inside sentences, and splitting there would
    shift one side against the other.
    """
    # Chained lists and not a generator of lines: the loop over lines then runs in C.
    return itertools.chain.from_iterable(_lists_of_lines(path))


def text(path: Path) -> Iterator[bytes]:
    """The contents in blocks, without a byte order mark; UTF-16 is refused."""
    stream = blocks(path)
    start = b""
    for block in stream:
        start += block
        if len(start) >= 4:  # enough for the longest mark
            break
    if start.startswith(_WIDE_MARKS):
        raise DataError(
            "the file is UTF-16 or UTF-32, UTF-8 was expected",
            path=path,
            line=1,
            hint=f"iconv -f UTF-16 -t UTF-8 {path.name} > {path.name}.utf8",
        )
    yield start.removeprefix(BYTE_ORDER_MARK)
    yield from stream


def blocks(path: Path) -> Iterator[bytes]:
    """The contents as they are stored, decompressed, in blocks of about a megabyte or less."""
    check_is_file(path)
    line = 1
    try:
        with open(path, "rb") as file:
            for block in _decompressed(file):
                yield block
                line += block.count(b"\n")
    except PermissionError as error:
        raise DataError("the file may not be read", path=path, hint=f"chmod +r {path}") from error
    except _DAMAGE as error:
        raise DataError(
            f"the file is damaged or cut off here ({error or type(error).__name__})",
            path=path,
            line=line,
            hint="fetch or compress the file again, and compare its size with the original's",
        ) from error


def without_compression(name: str) -> str:
    """`train.en` for `train.en.gz`."""
    return next((name.removesuffix(end) for end in COMPRESSIONS if name.lower().endswith(end)), name)


def _lists_of_lines(path: Path) -> Iterator[list[bytes]]:
    tail = b""
    count = 0
    for block in text(path):
        # A CR at the very end stays in `tail` until the block that may bring its LF.
        *whole, tail = (tail + block).replace(b"\r\n", b"\n").split(b"\n")
        count += len(whole)
        if len(tail) > LONGEST_LINE_BYTES:
            raise DataError(
                f"a line of more than {LONGEST_LINE_BYTES:,} bytes: this is not text line by line",
                path=path,
                line=count + 1,
                hint="check that this is the file you meant, one sentence per line",
            )
        yield whole
    if tail:
        yield [tail.removesuffix(b"\r")]


def check_is_file(path: Path) -> None:
    """That it can be read, as far as that is known without opening it."""
    # os.path and not Path: it answers False, instead of raising, for names too long or folders closed to us.
    if os.path.isdir(path):
        raise DataError("this is a directory", path=path, hint=f"name a file in it, or a glob: {path}/*")
    if not os.path.exists(path):
        raise DataError("no such file", path=path, hint="check the spelling and the current directory")
    if not os.path.isfile(path):
        raise DataError(
            "this is a pipe or a device, and a corpus is read more than once",
            path=path,
            hint="write it to a file first",
        )


def _decompressed(file: BufferedReader) -> Iterator[bytes]:
    # By the first bytes and not by the name: browsers and mirrors unpack .gz files and keep the name.
    magic = file.peek(6)
    if magic.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=file) as stream:
            yield from _read(stream)
    elif magic.startswith(b"\xfd7zXZ\x00"):
        with lzma.LZMAFile(file) as stream:
            yield from _read(stream)
    elif magic.startswith((b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")):  # a frame, or pzstd's skippable one
        yield from _zstd_blocks(file)
    else:
        yield from _read(file)


def _read(stream: BufferedReader | gzip.GzipFile | lzma.LZMAFile) -> Iterator[bytes]:
    # read1 hands over what is there; read would lose the good bytes that come before the damage.
    while block := stream.read1(_BLOCK_BYTES):
        yield block


def _zstd_blocks(file: BufferedReader) -> Iterator[bytes]:
    """Every frame of the file. zstandard's own stream_reader takes a cut-off file for a whole one."""
    frame = None
    while chunk := file.read(_ZSTD_INPUT_BYTES):
        while chunk:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(chunk)
            chunk = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame = None
    if frame is not None:
        raise EOFError("the last zstd frame has no end")
