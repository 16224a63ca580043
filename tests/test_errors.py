from __future__ import annotations

import pickle

import pytest

from dragoman import errors


def test_an_error_says_where_what_and_what_to_try() -> None:
    error = errors.DataError("is empty", path="a.en", line=7, hint="more text")
    assert str(error) == "a.en:7: is empty\n  try: more text"
    assert str(errors.DataError("is empty", path="a.en")) == "a.en: is empty"
    assert str(errors.DataError("is empty")) == "is empty"


@pytest.mark.parametrize(
    ("kind", "code"),
    [(errors.DragomanError, 1), (errors.DataError, 1), (errors.DownloadError, 1), (errors.ConfigError, 2)],
)
def test_wrong_use_exits_with_2_and_failures_with_1(kind: type[errors.DragomanError], code: int) -> None:
    assert kind("what").exit_code == code


def test_an_error_of_a_worker_process_arrives_whole() -> None:
    error = errors.UsageError("wrong", path="a.en", line=7, hint="right")
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is errors.UsageError
    assert (str(arrived), arrived.path, arrived.line, arrived.hint) == (str(error), "a.en", 7, "right")


def test_whatever_goes_wrong_while_a_file_is_read_names_the_file() -> None:
    for wrong in (
        KeyError("steps"),
        ValueError("two\nlines"),
        RecursionError(),
        MemoryError(),
        AssertionError(),
    ):
        with (
            pytest.raises(errors.RecordsError) as caught,
            errors.reading("a/records.db", errors.RecordsError),
        ):
            raise wrong
        assert caught.value.path == "a/records.db"
        assert "\n" not in caught.value.what


def test_reading_leaves_our_own_errors_as_they_are_and_gives_the_systems_a_place() -> None:
    with pytest.raises(errors.UsageError), errors.reading("a"):
        raise errors.UsageError("wrong")
    with pytest.raises(OSError) as caught, errors.reading("a"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == "a"
