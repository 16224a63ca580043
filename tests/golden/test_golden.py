"""What is said is what the golden files say, until somebody means it otherwise."""

from __future__ import annotations

import difflib

import pytest

from tests.golden.pages import FOLDER, PAGES, rendered


@pytest.mark.parametrize("name", PAGES)
def test_a_golden_file_is_what_is_rendered(name: str) -> None:
    path = FOLDER / name
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = list(difflib.unified_diff(kept.splitlines(), rendered(name).splitlines(), "kept", "now", n=1))
    assert not changed, "\n".join(["if this is right: make golden", *changed[:200]])


def test_every_golden_file_has_a_page() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.suffix in (".txt", ".md")} == set(PAGES)
