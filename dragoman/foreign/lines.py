"""The lines of a file of any size: gzip or not by content, in pieces, whatever bytes are in it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dragoman.errors import UsageError

PIECE_BYTES = 1 << 22
PACKED_BYTES = 1 << 15  # few: zlib copies the rest of them for every archive that ends in them
LONGEST_LINE_BYTES = 1 << 20  # what is longer is no line of a log: it is cut
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
GZIP_MAGIC = b"\x1f\x8b"
GZIP_DAMAGE = "its gzip data is cut short or damaged; read up to there"


class Lines:
    """Read once, piece by piece: memory stays flat. `damage` says afterwards where reading had to end."""

    def __init__(self, path: Path):
        self.path = path
        self.damage: str | None = None

    def pieces(self) -> Iterator[tuple[bytes, list[bytes]]]:
        """Some megabytes at a time, and the lines in them. Carriage returns end lines too (progress bars)."""
        rest, is_wide = b"", None
        for data in self.data():
            is_wide = data.startswith(UTF16_MARKS) if is_wide is None else is_wide
            if is_wide:  # Windows' consoles write so; what a log is read for is in ASCII
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
        """The bytes, unpacked, as they come."""
        with self.path.open("rb") as file:
            start = file.read(2)
            file.seek(0)
            if start == GZIP_MAGIC:
                yield from self._unpacked(file)
                return
            while data := file.read(PIECE_BYTES):
                yield data

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        """By hand: Python's reader loses what came before a cut. Several archives may follow each other."""
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
    """A pipe can be read only once, and a device may never end."""
    if not path.exists():
        raise UsageError("no such file or folder", path=path)
    if not path.is_file():
        raise UsageError("not a file", path=path, hint="write what it holds to a file first")


def head(path: Path, count: int = 4096) -> bytes:
    """The first bytes, unpacked."""
    return next((data[:count] for data in Lines(path).data()), b"")
