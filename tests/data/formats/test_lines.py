from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.formats import lines
from dragoman.data.formats.pair import RawPair
from dragoman.errors import DataError, DragomanError
from tests.facts import lacking


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("lines")
    return folder / "text.en", folder / "text.de"


def test_line_n_is_paired_with_line_n(paths: tuple[Path, Path]) -> None:
    paths[0].write_bytes(b"one\n\nthree\xff\r\n")
    paths[1].write_bytes(b"eins\nzwei\ndrei")
    assert list(lines.read(*paths)) == [
        RawPair(b"one", b"eins", 1),
        RawPair(b"", b"zwei", 2),
        RawPair(b"three\xff", b"drei", 3),
    ]


@pytest.mark.parametrize("counts", [(12, 11), (11, 12)])
def test_unequal_numbers_of_lines_are_an_error_with_both_counts(
    paths: tuple[Path, Path], counts: tuple[int, int]
) -> None:
    for path, count in zip(paths, counts, strict=True):
        path.write_bytes(b"some line\n" * count)
    with pytest.raises(DataError) as caught:
        list(lines.read(*paths))
    assert not lacking(str(caught.value), "text.en", counts[0], "text.de", counts[1])


@given(st.binary(), st.binary())
def test_arbitrary_bytes_give_pairs_or_our_own_error(
    paths: tuple[Path, Path], source: bytes, target: bytes
) -> None:
    paths[0].write_bytes(source)
    paths[1].write_bytes(target)
    try:
        pairs = list(lines.read(*paths))
    except DragomanError:
        return
    assert [pair.line for pair in pairs] == list(range(1, len(pairs) + 1))
