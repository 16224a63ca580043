"""Where held-out text comes from."""

import gzip
from pathlib import Path

import pytest

from dragoman.data.store import DataSet
from dragoman.errors import DataError, UsageError
from dragoman.evaluate import choice, heldout
from dragoman.evaluate.choice import HeldOutOptions
from tests.facts import raising
from tests.train.runs import Task

NO_RUN = Path("theirs.de")


def test_a_part_gives_its_text_as_it_was_before_cleaning(task: Task) -> None:
    found = choice.held_out(HeldOutOptions(data=task.data, part="dev"), NO_RUN)
    part = DataSet(task.data).parts["dev"]
    assert (found.sources, found.references) == (part.text("source"), [part.text("target")])
    assert found.languages == ("en", "de")


@pytest.mark.parametrize("part", ["train", "test", "nonsense"])
def test_a_part_that_is_not_held_out_is_wrong_use(task: Task, part: str) -> None:
    with raising(UsageError, f"{task.data}:", part, "--part dev"):
        heldout.of_part(DataSet(task.data), part)


def test_two_files_are_read_side_by_side_compressed_or_not(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de.gz").write_bytes(gzip.compress("eins\nzwölf\n".encode()))
    asked = HeldOutOptions(source=tmp_path / "a.en", reference=tmp_path / "a.de.gz", languages="en-de")
    found = choice.held_out(asked, NO_RUN)
    assert (found.sources, found.references) == (["one", "two"], [["eins", "zwölf"]])
    assert found.languages == ("en", "de")


def test_files_of_unequal_length_broken_or_empty_are_refused_with_their_place(tmp_path: Path) -> None:
    two, one, broken, empty = (tmp_path / name for name in ("two", "one", "broken", "empty"))
    two.write_text("a\nb\n")
    one.write_text("a\n")
    broken.write_bytes(b"a\n\xff\n")
    empty.write_text("")
    with raising(DataError, "two", 2, "one", 1):
        heldout.of_files(two, one, None)
    with raising(DataError, f"{broken}:2", "UTF-8"):
        heldout.of_files(two, broken, None)
    with raising(DataError, "empty"):
        heldout.of_files(empty, empty, None)


@pytest.mark.parametrize(
    "asked",
    [
        HeldOutOptions(),
        HeldOutOptions(data=Path("d"), test_set="wmt14"),
        HeldOutOptions(source=Path("s")),
        HeldOutOptions(test_set="wmt14"),
        HeldOutOptions(test_set="wmt14", languages="german"),
        HeldOutOptions(data=Path("d"), source=Path("s"), reference=Path("r")),
    ],
)
def test_what_to_translate_must_be_said_once_and_whole(asked: HeldOutOptions) -> None:
    with pytest.raises(UsageError):
        choice.held_out(asked, NO_RUN)
