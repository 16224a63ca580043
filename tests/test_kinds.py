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
from tests.facts import lacking

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
SEEMS: dict[str, tuple[kinds.Kind | None, list[str]]] = {  # the kind, and what its words name
    "data set": ("data set", ["card.json"]),
    "run": ("run", ["records.db"]),
    "checkpoint": ("model", ["model.safetensors"]),
    "ctranslate2": ("model", ["CTranslate2", "model.bin"]),
    "transformers": ("model", ["Hugging Face", "config.json"]),
    "begun": ("run", ["config.toml"]),
    "other": (None, []),
    "empty": (None, []),
    "file": (None, []),
    "nothing": (None, []),
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
    kind, words = kinds.kind(folders[name])
    assert (kind, lacking(words, *SEEMS[name][1])) == (SEEMS[name][0], [])
    assert words not in [kinds.kind(folders[other])[1] for other in SEEMS if other != name]


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
    ("command", "given", "wanted"),
    [
        ("report {}", "data set", "run"),
        ("report {}", "checkpoint", "run"),
        ("compare {} {}", "nothing", "run"),
        ("plan demo --from {}", "file", "run"),
        ("plan demo --gpu V100 --data {}", "run", "data set"),
        ("train demo --run new --data {}", "file", "data set"),
        ("train demo --run new --data {}", "checkpoint", "data set"),
        ("evaluate {} --data {}", "run", "data set"),
        ("translate {}", "data set", "model"),
        ("export {} --to ctranslate2 -o new", "empty", "model"),
        ("serve {} --port 0", "nothing", "model"),
    ],
)
def test_commands_say_what_it_seems_to_be(
    folders: dict[str, Path], command: str, given: str, wanted: kinds.Kind
) -> None:
    path = folders[given].resolve()
    done = ranks.command(*(word.format(path) for word in command.split()), folder=path.parent)
    said = f"error: {path}: {kinds.refused(path, wanted).what}"
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert kinds.kind(path)[1] in said


def test_a_run_is_not_written_over_a_data_set_or_a_model(folders: dict[str, Path]) -> None:
    for name in ("data set", "checkpoint", "ctranslate2", "transformers"):
        with pytest.raises(UsageError) as refused:
            kinds.check_for_run(folders[name])
        assert refused.value.path == str(folders[name])
    for name in ("run", "begun", "other", "empty", "nothing"):
        kinds.check_for_run(folders[name])


def test_what_was_perhaps_meant_is_named(folders: dict[str, Path]) -> None:
    step = folders["run"] / "checkpoints" / "step-00000010"
    assert kinds.refused(step, "run").hint.endswith(f" {folders['run']}")
    parent = folders["run"].parent
    assert kinds.refused(parent, "data set").hint.endswith(f" {folders['data set']}")
    assert not lacking(kinds.refused(folders["empty"], "data set").hint, "dragoman prepare")
