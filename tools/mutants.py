"""Mutation testing: does a test fail when a comparison, an operator or a constant in the code changes?

`make mutants`, or `python tools/mutants.py --seed 7 --count 100 --only dragoman/explain/device.py`. Mutants
are drawn at random from the sites of all files; each runs the tests of its file until one fails, in a fork of
a process that has imported everything else. tools/mutants.txt lists survivors with the reason why they do not
matter; they still count as survivors.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LISTED = ROOT / "tools" / "mutants.txt"
LEAST_KILLED = 0.90
LIMIT_SECONDS = 300  # a mutant that never ends counts as killed

# Kept answers, two hundred generated runs, then plain tests: a mutant that only more would reveal survives.
KEPT = "tests/explain/test_kept_answers.py"
RUNS = "tests/explain/test_properties.py::test_what_must_hold_of_every_run_holds"
BARE = "tests/explain/test_properties.py::test_bounds_from_a_bare_log_hold_the_truth"
EXPLAIN = [KEPT, f"{RUNS}[0]", BARE, f"{RUNS}[1]", "tests/explain"]
TESTS: dict[str, list[str]] = {
    "dragoman/explain/bounds_from_link.py": [KEPT, BARE, "tests/foreign/test_verdicts.py", "tests/explain"],
    "dragoman/explain/*.py": EXPLAIN,
    "dragoman/cost/step.py": ["tests/cost", "tests/sync/test_choice.py", *EXPLAIN],
    "dragoman/cost/size.py": ["tests/cost", "tests/explain/test_checkpoint.py"],
    "dragoman/cost/flops.py": ["tests/cost"],
    "dragoman/schedule.py": ["tests/test_schedule.py", "tests/explain/test_learning_rate.py", KEPT],
    "dragoman/data/batches.py": ["tests/data/test_batches.py"],
    "dragoman/sync/wire.py": ["tests/sync/test_exchange.py"],
    "dragoman/sync/diloco.py": ["tests/sync/test_diloco.py"],
    "dragoman/exchange_way.py": ["tests/test_exchange_way.py"],
}
# Slow, and they do not check results: they start programs, or only check that records raise no error.
LEFT_OUT = ("tests/explain/test_properties.py", "tests/explain/test_run.py")

# Inverted. `<` and `<=` differ only where two measured numbers are equal, which never happens.
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


# The import loader compiles the mutant instead of the file; nothing is written into the repository.
HOOK = """
from importlib.machinery import SourceFileLoader
from pathlib import Path
ordinary = SourceFileLoader.get_code
code = compile(Path(__file__).with_name("mutant.py").read_text(), {target!r}, "exec")
def get_code(self, fullname):
    return code if self.path == {target!r} else ordinary(self, fullname)
SourceFileLoader.get_code = get_code
"""


@dataclass(frozen=True)
class Mutant:
    path: str
    function: str
    line: int
    place: tuple[int, int]  # index of the node in the file, and of the change to it
    change: str

    @property
    def name(self) -> str:
        """A name without line number, so that it stays the same when lines move."""
        return f"{self.path}: {self.function}: {self.change}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    tree = ast.parse(path.read_text())
    name = str(path.relative_to(ROOT))
    for index, (function, node, parent) in enumerate(_sites(tree)):
        for number, new in enumerate(_changed(node, parent)):
            whole = f" in {ast.unparse(parent).splitlines()[0]}" if isinstance(node, ast.Constant) else ""
            change = f"{ast.unparse(node)} -> {ast.unparse(new)}{whole}"
            yield Mutant(name, function, getattr(node, "lineno", 0), (index, number), change)


def source(mutant: Mutant) -> str:
    """The whole file with the mutant's one change."""
    tree = ast.parse((ROOT / mutant.path).read_text())
    index, number = mutant.place
    _, node, parent = next(itertools.islice(_sites(tree), index, None))
    new = next(itertools.islice(_changed(node, parent), number, None))
    for field, value in ast.iter_fields(new):
        setattr(node, field, value)
    return ast.unparse(tree)


