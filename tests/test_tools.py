"""tools/run_tests.py: what fails is tried once more, and listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import run_tests
from tools.run_tests import Part

PARTS = (Part(("test_a.py",), ("--cache-clear",)), Part(("test_b.py",)))
SOUND = "def test_sound(): pass\n"
FLAKY = """
from pathlib import Path

def test_flaky():
    was_there = Path("seen").exists()
    Path("seen").touch()
    assert was_there
"""
BROKEN = "def test_broken(): assert False\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, capfd: pytest.CaptureFixture[str], a: str, b: str) -> tuple[int, list[str]]:
    """The exit code, and the lines about tests that were tried twice."""
    (folder / "test_a.py").write_text(a)
    (folder / "test_b.py").write_text(b)
    code = run_tests.main(PARTS)
    return code, [line for line in capfd.readouterr().out.splitlines() if line.startswith("tried twice")]


def test_nothing_is_listed_where_all_passes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(folder, capfd, SOUND, SOUND) == (0, [])


def test_a_test_that_passes_at_the_second_try_is_listed(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, lines = run(folder, capfd, SOUND + FLAKY, SOUND)
    assert code == 0
    assert [line.rpartition(" ")[2] for line in lines] == ["test_a.py::test_flaky"]


def test_a_test_that_fails_twice_fails_all_and_is_told_from_others(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, lines = run(folder, capfd, FLAKY, BROKEN + SOUND)
    assert code == 1
    told = {line.rpartition(" ")[2]: line.partition(":")[0] for line in lines}
    assert list(told) == ["test_a.py::test_flaky", "test_b.py::test_broken"]
    assert told["test_a.py::test_flaky"] != told["test_b.py::test_broken"]
