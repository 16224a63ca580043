"""The same words for the wrong kind of folder, whichever command it is given to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import kinds
from dragoman.data.store import DataSet
from dragoman.errors import UsageError
from dragoman.measure import database
from dragoman.rundir import RunFolder
from tests import ranks

FILES = {
    "data set": ["card.json"],
    "run": ["records.db", "config.toml", "checkpoints/step-00000010/model.safetensors"],
    "checkpoint": ["model.safetensors", "manifest.json"],
    "ctranslate2": ["model.bin", "config.json"],
    "transformers": ["model.safetensors", "config.json"],
    "begun": ["config.toml", "checkpoints/nothing"],
    "other": ["notes.txt", "config.toml"],
    "empty": [],
}
SEEMS = {
    "data set": "a data set (it has card.json)",
    "run": "a run (it has records.db)",
    "checkpoint": "a checkpoint (it has model.safetensors)",
    "ctranslate2": "a model in CTranslate2's format (it has model.bin)",
    "transformers": "a model in the format of Hugging Face's transformers (it has config.json)",
    "begun": "a run without records (it has config.toml)",
    "other": "a folder of something else",
    "empty": "an empty folder",
}


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    made = {}
    for name, files in FILES.items():
        made[name] = tmp_path / name.replace(" ", "-")
        made[name].mkdir()
        for file in files:
            (made[name] / file).parent.mkdir(parents=True, exist_ok=True)
            (made[name] / file).touch()
    made["file"], made["nothing"] = tmp_path / "file.txt", tmp_path / "nothing"
    made["file"].touch()
    return made


@pytest.mark.parametrize("name", SEEMS)
def test_a_folder_is_known_by_its_files(folders: dict[str, Path], name: str) -> None:
    assert kinds.kind(folders[name])[1] == SEEMS[name]


@pytest.mark.parametrize(("wanted", "refuses"), [("run", 9), ("data set", 9), ("model", 6)])
def test_every_function_that_opens_a_kind_refuses_the_others_alike(
    folders: dict[str, Path], wanted: kinds.Kind, refuses: int
) -> None:
    from dragoman.checkpoint import saved_model

    def opened(path: Path) -> object:
        if wanted == "run":
            return database.read(RunFolder(path).records)
        return DataSet(path) if wanted == "data set" else saved_model.find(path)

    refused = 0
    for name, path in folders.items():
        if kinds.kind(path)[0] == wanted and name != "begun":
            continue
        if wanted == "model" and name == "run":
            continue  # a run has models
        with pytest.raises(UsageError) as error:
            opened(path)
        assert error.value.what == kinds.refused(path, wanted).what
        assert error.value.path == str(path)
        assert error.value.exit_code == 2
        refused += 1
    assert refused == refuses


@pytest.mark.parametrize(
    ("command", "given", "said"),
    [
        ("report {}", "data set", "no run here: it is a data set (it has card.json), not a run"),
        ("report {}", "checkpoint", "no run here: it is a checkpoint (it has model.safetensors), not a run"),
        ("compare {} {}", "nothing", "no run here: it is not there"),
        ("plan demo --from {}", "file", "no run here: it is a file"),
        ("plan demo --gpu V100 --data {}", "run", "no data set here: it is a run (it has records.db), not a"),
        ("train demo --run new --data {}", "file", "no data set here: it is a file"),
        ("train demo --run new --data {}", "checkpoint", "no data set here: it is a checkpoint"),
        ("evaluate {} --data {}", "run", "no data set here: it is a run"),
        ("translate {}", "data set", "no model here: it is a data set (it has card.json), not a model"),
        ("export {} --to ctranslate2 -o new", "empty", "no model here: it is an empty folder"),
        ("serve {} --port 0", "nothing", "no model here: it is not there"),
    ],
)
def test_commands_say_what_it_seems_to_be(
    folders: dict[str, Path], command: str, given: str, said: str
) -> None:
    path = folders[given].resolve()
    done = ranks.command(*(word.format(path) for word in command.split()), folder=path.parent)
    assert (done.returncode, f"error: {path}: {said}" in done.stderr) == (2, True), done.stderr


def test_a_run_is_not_written_over_a_data_set_or_a_model(folders: dict[str, Path]) -> None:
    for name in ("data set", "checkpoint", "ctranslate2", "transformers"):
        with pytest.raises(UsageError, match="no run here"):
            kinds.check_for_run(folders[name])
    for name in ("run", "begun", "other", "empty", "nothing"):
        kinds.check_for_run(folders[name])


def test_what_was_perhaps_meant_is_named(folders: dict[str, Path]) -> None:
    step = folders["run"] / "checkpoints" / "step-00000010"
    assert kinds.refused(step, "run").hint == f"its run: {folders['run']}"
    parent = folders["run"].parent
    assert kinds.refused(parent, "data set").hint == f"inside it: {folders['data set']}"
    assert kinds.refused(folders["empty"], "data set").hint.startswith("make one with")
