"""Real hosts: namespaces with ssh between them, sound ones and ones with faults."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.card import Card
from testbed import Cluster
from testbed import ssh as testbed_ssh
from tests.facts import lacking, only
from tests.train import runs
from tests.train.runs import Task

DRAGOMAN = [sys.executable, "-m", "dragoman"]
WAIT_SECONDS = 280.0  # for what takes ten: the machine may be busy


@pytest.fixture(autouse=True, scope="module")
def ssh_is_possible(hosts_are_possible: None) -> None:
    if reason := testbed_ssh.why_not():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def other_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.make_task(tmp_path_factory.mktemp("doctor") / "other", seed=2).data


def doctor(cluster: Cluster, hosts: str, *words: str | Path) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of `dragoman doctor` on the first host."""
    command = [*DRAGOMAN, "doctor", "--hosts", hosts, "--json", *words]
    done = cluster.run(0, command, check=False, timeout_seconds=WAIT_SECONDS)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def found(result: dict[str, Any], name: str, status: str) -> dict[str, dict[str, Any]]:
    """Checks of that name and status, by host."""
    return {c["host"]: c for c in result["checks"] if (c["name"], c["status"]) == (name, status)}


def test_sound_hosts_pass_and_their_links_are_measured(task: Task) -> None:  # noqa: F811
    with Cluster(hosts=3, rate="200mbit", with_ssh=True) as cluster:
        code, result = doctor(cluster, "h0,h1,h2", "--data", task.data, "--config", task.config)
    assert code == 0, result
    assert result["verdict"] in ("ok", "warning")  # hosts that share two cores may differ in speed
    assert found(result, "ports", "ok")
    links = found(result, "link", "ok")
    assert sorted(links) == ["h0 to h1", "h0 to h2", "h1 to h2"]
    for link in links.values():
        there, back = map(float, re.findall(r"([\d.]+) Mbit/s", link["value"]))
        assert 50 < there < 210 and 50 < back < 210, link  # less on a busy machine
    assert found(result, "interface", "ok")["h2"]["value"] == "eth0 (10.77.0.3)"
    assert not lacking(found(result, "host name", "ok")["h1"]["value"], "10.77.0.2")
    assert found(result, "data", "ok") and found(result, "disk", "ok") and found(result, "clock", "ok")


def test_wrong_names_other_data_closed_ports_and_absent_hosts_are_each_named(
    task: Task, other_data: Path
) -> None:  # noqa: F811
    with Cluster(hosts=2, loopback_name=True, with_ssh=True) as cluster:
        cluster.run(1, ["mount", "--bind", other_data, task.data])
        # ssh still gets through
        closed = "to 10.77.0.2 ipproto tcp dport 1024-65534 unreachable"
        cluster.run(0, ["ip", "rule", "add", "pref", "5", *closed.split()])
        code, result = doctor(cluster, "h0,h1,nobody", "--data", task.data)
    assert (code, result["verdict"]) == (1, "error")
    assert list(found(result, "ssh", "error")) == ["nobody"]
    for host, address in (("h0", "10.77.0.1"), ("h1", "10.77.0.2")):
        name = found(result, "host name", "warning")[host]
        assert not lacking(name["advice"], f"'{address} {host}'", "/etc/hosts", "127.0.1.1")
    assert list(found(result, "data", "error")) == ["h1"]
    ports = found(result, "ports", "error")["h0 to h1"]
    assert not lacking(ports["value"], "10.77.0.2", os.strerror(errno.ENETUNREACH).lower())
    assert not lacking(ports["advice"], "h0", "h1")


def torchrun(cluster: Cluster, master: str, task: Task, run: Path) -> list[tuple[int, str]]:  # noqa: F811
    """A training as one rank on each host; exit code and words of each."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    command += [f"--master-addr={master}", "--master-port=29500"]
    train = ["-m", "--", "dragoman", "train", task.config, "--data", task.data, "--run", run]
    started = [
        cluster.popen(
            host,
            [*command, f"--node-rank={host}", *train],
            env={"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for host in (0, 1)
    ]
    said = [process.communicate(timeout=WAIT_SECONDS)[0] for process in started]
    return [(process.returncode, text) for process, text in zip(started, said, strict=True)]


def test_other_data_on_one_host_stops_a_training_before_its_folder_is_made(
    task: Task,  # noqa: F811
    other_data: Path,
    tmp_path: Path,
) -> None:
    with Cluster(hosts=2) as cluster:
        cluster.run(1, ["mount", "--bind", other_data, task.data])
        ends = torchrun(cluster, "10.77.0.1", task, tmp_path / "run")
    assert [code for code, _ in ends] == [1, 1], ends
    (error,) = [line for line in ends[0][1].splitlines() if line.startswith("error: ")]
    assert not lacking(error, "data", "h1", Card.load(task.data / "card.json").fingerprint[:16])
    assert "error:" not in ends[1][1].replace("ChildFailedError:", "")
    assert not (tmp_path / "run").exists()


def test_a_meeting_point_that_means_loopback_stops_a_rank_at_once(task: Task, tmp_path: Path) -> None:  # noqa: F811
    """It would wait for ever: the ranks of other hosts go to the right address."""
    place = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    meeting = {"MASTER_ADDR": "h0", "MASTER_PORT": "29500"}
    with Cluster(hosts=2, loopback_name=True) as cluster:
        words = runs.arguments(task, tmp_path / "run")
        done = cluster.run(
            0, [*DRAGOMAN, *words], env=place | meeting, check=False, timeout_seconds=WAIT_SECONDS
        )
    assert done.returncode == 1
    only(done.stderr.splitlines(), "error:", "h0")
    assert not (tmp_path / "run").exists()


def test_ten_steps_on_two_hosts_end_in_a_block_to_report(task: Task) -> None:  # noqa: F811
    words = ["doctor", "--hosts", "h0,h1", "--data", task.data, "--config", task.config, "--train"]
    with Cluster(hosts=2, rate="100mbit", with_ssh=True) as cluster:
        done = cluster.run(0, [*DRAGOMAN, *words], check=False, timeout_seconds=WAIT_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    block = done.stdout[done.stdout.index("dragoman doctor --train") :]
    rows = dict(line.split(maxsplit=1) for line in block.splitlines()[1:])
    assert rows["hosts"] == "h0 (eth0), h1 (eth0)"
    assert not lacking(rows["devices"], "2 ranks", "cpu")
    assert not lacking(rows["exchange"], "gloo", "fp32")
    assert not lacking(rows["steps"], "10", "fp32")
    assert rows["verdict"].startswith("ok")
    assert "torch" in rows["versions"]
    assert not list(Path("/tmp").glob("dragoman-doctor-*"))
