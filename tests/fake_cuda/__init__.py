"""The GPU's code paths on a machine without a GPU: real code, fake CUDA tensors, no kernel.

`run("tests.fake_cuda.steps")` runs a module in a process of its own where torch's CPU build takes fake
tensors on "cuda" for real ones. The module prints one line of JSON, which `run` returns. In that process, a
fork of one that has torch imported (server.py):

    card.py      the pretended GPU: `with card.pretended((8, 0)) as counts: ...`
    counting.py  the cost of the code inside: launches, casts, and host-device waits with their place
    parts.py     a fake model, microbatches, and all that a step needs

Shapes, devices, dtypes and the order of operators are torch's own. Values are not: whatever the host reads
from the device is made up (`pretended(answer=...)`). No fake tensor shows numbers, speed, memory or NCCL.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]
_SOURCE = Path(__file__).with_name("stub.cpp")
_WAIT_SECONDS = 240


def run(module: str, *arguments: object) -> Any:
    """What `python -m MODULE ARGUMENTS` prints as its last line, read as JSON; skips where it cannot run."""
    server = _server()
    assert server.stdin and server.stdout
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder, "out"), Path(folder, "err")
        server.stdin.write(json.dumps([module, *map(str, arguments), *map(str, said)]) + "\n")
        server.stdin.flush()
        assert server.stdout.readline() == "0\n", said[1].read_text()
        return json.loads(said[0].read_text().splitlines()[-1])


@functools.cache
def _server() -> subprocess.Popen[str]:
    """Forks for each module: what they all import takes longer than most of them do. It ends with us."""
    told = dict(os.environ) | {"LD_PRELOAD": str(_stub()), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    words = [sys.executable, "-m", "tests.fake_cuda.server", str(_WAIT_SECONDS)]
    server = subprocess.Popen(
        words, cwd=_ROOT, env=told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.communicate()


def _stub() -> Path:
    """The compiled stub. It is built once per version of torch and of its source, in some 20 seconds."""
    if sys.platform != "linux":
        pytest.skip("the stub of a CUDA device is preloaded, which only Linux does as expected")
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed: run tools/install-debian-packages.sh")
    version = metadata.version("torch")
    if any((_torch_folder() / "lib").glob("libtorch_cuda*")):
        pytest.skip(f"torch {version} is a build for GPUs; the pretended one needs a build for CPUs")
    content = hashlib.blake2b(_SOURCE.read_bytes() + version.encode(), digest_size=8).hexdigest()
    folder = _ROOT / "build" / "fake-cuda"
    folder.mkdir(parents=True, exist_ok=True)
    built = folder / f"stub-{content}.so"
    with open(folder / "lock", "w") as lock:  # several test processes may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _compile(compiler, built)
    return built


def _compile(compiler: str, built: Path) -> None:
    torch_folder = _torch_folder()
    unfinished = built.with_suffix(".unfinished")
    includes = [torch_folder / "include", torch_folder / "include" / "torch" / "csrc" / "api" / "include"]
    libraries = torch_folder / "lib"
    words = [compiler, "-std=c++20", "-shared", "-fPIC", _SOURCE, "-o", unfinished]
    words += [f"-I{folder}" for folder in includes]
    words += [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lc10", "-ltorch_cpu"]
    ended = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    unfinished.replace(built)


def _torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
