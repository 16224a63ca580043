"""Tests assert facts, never our sentences: those are in tests/golden, which one command rewrites."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import dragoman

PACKAGE, TESTS = Path(dragoman.__file__).parent, Path(__file__).parent
WORDS = re.compile(r"[a-z]+(?: [a-z]+){4,}")  # five words in a row are a phrase; fewer may be a name
NOT_OURS = {"demo_corpus", "foreign"}  # their sentences are data: a corpus, and other programs' messages
NOT_HELD = {"golden"}


def sources(folder: Path, without: set[str]) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        if not without & set(path.relative_to(folder).parts):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def texts(node: ast.AST) -> Iterator[ast.Constant]:
    """The strings in this piece of code, docstrings apart."""
    prose = {part.value for part in ast.walk(node) if isinstance(part, ast.Expr)}
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and part not in prose:
            yield part


def asserted(tree: ast.Module) -> Iterator[ast.AST]:
    """What is compared in an assert (its message apart), and patterns that an error is matched against."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.keyword) and node.arg == "match":
            yield node.value


def test_no_assert_holds_a_phrase_of_ours() -> None:
    ours = "\n".join(text.value for _, tree in sources(PACKAGE, NOT_OURS) for text in texts(tree))
    phrases = [
        f"{path.relative_to(TESTS)}:{text.lineno}: {phrase}"
        for path, tree in sources(TESTS, NOT_HELD)
        for node in asserted(tree)
        for text in texts(node)
        for phrase in WORDS.findall(text.value)
        if phrase in ours
    ]
    assert phrases == []
