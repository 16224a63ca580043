"""What is known to be wrong is said before a rank is started."""

import json
import os
import shutil
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, DataError, DataSetError, UsageError
from dragoman.train.job import check
from tests.facts import raising
from tests.train.conftest import Here


def test_a_data_set_without_held_out_text_is_refused_with_advice(here: Here, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(here.task.data, data)
    card = json.loads((data / "card.json").read_text())
    del card["parts"]["dev"]
    (data / "card.json").write_text(json.dumps(card))
    with raising(DataError, f"{data}:", "--dev"):
        check(here.job(tmp_path / "run", data=data))


def test_a_token_that_is_not_in_the_vocabulary_is_found_before_a_rank_is_started(
    here: Here, tmp_path: Path
) -> None:
    data = shutil.copytree(here.task.data, tmp_path / "data")
    with open(data / "train" / "target.tokens", "r+b") as file:
        file.write(b"\xff\xff")
    with raising(DataSetError, f"{data / 'train' / 'target.tokens'}:", "65,535"):
        check(here.job(tmp_path / "run", data=data))


@pytest.mark.parametrize("name", ["file", "file/run"])
def test_a_run_folder_that_is_a_file_is_wrong_use(here: Here, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with raising(UsageError, f"{tmp_path / 'file'}:"):
        check(here.job(tmp_path / name))


def test_a_place_that_may_not_be_written_is_wrong_use(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append(path))  # None: no
    with raising(UsageError, f"{tmp_path}:"):
        check(here.job(tmp_path / "new" / "run"))
    assert asked == [tmp_path]  # the nearest folder that exists


def test_checking_writes_nothing(here: Here, tmp_path: Path) -> None:
    check(here.job(tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []


def test_an_automatic_microbatch_and_its_size_are_the_same_run(here: Here, tmp_path: Path) -> None:
    here.train(tmp_path / "run", "data.microbatch=3125", "train.stop_at=1")
    check(here.job(tmp_path / "run", "data.microbatch=auto"))
    with raising(ConfigError, "data.microbatch", "3000"):
        check(here.job(tmp_path / "run", "data.microbatch=3000"))
