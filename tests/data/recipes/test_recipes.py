from __future__ import annotations

import pytest

from dragoman.data import recipes
from dragoman.errors import UsageError


def test_our_recipes_are_found_by_name() -> None:
    for name in ("demo", "wmt16-en-de", "multi30k-en-de"):
        recipe = recipes.find(name)
        assert (recipe.name, recipe.source_language, recipe.target_language) == (name, "en", "de")
        assert "\n" not in recipe.description


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match="no recipe wmt16-de-en") as caught:
        recipes.find("wmt16-de-en")
    assert "wmt16-en-de" in caught.value.hint


def test_a_name_like_nothing_gets_the_list() -> None:
    with pytest.raises(UsageError, match="no recipe opus") as caught:
        recipes.find("opus")
    assert "demo, wmt16-en-de, multi30k-en-de, or an id of the mtdata index" in caught.value.hint
