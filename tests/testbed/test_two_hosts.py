"""Training over two hosts, started with torchrun on each."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from testbed import Cluster

TENSOR_BYTES = 5_000_000
CONFIG = """
[model]
width = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
feedforward = 64
[data]
step = 512
microbatch = 128
[train]
steps = 12
schedule = "constant"
rate = 0.003
warmup_steps = 4
[evaluate]
every = 6
beam = 1
[checkpoint]
every = 4
[sync]
timeout_seconds = 60
"""


def torchrun(cluster: Cluster, program: Sequence[str | Path], timeout_seconds: float = 200) -> list[str]:
    """Runs a program as one worker on every host, each on one core of its own; what each printed.

    A worker computes with as many threads as it has cores, and the order of summation follows.
    """
    cores = sorted(os.sched_getaffinity(0))
    nodes = ["--nnodes", str(len(cluster.names)), "--nproc-per-node=1"]
    master = ["--master-addr=h0", "--master-port=29500"]
    command = [sys.executable, "-m", "torch.distributed.run", *nodes, *master]
    started = [
        cluster.popen(
            host,
            ["taskset", "-c", str(cores[host % len(cores)]), *command, f"--node-rank={host}", *program],
            env={"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for host in range(len(cluster.names))
    ]
    with ThreadPoolExecutor() as readers:  # a host whose pipe is full would wait, and the other for it
        said = list(readers.map(lambda process: _ended(process, cluster, timeout_seconds), started))
    for process in started:
        assert process.returncode == 0, "\n".join(said)
    return said


def _ended(process: subprocess.Popen[str], cluster: Cluster, timeout_seconds: float) -> str:
    """What it printed; where every process stands, if it does not end in time."""
    try:
        return process.communicate(timeout=timeout_seconds)[0]
    except subprocess.TimeoutExpired:
        for host in range(len(cluster.names)):
            for pid in cluster.processes(host):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGABRT)  # each prints its stack: PYTHONFAULTHANDLER
        return process.communicate()[0]


def dragoman(*arguments: str | Path) -> None:
    """Here, on as many cores as the two hosts have together."""
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    command = ["taskset", "-c", cores, sys.executable, "-m", "dragoman", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A language of ten words, and its mirror image."""
    draw = random.Random(1)
    words = ["red", "green", "blue", "one", "two", "three", "dog", "cat", "bird", "fish"]
    for name, lines in (("train", 400), ("dev", 20)):
        sentences = [[draw.choice(words) for _ in range(draw.randint(3, 8))] for _ in range(lines)]
        (tmp_path / f"{name}.en").write_text("".join(" ".join(words) + "\n" for words in sentences))
        (tmp_path / f"{name}.de").write_text("".join(" ".join(words)[::-1] + "\n" for words in sentences))
    pair = [f"{language}={tmp_path}/train.{language}" for language in ("en", "de")]
    heldout = [f"{language}={tmp_path}/dev.{language}" for language in ("en", "de")]
    heldout_options = [word for side in heldout for word in ("--dev", side)]
    dragoman("prepare", *pair, *heldout_options, "--set", "vocabulary.size=64", "-o", tmp_path / "data")
    return tmp_path / "data"


def test_an_all_reduce_sends_what_the_ring_formula_says() -> None:
    with Cluster(hosts=2, rate="1gbit") as cluster:
        said = torchrun(cluster, [Path(__file__).with_name("allreduce.py"), str(TENSOR_BYTES)])
    for text in said:
        sent = [int(line.split()[1]) for line in text.splitlines() if line.startswith("sent ")]
        assert len(sent) == 3
        # the least: on a busy machine TCP may send a segment twice
        assert min(sent) == pytest.approx(2 * (2 - 1) / 2 * TENSOR_BYTES, rel=0.02)


def test_two_hosts_train_the_same_weights_as_two_local_workers(data: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    with Cluster(hosts=2, rate="1gbit") as cluster:
        # "--": torchrun takes --run for a short form of its own --run-path, even after the program's name
        torchrun(
            cluster, ["-m", "--", "dragoman", "train", config, "--data", data, "--run", tmp_path / "hosts"]
        )
        received, sent = cluster.transferred_bytes(1)
        assert min(received, sent) > 12 * 100_000, "the gradients went over the link"
    dragoman("train", config, "--data", data, "--run", tmp_path / "local", "--workers", "2")
    weights = [
        sorted((tmp_path / run / "checkpoints").glob("*/model.safetensors"))[-1] for run in ("hosts", "local")
    ]
    assert weights[0].parent.name == weights[1].parent.name == "step-00000012"
    assert weights[0].read_bytes() == weights[1].read_bytes()
