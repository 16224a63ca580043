"""Arrows point one way: what a part of the package may know of the others."""

import ast
from pathlib import Path

import pytest

import dragoman

PACKAGE = Path(dragoman.__file__).parent


def imported(part: str) -> dict[str, set[str]]:
    """The modules of dragoman that each file of a part imports, also inside functions."""
    found = {}
    for path in sorted((PACKAGE / part).rglob("*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.level == 0, f"{path}: a relative import hides its layer"
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        found[str(path.relative_to(PACKAGE))] = {name for name in names if name.startswith("dragoman")}
    return found


@pytest.mark.parametrize(
    ("part", "forbidden"),
    [
        ("data", ["train", "model", "sync", "launch", "decode", "measure", "cli"]),
        ("model", ["train", "sync", "launch", "decode", "measure", "cli"]),
        ("decode", ["train", "sync", "launch", "cli"]),
        ("sync", ["train", "launch", "decode", "measure", "cli"]),
        ("measure", ["train", "launch", "decode", "cli"]),
        ("launch", ["train", "decode", "measure", "cli"]),
        ("doctor", ["train", "decode", "cli"]),
        ("train", ["launch", "cli"]),
    ],
)
def test_a_layer_knows_nothing_of_those_above(part: str, forbidden: list[str]) -> None:
    files = imported(part)
    assert files
    for file, names in files.items():
        for name in forbidden:
            above = f"dragoman.{name}"
            assert not any(f"{found}.".startswith(f"{above}.") for found in names), f"{file} imports {above}"


def test_only_the_entry_point_imports_the_command_line() -> None:
    importers = {
        file
        for file, names in imported(".").items()
        if any(f"{name}.".startswith("dragoman.cli.") for name in names) and not file.startswith("cli/")
    }
    assert importers == {"__main__.py"}
