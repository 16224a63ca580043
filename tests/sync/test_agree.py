"""Decisions of two real processes."""

import re

import pytest

from dragoman.sync import world as worlds
from dragoman.sync.agree import any_rank, decided_by_main, done_by_main
from tests import ranks
from tests.ranks import Ended

# An error of a rank that lost another one: which one is not known, and the cause is in torch's words.
GONE = re.compile(r"error: \D*\brank\b\D* \(.*\)\n  try: ")


def two_ranks(what: str) -> Ended:
    return ranks.run("tests.sync.ranks", [what], 2)


def test_what_one_rank_says_all_hear() -> None:
    result = two_ranks("all_collectives")
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["rank 0 is through", "rank 1 is through"]


def test_what_rank_0_cannot_do_stops_all_and_is_reported_once() -> None:
    result = two_ranks("failing_main")
    assert result.returncode == 1
    ours = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert ours == ["error: rank 0 found something"]


def test_a_rank_that_is_gone_is_explained_to_the_others() -> None:
    result = two_ranks("leaving")
    assert result.returncode == 1
    assert GONE.search(result.stderr)


def test_a_world_of_one_agrees_with_itself(world_of_one: None) -> None:
    with worlds.join(60) as world:
        assert (world.rank, world.size, world.is_main) == (0, 1, True)
        assert any_rank(world, True) and not any_rank(world, False)
        assert decided_by_main(world, "yes") == "yes"
        assert done_by_main(world, lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            done_by_main(world, lambda: 1 // 0)
