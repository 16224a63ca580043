"""COMET where it is installed. Here a stand-in package is: the real one is gigabytes."""

import sys
from pathlib import Path

import pytest

from dragoman.evaluate import comet
from dragoman.evaluate.heldout import HeldOut
from dragoman.evaluate.run import evaluate
from dragoman.evaluate.system import System
from tests.facts import lacking

PACKAGE = """
from types import SimpleNamespace

def download_model(name, local_files_only=False):
    assert local_files_only
    if {is_absent}:
        raise KeyError("not in the cache")
    return "checkpoint of " + name

class Model:
    def predict(self, rows, batch_size, gpus, progress_bar):
        return SimpleNamespace(scores=[float(row["mt"] == row["ref"]) for row in rows if row["src"]])

def load_from_checkpoint(path):
    return Model()
"""
HELD_OUT = HeldOut("text", ["a", "b", "c", "d"], [["A", "B", "C", "D"]])
HALF_RIGHT, ALL_RIGHT = (
    System("half", "by hand", ["A", "B", "x", "x"]),
    System("all", "by hand", list("ABCD")),
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201
    def install(is_absent: bool) -> None:
        (tmp_path / "comet").mkdir()
        (tmp_path / "comet" / "__init__.py").write_text(PACKAGE.format(is_absent=is_absent))
        about = tmp_path / "unbabel_comet-2.9.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: unbabel-comet\nVersion: 2.9\n")
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    sys.modules.pop("comet", None)


def test_it_is_scored_beside_the_others_with_model_and_version_in_its_signature(installed) -> None:  # noqa: ANN001
    installed(is_absent=False)
    found = evaluate([HALF_RIGHT, ALL_RIGHT], HELD_OUT, 0)
    half, whole = (system.scores["comet"] for system in found.systems)
    assert (half.value, whole.value) == (0.5, 1.0)
    assert half.low < 0.5 < half.high
    assert half.signature == f"nrefs:1|bs:1000|seed:12345|model:{comet.MODEL}|version:2.9"
    assert found.differences[-1].metric == "comet"
    assert found.notes == []


def test_without_its_model_it_is_skipped_and_said(installed) -> None:  # noqa: ANN001
    installed(is_absent=True)
    found = evaluate([ALL_RIGHT], HELD_OUT, 0)
    assert list(found.systems[0].scores) == ["bleu", "chrf", "ter"]
    assert len(found.notes) == 1
    assert not lacking(found.notes[0], "COMET", comet.MODEL)


def test_where_it_is_not_installed_that_is_reported() -> None:
    if comet.importlib.util.find_spec("comet"):
        pytest.skip("unbabel-comet is installed")
    found = evaluate([ALL_RIGHT], HELD_OUT, 0)
    (note,) = found.notes
    assert not lacking(note, "COMET", "unbabel-comet")
