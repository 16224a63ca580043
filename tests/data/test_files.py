import gzip
import lzma
import os
import random
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import compression, files
from dragoman.errors import DataError
from tests.facts import raising

COMPRESS = {
    "plain": lambda data: data,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "text"


@pytest.mark.parametrize("compression", COMPRESS)
@given(sentences=st.lists(st.text().map(lambda text: text.replace("\n", "").rstrip("\r").encode())))
def test_lines_come_back_as_written(compression: str, path: Path, sentences: list[bytes]) -> None:
    content = b"".join(line + b"\n" for line in sentences)
    if content.startswith(b"\xef\xbb\xbf"):
        return
    path.write_bytes(COMPRESS[compression](content))
    assert list(files.lines(path)) == sentences


@given(st.binary(max_size=300), st.integers(1, 9))
def test_lines_do_not_depend_on_how_the_file_is_cut_into_blocks(
    path: Path, content: bytes, size: int
) -> None:
    content = b"ab\r\n" + content.replace(b"x", b"\r\n")
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        whole = list(files.lines(path))
        patch.setattr(compression, "BLOCK_BYTES", size)
        assert list(files.lines(path)) == whole
    rows = content.split(b"\n")
    if not rows[-1]:
        rows.pop()
    assert whole == [row.removesuffix(b"\r") for row in rows]


def test_only_line_feeds_end_a_line(path: Path) -> None:
    inside = "a\u2028b\u0085c\rd\x0be\x0cf\x1cg".encode()
    path.write_bytes(inside + b"\r\n" + inside + b"\r\r\n" + inside + b"\r")
    assert list(files.lines(path)) == [inside, inside + b"\r", inside]


@pytest.mark.parametrize("compression", COMPRESS)
def test_a_byte_order_mark_is_removed_once(compression: str, path: Path) -> None:
    path.write_bytes(COMPRESS[compression]("\ufeff\ufeffone\n\ufefftwo".encode()))
    assert list(files.lines(path)) == ["\ufeffone".encode(), "\ufefftwo".encode()]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_lines(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert list(files.lines(path)) == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_encodings_are_refused_with_advice(path: Path, encoding: str) -> None:
    path.write_bytes("\ufeffone\ntwo\n".encode(encoding))
    with pytest.raises(DataError, match="UTF-16") as caught:
        list(files.lines(path))
    assert "iconv" in caught.value.hint


@pytest.mark.parametrize("compression", ["gz", "xz", "zst"])
def test_compression_is_recognised_under_a_wrong_name(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "train.en.gz"
    path.write_bytes(COMPRESS[compression](b"one\ntwo\n"))
    assert list(files.lines(path)) == [b"one", b"two"]
    path.write_bytes(b"one\ntwo\n")
    assert list(files.lines(path)) == [b"one", b"two"]


@pytest.mark.parametrize("compression", ["gz", "xz", "zst"])
def test_all_members_of_a_concatenated_file_are_read(compression: str, path: Path) -> None:
    path.write_bytes(b"".join(COMPRESS[compression](b"line %d\n" % number) for number in range(20)))
    assert list(files.lines(path)) == [b"line %d" % number for number in range(20)]


@pytest.mark.parametrize("compression", ["gz", "xz", "zst"])
def test_a_truncated_file_is_an_error_that_gives_the_line_reached(compression: str, path: Path) -> None:
    digits = random.Random(1)
    content = b"".join(b"%030d\n" % digits.getrandbits(90) for _ in range(50_000))
    compressed = COMPRESS[compression](content)
    path.write_bytes(compressed[: len(compressed) // 2])
    with pytest.raises(DataError) as caught:
        list(files.lines(path))
    assert caught.value.line is not None and 10_000 < caught.value.line < 40_000
    assert caught.value.path == str(path) and caught.value.hint


@pytest.mark.parametrize("compression", ["gz", "xz", "zst"])
@given(data=st.data())
def test_damage_is_never_anything_but_a_data_error(compression: str, path: Path, data: st.DataObject) -> None:
    content = bytearray(COMPRESS[compression](b"some text\n" * 20))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place : place + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    path.write_bytes(content)
    try:
        list(files.lines(path))
    except DataError as error:
        assert error.path == str(path)


def test_a_line_without_end_is_refused_before_it_fills_the_memory(path: Path) -> None:
    path.write_bytes(gzip.compress(b"one\n" + bytes(files.LONGEST_LINE_BYTES * 2)))
    with raising(DataError, f"{path}:2", f"{files.LONGEST_LINE_BYTES:,}"):
        list(files.lines(path))


def test_what_is_no_readable_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = set()
    for path in (tmp_path / "missing", tmp_path / ("long" * 200), tmp_path, tmp_path / "pipe"):
        with pytest.raises(DataError) as caught:
            list(files.lines(path))
        assert caught.value.path == str(path)
        found.add(caught.value.what)
    assert len(found) == 3, "missing, a folder, a pipe"


def test_a_file_closed_to_us_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "closed"
    path.write_bytes(b"one\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # root may read everything, so chmod would prove nothing
    with raising(DataError, path, f"chmod +r {path}"):
        list(files.lines(path))
