"""What every format of export has in common: a folder, whole or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dragoman.export.export import Target, export
from tests.decode.models import make_run
from tests.train.runs import disk

TARGETS: tuple[Target, ...] = ("ctranslate2", "huggingface")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("models") / "run")


@pytest.mark.parametrize("size", ["64k", "220k"])  # too little for the weights; for what follows them
@pytest.mark.parametrize("target", TARGETS)
def test_a_full_disk_names_the_folder_and_leaves_nothing_there(
    target: Target, size: str, run: Path, tmp_path: Path
) -> None:
    with disk(tmp_path, size):
        with pytest.raises(OSError, match="No space left on device") as caught:
            export(run, target, tmp_path / "out")
        assert str(caught.value.filename).startswith(str(tmp_path / "out"))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o027, 0o640), (0o022, 0o644)])
@pytest.mark.parametrize("target", TARGETS)
def test_every_file_has_the_mode_that_the_umask_leaves(
    target: Target, umask: int, mode: int, run: Path, tmp_path: Path
) -> None:
    before = os.umask(umask)
    try:
        export(run, target, tmp_path / "out")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()} == {mode}
