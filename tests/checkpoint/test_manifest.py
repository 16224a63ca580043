"""manifest.json: no damage to a model's folder passes for the model."""

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dragoman.checkpoint import manifest
from dragoman.checkpoint.manifest import MANIFEST_FILE
from dragoman.errors import CheckpointError
from tests import damage
from tests.damage import Damage

PURPOSES = {"weights": "to translate", "words": "to read"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in PURPOSES:
        (tmp_path / name).write_text(f"content of {name}")
    manifest.write(tmp_path, PURPOSES, step=8)
    return tmp_path


def verify(folder: Path) -> None:
    manifest.check(folder, manifest.read(folder, PURPOSES).files)


def rewrite(folder: Path, change: dict[str, Any]) -> None:
    """By somebody who knows what a manifest looks like, but for its own checksum."""
    content = json.loads((folder / MANIFEST_FILE).read_text())
    content.pop("sha256", None)
    (folder / MANIFEST_FILE).write_text(json.dumps(content | change))


@pytest.mark.parametrize("name", [*PURPOSES, MANIFEST_FILE])
def test_a_bit_of_any_byte_counts(folder: Path, name: str) -> None:
    verify(folder)
    content = (folder / name).read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        (folder / name).write_bytes(flipped)
        with pytest.raises(CheckpointError, match=str(folder)):
            verify(folder)


@pytest.mark.parametrize("name", [*PURPOSES, MANIFEST_FILE])
@pytest.mark.parametrize("harm", damage.ALL)
def test_damage_is_reported_of_the_file_it_was_done_to(folder: Path, name: str, harm: Damage) -> None:
    harm(folder / name, Random(1))
    with pytest.raises(CheckpointError) as error:
        verify(folder)
    assert error.value.path == str(folder / name)


@pytest.mark.parametrize("name", ["../weights", "/etc/passwd", "other", "", MANIFEST_FILE, "weights/", "."])
def test_only_known_names_are_followed(folder: Path, name: str) -> None:
    facts = manifest.read(folder, PURPOSES).files["weights"].model_dump()
    rewrite(folder, {"files": {name: facts}})
    with pytest.raises(CheckpointError) as error:
        verify(folder)
    assert error.value.path == str(folder / MANIFEST_FILE)
    assert repr(name) in error.value.what


@pytest.mark.parametrize(
    "change",
    [{"files": []}, {"files": {"words": 7}}, {"step": "x"}, {"schema_version": 2}, {"more": 1}],
    ids=str,
)
def test_what_is_no_manifest_is_refused(folder: Path, change: dict[str, Any]) -> None:
    rewrite(folder, {})
    verify(folder)  # as they were written before manifests had a checksum of their own
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=MANIFEST_FILE):
        verify(folder)


def test_a_link_to_the_same_content_is_sound(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """As the caches of model hubs keep their files."""
    blob = tmp_path_factory.mktemp("blobs") / "x"
    shutil.move(folder / "weights", blob)
    (folder / "weights").symlink_to(blob)
    verify(folder)
