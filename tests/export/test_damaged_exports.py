"""Exported folders that are not what was written, and folders of others that are not what they should be."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from dragoman import engines
from dragoman.checkpoint.manifest import MANIFEST_FILE
from dragoman.decode import Options
from dragoman.errors import CheckpointError, DataError, DragomanError, UsageError
from dragoman.export import ctranslate2
from dragoman.export.export import export
from tests import damage
from tests.damage import Damage
from tests.decode import models
from tests.decode.models import SENTENCES, make_run

OF_CTRANSLATE2 = ["config.json", "model.bin", "shared_vocabulary.json", "vocabulary.model"]
OF_HUGGINGFACE = [
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
]
FILES = [("ctranslate2", name) for name in (*OF_CTRANSLATE2, MANIFEST_FILE)] + [
    ("huggingface", name) for name in (*OF_HUGGINGFACE, MANIFEST_FILE)
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for each target."""
    base = tmp_path_factory.mktemp("exported")
    run = make_run(base / "run")
    export(run, "ctranslate2", base / "ctranslate2")
    export(run, "huggingface", base / "huggingface")
    return base


@pytest.fixture
def theirs(exported: Path, tmp_path: Path) -> Path:
    """As others convert models: nobody wrote down what its files should be."""
    folder = shutil.copytree(exported / "ctranslate2", tmp_path / "theirs")
    (folder / MANIFEST_FILE).unlink()
    return folder


def translations(folder: Path) -> list[str]:
    found = engines.load(folder, threads=1).translate(SENTENCES[:5], Options(beam=2))
    return [one[0].text for one in found]


def test_the_manifest_describes_every_file(exported: Path) -> None:
    for target, names in (("ctranslate2", OF_CTRANSLATE2), ("huggingface", OF_HUGGINGFACE)):
        described = json.loads((exported / target / MANIFEST_FILE).read_text())["files"]
        there = sorted(path.name for path in (exported / target).iterdir())
        assert there == sorted([*described, MANIFEST_FILE]) == sorted([*names, MANIFEST_FILE])


@pytest.mark.parametrize(("target", "name"), FILES)
@pytest.mark.parametrize("harm", damage.ALL)
def test_no_damage_to_an_export_goes_unnoticed(
    exported: Path, tmp_path: Path, target: str, name: str, harm: Damage
) -> None:
    folder = shutil.copytree(exported / target, tmp_path / "copy")
    harm(folder / name, Random(f"{harm.__name__} {name}"))
    if not os.path.lexists(folder / MANIFEST_FILE):
        return  # then it is a folder like those of others
    with pytest.raises(CheckpointError) as error:
        engines.load(folder, threads=1)
    assert error.value.path == str(folder / name)


def test_an_export_without_its_manifest_is_used_as_it_is(exported: Path, theirs: Path) -> None:
    assert translations(theirs) == translations(exported / "ctranslate2")


@pytest.mark.parametrize("name", OF_CTRANSLATE2)
def test_damage_to_a_folder_of_others_ends_in_a_translation_or_an_error_with_its_place(
    theirs: Path, tmp_path: Path, name: str
) -> None:
    for number, harm in enumerate([*damage.ALL, *[damage.flip] * 25]):
        folder = shutil.copytree(theirs, tmp_path / f"{number}")
        harm(folder / name, Random(f"{number} {name}"))
        try:
            assert len(translations(folder)) == 5
        except DataError as error:
            assert error.path and error.path.startswith(str(folder)), harm
        except UsageError as error:
            assert harm is damage.lose and name == "model.bin", error


@pytest.mark.parametrize(
    "change",
    [
        {"eos_token": 5},
        {"decoder_start_token": None},  # CTranslate2 crashed in some of these
        {"add_source_bos": None},
        {"eos_token": ["</s>"]},
        {"add_source_eos": "yes"},
        {"decoder_start_token": {}},
        {"layer_norm_epsilon": "small"},
        {"unk_token": "no such piece"},
        {"bos_token": "no such piece", "decoder_start_token": "no such piece"},
    ],
    ids=str,
)
def test_an_absurd_config_is_an_error_or_harmless(theirs: Path, change: dict[str, Any]) -> None:
    config = json.loads((theirs / "config.json").read_text())
    (theirs / "config.json").write_text(json.dumps(config | change))
    if "no such piece" in change.values():
        assert len(translations(theirs)) == 5
        return
    with pytest.raises(CheckpointError, match=min(change)) as error:
        translations(theirs)
    assert error.value.path == str(theirs / "config.json")


def test_a_vocabulary_of_another_model_is_noticed(theirs: Path) -> None:
    text = [f"{letter}{letter} ß{letter}" for letter in "αβγδεζηθικλμνξοπρστυφχψωбвджзилфцчшщыэюя"]
    other = models.learn(text * 5, models.VocabularySettings(size=120))
    (theirs / "vocabulary.model").write_bytes(other.model)
    with pytest.raises(CheckpointError, match=r"shared_vocabulary\.json") as error:
        translations(theirs)
    assert error.value.path == str(theirs / "vocabulary.model")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_scores_that_are_no_numbers_are_no_translation(tmp_path: Path, value: float) -> None:
    """Weights that we do not see: those of a folder of others."""
    tokenizer = models.vocabulary()
    model = models.transformer(tokenizer)
    with torch.no_grad():
        model.decoder.norm.weight[0] = value
    ctranslate2.write(tmp_path, model, tokenizer)
    with pytest.raises(CheckpointError) as error:
        engines.load(tmp_path, threads=1)
    assert error.value.path == str(tmp_path)


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("unpickled"),))


def test_nothing_is_ever_unpickled(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(exported / "huggingface", tmp_path / "hub")
    for name in ("model.safetensors", MANIFEST_FILE):
        (folder / name).unlink()
    for name in ("pytorch_model.bin", "model.bin", "model.safetensors"):
        (folder / name).write_bytes(pickle.dumps(Evil()))
        with pytest.raises(DragomanError, match=str(folder)):
            engines.load(folder, threads=1)
        (folder / name).unlink()
    assert not Path("unpickled").exists()
