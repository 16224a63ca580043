"""Every stream of a compressed file is read, or the file is refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from dragoman.data import compression, files
from dragoman.errors import DataError

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
_DIGITS = random.Random(1)
FIRST, SECOND = (b"".join(b"%030d\n" % _DIGITS.getrandbits(90) for _ in range(60)) for _ in range(2))


def damaged(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


WHOLE: dict[str, tuple[Callable[[bytes, bytes], bytes], int]] = {
    "one stream": (lambda a, b: a, 60),
    "two streams": (lambda a, b: a + b, 120),
    "zeros behind": (lambda a, b: a + bytes(512), 60),
    "zeros between": (lambda a, b: a + bytes(8) + b, 120),
    "more zeros than are read at once": (lambda a, b: a + bytes(2**17) + b, 120),
}
BAD: dict[str, Callable[[bytes, bytes], bytes]] = {
    "damaged in the first": lambda a, b: damaged(a, len(a) // 2) + b,
    "damaged in the second": lambda a, b: a + damaged(b, len(b) // 2),
    "damaged at the start of the second": lambda a, b: a + damaged(b, 1),
    "cut off in the first": lambda a, b: a[:-20],
    "cut off by a byte": lambda a, b: a[:-1],
    "cut off in the second": lambda a, b: a + b[:-20],
    "cut off at the start of the second": lambda a, b: a + b[:3],
    "garbage behind": lambda a, b: a + b"garbage",
    "a byte behind": lambda a, b: a + b"g",
    "text behind": lambda a, b: a + SECOND,
    "garbage behind zeros": lambda a, b: a + bytes(8) + b"garbage",
}


@pytest.mark.parametrize("case", WHOLE)
@pytest.mark.parametrize("name", COMPRESS)
def test_every_stream_is_read(name: str, case: str, tmp_path: Path) -> None:
    make, expected = WHOLE[case]
    (tmp_path / "text").write_bytes(make(*map(COMPRESS[name], (FIRST, SECOND))))
    content = b"".join(files.blocks(tmp_path / "text"))
    assert content == (FIRST + SECOND)[: len(content)]
    assert content.count(b"\n") == expected


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("name", COMPRESS)
def test_damage_in_any_stream_and_garbage_are_errors(name: str, case: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(BAD[case](*map(COMPRESS[name], (FIRST, SECOND))))
    with pytest.raises(DataError) as caught:
        list(files.lines(path))
    assert isinstance(caught.value.__cause__, compression.Damaged | OSError)
    assert caught.value.path == str(path) and caught.value.line is not None and caught.value.hint


@pytest.mark.parametrize("name", COMPRESS)
def test_what_swells_comes_in_blocks(name: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(COMPRESS[name](bytes(2**25)))
    sizes = list(map(len, files.blocks(tmp_path / "text")))
    assert sum(sizes) == 2**25 and max(sizes) == compression.BLOCK_BYTES


def test_a_block_that_is_full_to_the_byte_loses_nothing(tmp_path: Path) -> None:
    for surplus in (-1, 0, 1):
        content = bytes(compression.BLOCK_BYTES + surplus)
        (tmp_path / "text").write_bytes(gzip.compress(content))
        assert b"".join(files.blocks(tmp_path / "text")) == content


def test_an_xz_file_that_asks_for_gigabytes_of_dictionary_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2 * compression.MOST_DICTIONARY_BYTES}]
    (tmp_path / "text").write_bytes(lzma.compress(FIRST, filters=filters))
    with pytest.raises(DataError, match="[Mm]emory"):
        list(files.lines(tmp_path / "text"))


def test_a_text_that_begins_like_bzip2_is_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"BZhang wrote this.\n")
    assert list(files.lines(tmp_path / "text")) == [b"BZhang wrote this."]
