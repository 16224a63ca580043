from collections import Counter
from pathlib import Path

import pytest

from dragoman.data.formats import tsv
from dragoman.data.formats.pair import RawPair
from dragoman.errors import DataError
from tests.facts import lacking


def test_the_first_two_columns_are_the_pair(tmp_path: Path) -> None:
    path = tmp_path / "text.tsv"
    path.write_bytes(b"one\teins\t0.9\tx\ntwo\t\r\n")
    assert list(tsv.read(path, "en", "de", Counter())) == [
        RawPair(b"one", b"eins", 1),
        RawPair(b"two", b"", 2),
    ]


@pytest.mark.parametrize("row", [b"only one", b""])
def test_a_line_without_a_tab_is_an_error_that_shows_it(tmp_path: Path, row: bytes) -> None:
    path = tmp_path / "text.tsv"
    path.write_bytes(b"one\teins\n" + row + b"\n")
    with pytest.raises(DataError) as caught:
        list(tsv.read(path, "en", "de", Counter()))
    assert caught.value.line == 2
    assert f"'{row.decode()}'" in caught.value.what
    assert not lacking(caught.value.what, "en", "de")
