"""doctor/capacity.py: a place for the run that training would refuse."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.doctor import capacity, host
from dragoman.doctor.check import Check
from dragoman.errors import UsageError
from dragoman.rundir import RunFolder
from tests.facts import lacking


def checks(path: Path) -> list[Check]:
    return capacity.place([host.facts(None, path)])


@pytest.mark.parametrize("name", ["file", "file/run"])
def test_a_run_folder_that_is_a_file_is_an_error_as_it_is_to_training(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (found,) = checks(tmp_path / name)
    assert (found.status, found.name) == ("error", "run")
    assert str(tmp_path / "file") in found.value
    with pytest.raises(UsageError):
        RunFolder(tmp_path / name).check_place()


def test_a_place_that_may_not_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (found,) = checks(tmp_path / "new" / "run")
    assert (found.status, found.name) == ("error", "run")
    assert not lacking(found.value, tmp_path)


def test_a_place_where_a_run_can_be_made_is_no_error(tmp_path: Path) -> None:
    assert checks(tmp_path / "new" / "run") == checks(tmp_path) == []


def test_the_command_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.cli import app, machines

    codes: list[int] = []
    monkeypatch.setattr(machines, "leave", codes.append)  # it would end the process of the test
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["doctor", "--run", str(tmp_path / "file"), "--json"])
    assert codes == [1], done.output
    assert json.loads(done.stdout)["verdict"] == "error"
