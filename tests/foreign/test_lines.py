from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.errors import DataError, UsageError
from dragoman.foreign.lines import LONGEST_LINE_BYTES, PIECE_BYTES, Lines
from dragoman.foreign.read import read
from tests.facts import lacking
from tests.foreign import logs


def lines_of(path: Path) -> list[bytes]:
    return [line for _, rows in Lines(path).pieces() for line in rows if line]


def test_lines_are_whole_whatever_the_pieces(tmp_path: Path) -> None:
    wanted = [b"line %d" % number for number in range(PIECE_BYTES // 5)]
    text = b"\n".join(wanted)
    assert lines_of(logs.written(tmp_path, text)) == wanted
    assert lines_of(logs.written(tmp_path, text, packed=True)) == wanted  # by content: the name says nothing
    members = gzip.compress(text[:1000]) + gzip.compress(text[1000:])
    assert lines_of(logs.written(tmp_path, members)) == wanted


def test_gzip_cut_short_gives_what_is_there(tmp_path: Path) -> None:
    packed = gzip.compress(logs.openseq2seq(4000).encode())
    path = logs.written(tmp_path, packed[: len(packed) * 9 // 10], "nohup.out.gz")
    gathered = read([path])
    assert gathered.start.last_step and gathered.start.last_step >= 2000
    (note,) = gathered.notes
    assert not lacking(note, path)


def test_a_line_without_end_takes_no_more_memory_than_a_piece(tmp_path: Path) -> None:
    path = logs.written(tmp_path, b"x" * (3 * PIECE_BYTES))
    assert max(len(piece) for piece, _ in Lines(path).pieces()) <= PIECE_BYTES + LONGEST_LINE_BYTES


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", os.urandom(200_000), b"\x1f\x8b", b"{", b"\x00" * 5000, b"hello\nError: not ours\n" * 99],
    ids=["empty", "newline", "random", "gzip magic", "brace", "zeros", "text"],
)
def test_garbage_is_called_that(tmp_path: Path, data: bytes) -> None:
    path = logs.written(tmp_path, data, "thing")
    with pytest.raises(DataError) as caught:
        read([path])
    assert not lacking(str(caught.value), path, "OpenSeq2Seq", "fairseq", "nmon"), "and what was looked for"


def before_each(prefix: str, text: str, after: str = "") -> str:
    return "".join(f"{prefix}{line}{after}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: before_each("[1,0]<stdout>:", text),
        lambda text: before_each("Fri Jun 26 15:36:43 2020[1,0]<stdout>:", text),
        lambda text: before_each("\x1b[32m", text, "\x1b[0m"),
        lambda text: before_each("2020-06-26T15:36:43.272081Z ", text),
        lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    ],
    ids=["tags", "tags and times", "colours", "a container's times", "UTF-16"],
)
def test_what_others_put_around_lines_is_taken_off(
    tmp_path: Path, wrap: Callable[[str], str | bytes]
) -> None:
    plain = read([logs.written(tmp_path, logs.openseq2seq(), "plain")])
    wrapped = read([logs.written(tmp_path, wrap(logs.openseq2seq()))])
    assert wrapped.intervals["seconds"][1:] == plain.intervals["seconds"][1:]
    assert {name: wrapped.facts[name] for name in plain.facts} == plain.facts
    assert wrapped.settings == plain.settings


def test_garbage_beside_a_log_is_noted_and_the_log_read(tmp_path: Path) -> None:
    garbage = logs.written(tmp_path, os.urandom(5000), "thing")
    gathered = read([garbage, logs.written(tmp_path, logs.openseq2seq())])
    assert gathered.start.last_step == 2000
    (note,) = gathered.notes
    assert not lacking(note, garbage)


def test_a_folder_gives_the_files_that_are_known_by_name(tmp_path: Path) -> None:
    logs.written(tmp_path, logs.openseq2seq())
    logs.written(tmp_path, b"not looked at", "notes.txt")
    assert list(read([tmp_path]).file_kinds) == [str(tmp_path / "nohup.out")]
    with pytest.raises(UsageError) as caught:
        read([tmp_path / "absent"])
    assert not lacking(str(caught.value), tmp_path / "absent")
