"""What is said is what the golden files say, until somebody means it otherwise."""

from __future__ import annotations

import difflib

import pytest

from tests.golden import readme
from tests.golden.pages import FOLDER, PAGES, rendered


@pytest.mark.parametrize("name", PAGES)
def test_a_golden_file_is_what_is_rendered(name: str) -> None:
    path = FOLDER / name
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = list(difflib.unified_diff(kept.splitlines(), rendered(name).splitlines(), "kept", "now", n=1))
    assert not changed, "\n".join(["if this is right: make golden", *changed[:200]])


def test_every_golden_file_has_a_page() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.suffix in (".txt", ".md")} == set(PAGES)


def test_the_readme_quotes_the_demos_report_as_it_comes_out() -> None:
    kept = readme.README.read_text(encoding="utf-8")
    now = readme.with_demo_report(kept)
    changed = list(difflib.unified_diff(kept.splitlines(), now.splitlines(), "kept", "now", n=1))
    assert not changed, "\n".join(["if this is right: make golden", *changed[:200]])


def test_the_readme_quotes_what_diagnose_answers() -> None:
    words, quoted = readme.quoted_diagnosis(readme.README.read_text(encoding="utf-8"))
    answer = readme.diagnosis(words)
    assert len(quoted) > 5
    assert [piece for piece in quoted if " ".join(piece.split()) not in answer] == []
