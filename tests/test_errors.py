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
