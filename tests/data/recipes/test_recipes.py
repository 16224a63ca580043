from __future__ import annotations

from dragoman.data import recipes
from dragoman.errors import UsageError
from tests.facts import lacking, raising


def test_our_recipes_are_found_by_name() -> None:
    for name in ("demo", "wmt16-en-de", "multi30k-en-de"):
        recipe = recipes.find(name)
        assert (recipe.name, recipe.source_language, recipe.target_language) == (name, "en", "de")
        assert "\n" not in recipe.description


def test_an_unknown_name_gets_the_nearest() -> None:
    with raising(UsageError, "wmt16-de-en") as caught:
        recipes.find("wmt16-de-en")
    assert not lacking(caught.value.hint, "wmt16-en-de")


def test_a_name_like_nothing_gets_the_list() -> None:
    with raising(UsageError, "opus") as caught:
        recipes.find("opus")
    assert not lacking(caught.value.hint, "demo", "wmt16-en-de", "multi30k-en-de", "mtdata")
