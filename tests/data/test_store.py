from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.store import DataSet, Part, PartWriter, fingerprint
from dragoman.errors import DataError, DataSetError, UsageError
from tests.facts import lacking, raising

row = st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=5)
pairs = st.lists(st.tuples(row, row), min_size=1, max_size=12)


def write(folder: Path, chunks: list[list[tuple[list[int], list[int]]]], kind: type = np.uint16) -> Part:
    with PartWriter(folder) as writer:
        for chunk in chunks:
            sides = ([pair[side] for pair in chunk] for side in (0, 1))
            writer.add(
                tuple(
                    (np.array(sum(side, []), dtype=kind), np.array([len(r) for r in side], dtype=np.uint32))
                    for side in sides
                )
            )
    return Part(folder, kind)


@given(st.data(), pairs)
def test_take_equals_a_plain_loop(tmp_path_factory, data: st.DataObject, pairs) -> None:
    cut = data.draw(st.integers(0, len(pairs)))
    part = write(tmp_path_factory.getbasetemp() / "part", [pairs[:cut], [], pairs[cut:]])
    assert len(part) == len(pairs)
    rows = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=10))
    for number, side in enumerate((part.source, part.target)):
        tokens, lengths = side.take(np.array(rows, dtype=np.int64))
        assert tokens.tolist() == [token for row in rows for token in pairs[row][number]]
        assert lengths.tolist() == [len(pairs[row][number]) for row in rows]
        assert tokens.dtype == np.int64


def test_ids_beyond_16_bits_are_kept_in_32(tmp_path: Path) -> None:
    part = write(tmp_path, [[([70_000, 1], [2])]], np.uint32)
    assert part.source.take(np.array([0]))[0].tolist() == [70_000, 1]


def test_a_small_vocabulary_takes_two_bytes_per_token(small: DataSet) -> None:
    facts = small.card.parts["train"]
    assert small.card.files["train/source.tokens"] == 2 * facts.source.tokens
    assert small.card.files["train/target.offsets"] == 8 * (facts.pairs + 1)


def test_what_was_encoded_reads_back_as_text(small: DataSet, sentences) -> None:
    for part, expected in (("train", sentences(3_000)), ("dev", sentences(40, seed=40))):
        for number, side in enumerate((small.parts[part].source, small.parts[part].target)):
            tokens, lengths = side.take(np.arange(len(expected)))
            rows = np.split(tokens, np.cumsum(lengths)[:-1])
            assert small.tokenizer.decode(rows) == [pair[number] for pair in expected]


def test_held_out_text_is_kept_for_the_scores(small: DataSet, sentences) -> None:
    assert small.parts["test"].text("source") == [source for source, _ in sentences(30, seed=30)]
    assert small.parts["test"].text("target") == [target for _, target in sentences(30, seed=30)]


@pytest.mark.parametrize("name", ["train/source.tokens", "dev/target.offsets", "test/source.txt"])
def test_a_copy_cut_short_or_incomplete_is_recognised_on_opening(
    name: str, small: DataSet, tmp_path: Path
) -> None:
    copy = shutil.copytree(small.path, tmp_path / "copy")
    with open(copy / name, "r+b") as file:
        file.truncate(small.card.files[name] - 1)
    size = small.card.files[name]
    with raising(DataError, copy / name, f"{size - 1:,}", f"{size:,}"):
        DataSet(copy)
    (copy / name).unlink()
    with raising(DataError, copy / name, f"{size:,}") as caught:
        DataSet(copy)
    assert lacking(str(caught.value), f"{size - 1:,}")


def test_a_folder_without_a_card_is_no_data_set(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UsageError) as caught:
            DataSet(path)
        assert caught.value.path == str(path)


def test_the_fingerprint_is_that_of_the_files_and_changes_with_a_byte(small: DataSet, tmp_path: Path) -> None:
    copy = shutil.copytree(small.path, tmp_path / "copy")
    names, corpora = list(small.card.files), small.card.corpora
    assert fingerprint(copy, names, corpora) == small.card.fingerprint
    heavier = [corpora[0].model_copy(update={"weight": 2.0})]
    assert fingerprint(copy, names, heavier) != small.card.fingerprint
    with open(copy / "train" / "target.tokens", "r+b") as file:
        file.write(bytes([file.read(1)[0] ^ 1]))
    assert fingerprint(copy, names, corpora) != small.card.fingerprint


def _written(path: Path, place: int, value: int, kind: str) -> None:
    numbers = np.fromfile(path, dtype=kind)
    numbers[place] = value
    numbers.tofile(path)


@pytest.mark.parametrize(
    ("name", "place", "value", "kind"),
    [
        ("train/source.tokens", 17, 200, "<u2"),  # the vocabulary has 200 pieces: 0 to 199
        ("dev/target.tokens", -1, 2**16 - 1, "<u2"),
        ("train/target.offsets", 0, 1, "<u8"),
        ("train/target.offsets", -1, 1, "<u8"),
        ("train/source.offsets", 1000, 0, "<u8"),
        ("test/source.offsets", 5, 2**63, "<u8"),
    ],
)
def test_numbers_that_no_batch_can_use_are_found_before_a_training(
    name: str, place: int, value: int, kind: str, small: DataSet, tmp_path: Path
) -> None:
    small.check_contents()
    copy = shutil.copytree(small.path, tmp_path / "copy")
    _written(copy / name, place, value, kind)
    with pytest.raises(DataSetError) as caught:
        DataSet(copy).check_contents()
    assert caught.value.path == str(copy / name) and caught.value.hint


@pytest.mark.parametrize("content", [b"\xff" * 30, b"\n" * 29])
def test_held_out_text_that_does_not_fit_its_pairs_is_refused(
    content: bytes, small: DataSet, tmp_path: Path
) -> None:
    copy = shutil.copytree(small.path, tmp_path / "copy")
    data = DataSet(copy)
    (copy / "test" / "source.txt").write_bytes(content)
    with pytest.raises(DataSetError, match=r"source\.txt"):
        data.parts["test"].text("source")