def _sites(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Yield function, node and parent of every node outside annotations and format specifications."""
    yield from _below(tree, tree, "")


def _below(node: ast.AST, parent: ast.AST, function: str) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}" if function else node.name
    yield function, node, parent
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "format_spec"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _below(child, node, function)


def _changed(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            yield _with(node, ops=[*node.ops[:place], COMPARISONS[type(operator)](), *node.ops[place + 1 :]])
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        if not any(_is_text(side) for side in (node.left, node.right)):
            yield _with(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield _with(node, op=ast.UAdd())
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float) and not _is_text(parent):
        yield _with(node, value=node.value + 1 if type(node.value) is int else node.value * 1.5 or 1.0)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    twin = copy.copy(node)
    for name, value in fields.items():
        setattr(twin, name, value)
    return twin


def survives(mutant: Mutant, tests: list[str]) -> bool:
    """Whether all tests pass with the mutant."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mutant.py").write_text(source(mutant))
        (Path(folder) / "sitecustomize.py").write_text(HOOK.format(target=str(ROOT / mutant.path)))
        child = os.fork()
        if child == 0:
            os.setsid()
            _run(Path(folder), tests)
        return _passes(child)


def _passes(child: int) -> bool:
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _run(folder: Path, tests: list[str]) -> None:
    """Run the tests with the mutant, in this child and in every process that they start."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.environ["PYTHONPATH"] = f"{folder}:{ROOT}"
    exec((folder / "sitecustomize.py").read_text(), {"__file__": str(folder / "sitecustomize.py")})
    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # saves half a second per start
    try:
        ended = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout", *tests])
    except BaseException:
        ended = 1
    os._exit(int(ended))


def tests_of(path: str) -> list[str]:
    """The tests to run for a file, each once, starting with those named after it."""
    pattern = next(pattern for pattern in TESTS if Path(path).match(pattern))
    namesake = ROOT / "tests" / Path(path).relative_to("dragoman").with_name(f"test_{Path(path).name}")
    named = [str(namesake.relative_to(ROOT))] if namesake.exists() else []
    selected: list[str] = []
    for test in (*named, *TESTS[pattern]):
        files = sorted((ROOT / test).glob("test_*.py")) if (ROOT / test).is_dir() else []
        names = [str(file.relative_to(ROOT)) for file in files] or [test]
        selected += [name for name in names if name not in (*selected, *LEFT_OUT)]
    return selected


def _import_once() -> None:
    """Import for all forks what the tests need, except the mutated code and the tests themselves."""
    import hypothesis
    import pytest

    import dragoman.report.text
    import tests.explain.test_properties

    del hypothesis, pytest, dragoman, tests
    again = ("dragoman", "tests")
    for name in [name for name in sys.modules if name.split(".")[0] in again]:
        if not name.startswith(("dragoman.measure", "dragoman.config", "dragoman.errors")):
            del sys.modules[name]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--only", help="only mutants of this file, or of files that match this pattern")
    parser.add_argument("--matching", default="", help="only mutants whose name contains this")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    _import_once()
    os.chdir(ROOT)
    paths = sorted({path for pattern in TESTS for path in ROOT.glob(pattern)})
    if options.only:
        paths = [path for path in paths if path.relative_to(ROOT).match(options.only)]
    every = [mutant for path in paths for mutant in mutants(path) if options.matching in mutant.name]
    drawn = random.Random(options.seed).sample(every, min(options.count, len(every)))
    listed = LISTED.read_text() if LISTED.exists() else ""
    survivors = []
    for number, mutant in enumerate(drawn, start=1):
        began = time.monotonic()
        lives = survives(mutant, tests_of(mutant.path))
        survivors += [mutant] if lives else []
        note = " (listed)" if mutant.name in listed else ""
        word = f"SURVIVES{note}" if lives else "killed"
        print(
            f"{number}/{len(drawn)} {time.monotonic() - began:5.1f} s {word} {mutant.line}: {mutant.name}",
            flush=True,
        )
    killed = 1 - len(survivors) / len(drawn)
    print(f"seed {options.seed}: {len(drawn)} of {len(every)} mutants, {killed:.1%} killed; survivors:")
    print("\n".join(sorted(mutant.name for mutant in survivors)))
    return 0 if killed >= LEAST_KILLED else 1


if __name__ == "__main__":
    sys.exit(main())
