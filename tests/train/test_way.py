"""How a run exchanges: chosen at its start, said, recorded, and kept when it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.explain.network import explain
from dragoman.measure import database
from dragoman.rundir import RunFolder
from testbed import Cluster
from tests import ranks
from tests.facts import lacking, only
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

# 1.9 MB of gradients, which take a quarter of a second, beside a twentieth of computing.
LITTLE_COMPUTING = (
    "model.width=128",
    "model.feedforward=512",
    "data.step=128",
    "data.microbatch=64",
    "evaluate.every=100",
)


def test_auto_on_one_machine_is_bit_for_bit_what_nothing_set_is(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    result = runs.train(task, tmp_path, "train.steps=16", "sync.mode=auto", workers=2)
    assert result.returncode == 0, result.stderr
    assert runs.trained(tmp_path, 16) == runs.trained(unbroken(2), 16)
    only(runs.log(tmp_path).splitlines(), "all-reduce in fp32", "25 MiB")
    assert lacking(runs.log(unbroken(2)), "25 MiB")


@pytest.mark.usefixtures("hosts_are_possible")
def test_what_auto_measured_is_kept_and_not_measured_again_when_a_run_continues(
    task: Task, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    chosen = []
    for steps, rate in ((8, "60mbit"), (16, None)):
        with Cluster(hosts=2, rate=rate) as cluster:
            words = runs.arguments(task, run, f"train.steps={steps}", "sync.mode=auto", *LITTLE_COMPUTING)
            for rank in ranks.on_hosts(cluster, "dragoman", words, [1, 1]):
                assert rank.returncode == 0, rank.stderr
        state = json.loads((RunFolder(run).checkpoint(steps) / "state.json").read_text())
        chosen.append(state["choice"])
    # Which one it is depends on how busy this machine is; on the fast link it could be another one.
    assert chosen[1] == chosen[0]
    wire = chosen[0]["way"]["wire"]
    way = f"flat all-reduce in {wire}"
    first, second = (line.partition(way) for line in runs.log(run).splitlines() if f": {way}" in line)
    assert (first[2], first[0] != second[0]) == (second[2], True), "as before, and it says so"
    records = database.read(RunFolder(run).records)
    assert (records.facts.wire, records.facts.exchange) == (wire, "allreduce")
    assert [probe.attempt for probe in records.probes_of("auto")] == [0]
    assert way in explain(records).answer
