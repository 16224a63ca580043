"""Reads the lines of a file of any size in pieces, gzipped or not (by content), with any bytes in it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dragoman.errors import UsageError

PIECE_BYTES = 1 << 22
PACKED_BYTES = 1 << 15  # small: zlib copies the remaining bytes whenever an archive ends among them
LONGEST_LINE_BYTES = 1 << 20  # longer lines are cut
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
GZIP_MAGIC = b"\x1f\x8b"
GZIP_DAMAGE = "the gzip data is cut short or damaged; everything before that was read"


class Lines:
    """A file that is read once, piece by piece, in constant memory. `damage` then says what stopped it."""

    def __init__(self, path: Path):
        self.path = path
        self.damage: str | None = None

    def pieces(self) -> Iterator[tuple[bytes, list[bytes]]]:
        """Pieces of some megabytes with their lines. Carriage returns end lines, too (progress bars)."""
        rest, is_wide = b"", None
        for data in self.data():
            is_wide = data.startswith(UTF16_MARKS) if is_wide is None else is_wide
            if is_wide:  # UTF-16, from Windows consoles: the readers look only for ASCII text
                data = data.replace(b"\0", b"")
            if b"\r" in data:
                data = data.replace(b"\r", b"\n")
            piece = rest + data
            end = piece.rfind(b"\n") + 1
            if not end and len(piece) < LONGEST_LINE_BYTES:
                rest = piece
                continue
            end = end or len(piece)
            piece, rest = piece[:end], piece[end:]
            yield piece, piece.split(b"\n")
        if rest:
            yield rest, [rest]

    def data(self) -> Iterator[bytes]:
        """The unpacked bytes, block by block."""
        with self.path.open("rb") as file:
            start = file.read(2)
            file.seek(0)
            if start == GZIP_MAGIC:
                yield from self._unpacked(file)
                return
            while data := file.read(PIECE_BYTES):
                yield data

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        """Unpacks with zlib, because Python's gzip reader loses the data before a cut.

        Several archives may follow each other in one file.
        """
        unpacker = zlib.decompressobj(wbits=31)
        try:
            while packed := unpacker.unconsumed_tail or unpacker.unused_data or file.read(PACKED_BYTES):
                if unpacker.eof:
                    unpacker = zlib.decompressobj(wbits=31)
                if data := unpacker.decompress(packed, PIECE_BYTES):
                    yield data
        except zlib.error:
            self.damage = GZIP_DAMAGE
        if not unpacker.eof:
            self.damage = GZIP_DAMAGE


def check_is_file(path: Path) -> None:
    """Refuses what is not a regular file: a pipe can be read only once, and a device may never end."""
    if not path.exists():
        raise UsageError("no such file or folder", path=path)
    if not path.is_file():
        raise UsageError("not a regular file", path=path, hint="write its content to a file first")


def head(path: Path, count: int = 4096) -> bytes:
    """The first bytes of a file, unpacked."""
    return next((data[:count] for data in Lines(path).data()), b"")
