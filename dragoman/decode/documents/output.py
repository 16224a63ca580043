"""Where translations go: a file that appears whole, compressed as its name says."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from dragoman import atomic
from dragoman.decode.documents.document import Writer


@contextmanager
def opened(path: Path) -> Iterator[Writer]:
    """To write to; takes its name when the block ends well."""
    unfinished = path.with_name(path.name + atomic.UNFINISHED)
    try:
        with ExitStack() as stack:
            file = stack.enter_context(open(unfinished, "wb"))
            yield stack.enter_context(_compressing(file, path.suffix.lower()))
        atomic.take_name(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def _compressing(file: BinaryIO, suffix: str) -> Iterator[Writer]:
    if suffix == ".gz":
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as stream:
            yield stream
    elif suffix == ".xz":
        with lzma.LZMAFile(file, "wb") as stream:
            yield stream
    elif suffix == ".zst":
        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as stream:
            yield cast(Writer, stream)
    else:
        yield file
