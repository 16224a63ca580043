"""tools/gpu_test.py, in its shortest form, without a GPU: it trains for real, and says what failed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.doctor.test_capacity import usable
from tests.facts import lacking
from tests.train.conftest import made_once, task  # noqa: F401  fixtures
from tests.train.runs import Task
from tools import gpu_test
from tools.gpu_test import Bench, Check


def rows(said: str) -> dict[str, dict[str, str]]:
    """The page's table, by the name of the check."""
    lines = [line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("| ")]
    titles, _, *cells = lines
    return {row[0]: dict(zip(titles, row, strict=True)) for row in cells}


def test_all_checks_pass_where_nothing_is_wrong(task: Task, capfd: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    code = gpu_test.main(["--shortest", "--data", str(task.data)])
    said = capfd.readouterr().out
    found = rows(said)
    assert {name: row["verdict"] for name, row in found.items()} == dict.fromkeys(found, "ok")
    assert list(found) == [
        "doctor", "auto, adam", "two ranks", "a rank fails", "out of memory", "kill -9 and resume"
    ]  # fmt: skip
    assert code == 0
    assert not lacking(found["auto, adam"]["found"], "fp32")
    assert not lacking(found["out of memory"]["found"], "2 parts", "no GPU here")
    assert not lacking(found["kill -9 and resume"]["found"], 5)
    assert not lacking(said, "no GPU here", "torch")


@pytest.fixture
def damaged(task: Task, tmp_path: Path) -> Path:  # noqa: F811
    """A data set without its target tokens."""
    data = shutil.copytree(task.data, tmp_path / "data")
    (data / "train" / "target.tokens").unlink()
    return data


def test_a_check_that_fails_shows_in_the_table_and_in_the_exit_code(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def some(bench: Bench, shortest: bool) -> Iterator[Check]:
        yield Check("sound", "", lambda bench: "well")
        yield Check("training", "", partial(gpu_test.learns, precision="auto", optimizer="adam"))
        yield Check("not here", "", lambda bench: gpu_test.base_speed(bench, 1))

    monkeypatch.setattr(gpu_test, "checks", some)
    assert gpu_test.main(["--data", str(damaged)]) == 1
    found = rows(capfd.readouterr().out)
    verdicts = {name: row["verdict"] for name, row in found.items()}
    assert verdicts == {"sound": "ok", "training": "FAILED", "not here": "skipped"}
    assert not lacking(found["training"]["found"], damaged / "train" / "target.tokens")


def test_two_ranks_that_learn_something_else_than_one_are_noticed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, tmp_path, [])
    bench.losses["auto-adam-1"] = gpu_test.np.array([4.0, 3.9, 3.8])
    bench.losses["auto-adam-2"] = gpu_test.np.array([4.0, 3.9, 3.6])
    with pytest.raises(gpu_test.Failed):
        gpu_test._agree(bench, "auto-adam-2", "adam", gpu_test.ALIKE)
    bench.losses["auto-adam-2"][2] = 3.8
    gpu_test._agree(bench, "auto-adam-2", "adam", gpu_test.ALIKE)


def test_the_speed_of_a_card_is_shown_as_a_share_of_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two cards that make half a million tokens per second together; the steps are not real."""
    measured = {"step_seconds": {"value": 0.05}, "flops_per_step": 9.2e12}
    monkeypatch.setattr(gpu_test, "answered", lambda words: (0, measured))
    monkeypatch.setattr(gpu_test, "bound", lambda card: 500_000.0)
    bench = Bench(tmp_path, tmp_path, [usable("NVIDIA A100-SXM4-40GB", (8, 0))] * 2)
    assert not lacking(gpu_test.base_speed(bench, 2), "500,000", "92 TFLOP/s", "50%")


def test_the_bounds_are_those_of_the_page_on_gpus() -> None:
    names = ("Tesla T4", "Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3")
    bounds = [gpu_test.bound(name) or 0.0 for name in names]
    assert bounds[0] > 10_000 and bounds == sorted(bounds) and len(set(bounds)) == 4
    assert gpu_test.bound("NVIDIA A10G") is None, "an A10 is no A100"
    assert gpu_test.bound("Pretended GPU") is None


def test_auto_is_what_the_cards_of_the_ranks_can_do(tmp_path: Path) -> None:
    cards = [usable("NVIDIA A100", (8, 0)), usable("Tesla T4", (7, 5))]
    bench = Bench(tmp_path, tmp_path, cards)
    assert [bench.automatic(), bench.automatic(2), Bench(tmp_path, tmp_path, []).automatic()] == [
        "bf16", "fp16", "fp32"
    ]  # fmt: skip
    names = [check.name for check in gpu_test.checks(bench, shortest=True)]
    assert {"auto, adam", "bf16, adam", "fp16, adam", "fp32, adam"} <= set(names)
