from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dragoman.model import weights
from tests.train.runs import disk


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_file_of_weights_has_the_mode_that_the_umask_leaves(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        weights.save({"a": torch.ones(3)}, tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
    assert load_file(tmp_path / "file")["a"].tolist() == [1, 1, 1]


def test_a_full_disk_is_an_error_of_the_system_that_names_the_file(tmp_path: Path) -> None:
    with disk(tmp_path, "64k"):
        with pytest.raises(OSError) as caught:
            weights.save({"a": torch.ones(100_000)}, tmp_path / "file")
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "file"))
