"""Which of torch's kernels a process uses."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from dragoman.model import kernels
from dragoman.sync import world as worlds
from tests.train.conftest import world_of_one  # noqa: F401  a fixture


@pytest.fixture
def with_cudnn() -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)


@pytest.mark.usefixtures("world_of_one", "with_cudnn")
def test_a_rank_never_uses_cudnn_attention() -> None:
    with worlds.join(60):
        assert not torch.backends.cuda.cudnn_sdp_enabled()


TF32 = """
import torch
from dragoman.model import kernels
kernels.use_tf32()
print(getattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"))
print(torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision())
"""


def test_tf32_is_asked_for_without_a_warning_and_torch_compile_can_look_at_it() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TF32], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["tf32", "True", "high"]


def test_deterministic_kernels_are_asked_for_only_while_wanted() -> None:
    with kernels.deterministic(True):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.utils.deterministic.fill_uninitialized_memory
    assert not torch.are_deterministic_algorithms_enabled()
    with kernels.deterministic(False):
        assert not torch.are_deterministic_algorithms_enabled()
