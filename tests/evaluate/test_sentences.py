"""The sentences worth a look."""

from dragoman.evaluate.heldout import HeldOut
from dragoman.evaluate.sentences import most_telling

HELD_OUT = HeldOut("text", ["a", "b", "c"], [["the old cat", "a red house", "two dogs"]])


def test_of_two_systems_those_that_differ_most_come_first_and_equals_not_at_all() -> None:
    first = ["the old cat", "a red hut", "two dogs"]
    second = ["xyz", "a red house", "two dogs"]
    found = most_telling([first, second], HELD_OUT, 5)
    assert [shown.line for shown in found] == [1, 2]
    assert found[0].translations == ["the old cat", "xyz"]
    assert (found[0].chrf[0], found[0].chrf[1]) == (100, 0)


def test_of_one_system_the_worst_come_first() -> None:
    found = most_telling([["the old cat", "red", "xyz"]], HELD_OUT, 2)
    assert [shown.line for shown in found] == [3, 2]
    assert found[0].reference == "two dogs"


def test_none_are_shown_if_none_are_asked_for() -> None:
    assert most_telling([["", "", ""]], HELD_OUT, 0) == []
