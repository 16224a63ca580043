"""Dependencies point one way: the parts of the package stand in one order; each knows those before it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dragoman

PACKAGE = Path(dragoman.__file__).parent

# Files and folders of the package, the lowest first. A new one goes after everything it needs; there are no
# exceptions. docs/architecture.md says what each is for.
ORDER = [
    *("errors", "bounds", "content", "figures", "format_units", "orphans", "atomic", "temporary", "terminal"),
    *("progress", "rundir", "kinds", "leave", "faults", "stacks"),
    "cost",
    "exchange_way",
    "config",
    "schedule",
    "demo_corpus",
    "data",
    "model",
    "sync",
    "measure",
    "checkpoint",
    "decode",
    "explain",
    "plan",
    "report",
    "launch",
    "doctor",
    "train",
    "export",
    "engines",
    *("evaluate", "serve", "foreign"),
    "demo",
    "cli",
    "__main__",
]
# Of `explain`: findings and their questions, comparisons of runs, and what is drawn beside the findings.
OFFERED_TO_REPORTS = (
    *("finding", "questions", "details"),
    *("compare", "compare_facts", "compare_quality", "compare_speed"),
)
# A module named in text is imported or started later: `python -m`, the agent's tables, files of a package.
NAMED = re.compile(r"\bdragoman((?:\.\w+)+)")


def part_of(path: Path) -> str:
    """The file or folder of the package that a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def uses(path: Path) -> Iterator[str]:
    """The parts that a file imports, also inside functions, or names in text that is not a docstring."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its part"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            names = [match[0] for match in NAMED.finditer(node.value)]
        for name in names:
            above, _, below = name.partition(".")
            if above == "dragoman" and (part := below.split(".")[0]) in ORDER:
                yield part


def test_the_order_names_every_part() -> None:
    parts = {part_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"}
    assert parts == set(ORDER)
    assert len(ORDER) == len(set(ORDER))


def test_every_part_knows_only_those_before_it() -> None:
    places = {part: place for place, part in enumerate(ORDER)}
    wrong = [
        f"{path.relative_to(PACKAGE)} knows {part}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if (own := part_of(path)) != "__init__"
        for part in uses(path)
        if part != own and places[part] > places[own]
    ]
    assert wrong == []


MAP = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_map_names_the_parts_in_their_order() -> None:
    table = MAP.read_text().split("## From a sentence")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [part for row in rows for part in re.findall(r"`(\w+)(?:/|\.py)`", row)]
    first = {part for part in ORDER[: ORDER.index("cost")]}  # the small things share a row
    assert [part for part in named if part not in first] == ORDER[len(first) : -1]


def test_files_that_the_map_names_are_there() -> None:
    for name in set(re.findall(r"`([\w/]+(?:\.py|/))`", MAP.read_text())):
        assert (PACKAGE / name).exists() or (PACKAGE.parent / name).exists(), name


def test_reports_know_of_explain_only_its_answers_and_what_it_offers_beside_them() -> None:
    asked = {
        str(node.module)
        for path in (PACKAGE / "report").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dragoman.explain")
    }
    assert asked <= {f"dragoman.explain.{name}" for name in OFFERED_TO_REPORTS}


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_a_run_without_shards_does_not_import_what_shards_need() -> None:
    """It takes half a second, in each of the processes that a run starts."""
    script = "import sys, dragoman.train.run; sys.exit('torch.distributed.fsdp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
