"""tools/gpu_test.py, in its shortest form, without a GPU: it trains for real, and says what failed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

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


def test_the_speed_of_a_card_is_shown_beside_its_data_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan by the table of GPUs is real; the steps on the card are not."""
    answered, card = gpu_test.answered, usable("NVIDIA A100-SXM4-40GB", (8, 0))

    def without_a_card(words: list[str]) -> tuple[int, dict[str, Any]]:
        measured = {"step_seconds": {"value": 0.1}, "flops_per_step": 9.2e12}
        return (0, measured) if "--calibrate" in words else answered(words)

    monkeypatch.setattr(gpu_test, "answered", without_a_card)
    found = gpu_test.base_speed(Bench(tmp_path, tmp_path, [card]), 1)
    tokens, low, high = (figure.replace(",", "") for figure in re.findall(r"[\d,]{6,}", found))
    assert int(tokens) == 250_000
    assert int(low) < int(high) < 1_000_000
    assert not lacking(found, "92 TFLOP/s")
