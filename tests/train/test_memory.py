"""Page faults of a real process, which the kernel counts."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS_OF_TEN_TENSORS = """
import resource, sys, torch
from dragoman.train import memory
if sys.argv[1] == "kept":
    memory.keep_freed()
for _ in range(20):  # 64 MB each; glibc takes ten until it comes upon a block again
    torch.zeros(16 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.zeros(16 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(way: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS_OF_TEN_TENSORS, way], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(
    platform.libc_ver() < ("glibc", "2.35"), reason="an older glibc keeps blocks up to 32 MiB"
)
def test_memory_that_was_freed_is_used_again_without_page_faults() -> None:
    assert faults("kept") < faults("given back") / 10
