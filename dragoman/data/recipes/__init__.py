"""Corpora by name: our own recipes, one module each, and every id of the mtdata index."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from dragoman.data.recipes import demo, multi30k_en_de, wmt16_en_de
from dragoman.data.recipes.recipe import Collected, Fetch, Recipe
from dragoman.errors import UsageError

__all__ = ["Collected", "Fetch", "Recipe", "find"]

_RECIPES = {module.RECIPE.name: module.RECIPE for module in (demo, wmt16_en_de, multi30k_en_de)}
_MTDATA_ID = re.compile(r"[^-\s/]+-[^-\s/]+-[^-\s/]+-[^-\s/]+-[^-\s/]+")  # group-name-version-source-target


def find(name: str, tell: Callable[[str], None] = lambda line: None) -> Recipe:
    """The recipe of this name. `tell` gets a line of text before anything that takes seconds."""
    if name in _RECIPES:
        return _RECIPES[name]
    nearest = difflib.get_close_matches(name, _RECIPES, n=3)
    if _MTDATA_ID.fullmatch(name) and not nearest:
        from dragoman.data.recipes import mtdata

        return mtdata.find(name, tell)
    raise UsageError(
        f"there is no recipe {name}",
        hint=f"did you mean {', '.join(nearest)}?"
        if nearest
        else f"choose {', '.join(_RECIPES)}, or an id of the mtdata index such as Statmt-europarl-7-deu-eng",
    )
