"""Decompresses gz, bz2, xz and zst files completely, or raises.

A compressed file may hold several streams one after the other (`cat a.gz b.gz`, pigz, pxz, pzstd), with zeros
between or after them. Python's own xz and bz2 readers take anything else after the first stream for the end
of the file, and zstandard's takes a truncated file for a complete one. So the streams are handled here.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import Protocol

import zstandard

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
BLOCK_BYTES = 2**20
# An xz stream allocates its whole dictionary at the start: 65 MiB after xz -9, up to 4 GiB in a hostile file.
# zstandard limits itself to 128 MiB.
MOST_DICTIONARY_BYTES = 256 * 2**20
_INPUT_BYTES = 2**16
# zstandard does not limit its output per call, and 4 bytes can stand for 128 KiB: this gives 16 MiB at most.
_ZSTD_INPUT_BYTES = 512


class Damaged(Exception):
    """From here on the content is invalid, or it ends too early."""


def kind(head: bytes) -> str | None:
    """The compression of a file that begins with these bytes (ten are enough), or None if it has none.

    The name does not decide: browsers and mirrors unpack .gz files and keep the name.
    """
    return next((name for name, (first, _) in _KINDS.items() if head.startswith(first)), None)


def blocks(file: BufferedReader) -> Iterator[bytes]:
    """The decompressed content in blocks of at most a megabyte. Raises Damaged after the last good block."""
    name = kind(file.peek(10))
    if name is None:
        while block := file.read1(BLOCK_BYTES):
            yield block
        return
    try:
        yield from _streams(file, _KINDS[name][1])
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise Damaged(str(error)) from None
    except OSError as error:
        if error.errno is None:  # bz2 reports bad content like this; the disk's errors have a number
            raise Damaged(str(error)) from None
        raise


class _Stream(Protocol):
    """A decompressor of one stream, with the interface of bz2's and lzma's."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


def _streams(file: BufferedReader, begin: Callable[[], _Stream]) -> Iterator[bytes]:
    data = b""
    while data := _skip_zeros(data, file):
        stream = begin()
        while True:
            if block := stream.decompress(data, BLOCK_BYTES):
                yield block
            if stream.eof:
                break
            data = file.read(_INPUT_BYTES) if stream.needs_input else b""
            if stream.needs_input and not data:
                raise EOFError("the last stream has no end")
        data = stream.unused_data


def _skip_zeros(data: bytes, file: BufferedReader) -> bytes:
    """The next bytes that are not padding: zeros fill up a tape block, or an xz file."""
    data = data.lstrip(b"\0")
    while not data and (more := file.read(_INPUT_BYTES)):
        data = more.lstrip(b"\0")
    return data


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)  # 31: gzip's header and checksum
        self.needs_input = True

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        block = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        # After a full block more output may be pending, though all input was consumed.
        self.needs_input = not self._inner.unconsumed_tail and len(block) < max_length
        return block

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor().decompressobj()
        self._input = self._output = b""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        self._input += data
        while self._input and len(self._output) < max_length and not self._inner.eof:
            piece, self._input = self._input[:_ZSTD_INPUT_BYTES], self._input[_ZSTD_INPUT_BYTES:]
            self._output += self._inner.decompress(piece)
        block, self._output = self._output[:max_length], self._output[max_length:]
        return block

    @property
    def needs_input(self) -> bool:
        return not self._input and not self._output

    @property
    def eof(self) -> bool:
        return self._inner.eof and not self._output

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data + self._input


def _xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_DICTIONARY_BYTES)


# Includes the start of a block or of the end marker, because a text may well begin with BZh.
_BZIP2_STARTS = tuple(
    b"BZh%d%b" % (level, next_bytes)
    for level in range(1, 10)
    for next_bytes in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")
)
_ZSTD_STARTS = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")  # a frame, and pzstd's skippable frame
_KINDS: dict[str, tuple[bytes | tuple[bytes, ...], Callable[[], _Stream]]] = {
    "gzip": (b"\x1f\x8b", _Gzip),
    "bzip2": (_BZIP2_STARTS, bz2.BZ2Decompressor),
    "xz": (b"\xfd7zXZ\x00", _xz),
    "zstd": (_ZSTD_STARTS, _Zstd),
}
