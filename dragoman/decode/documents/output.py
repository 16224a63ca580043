"""Output files, which appear only when complete and are compressed according to their suffix."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from dragoman import atomic
from dragoman.decode.documents.document import OutputWriter


@contextmanager
def opened(path: Path) -> Iterator[OutputWriter]:
    """A file to write to; it takes its name only if the block ends without an error."""
    with atomic.replacing(path) as file, _compressing(file, path.suffix.lower()) as stream:
        yield stream


@contextmanager
def _compressing(file: BinaryIO, suffix: str) -> Iterator[OutputWriter]:
    if suffix == ".gz":
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as stream:
            yield stream
    elif suffix == ".bz2":
        with bz2.BZ2File(file, "wb") as stream:
            yield stream
    elif suffix == ".xz":
        with lzma.LZMAFile(file, "wb") as stream:
            yield stream
    elif suffix == ".zst":
        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as stream:
            yield cast(OutputWriter, stream)
    else:
        yield file
