"""Hosts without a shared disk: the run follows rank 0, and every host has the newest checkpoint."""

from pathlib import Path

from dragoman.checkpoint import saved_state
from dragoman.measure import database
from dragoman.rundir import RunFolder
from tests.facts import lacking, only
from tests.train import hosts, runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

HALF = 24


def test_rank_0_moves_to_another_host_and_back_and_the_run_continues_bit_for_bit(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    a, b = ("a", tmp_path / "a"), ("b", tmp_path / "b")
    runs.copy_stopped_at(unbroken(2), tmp_path / "a" / "run", HALF)
    sent = []
    for row, steps in (([b, a], 32), ([a, b], runs.LAST)):
        result = hosts.train(task, row, f"train.steps={steps}")
        assert result.returncode == 0, result.stderr
        sent += hosts.sent(result)
    # On the way back nothing is sent: as the second host, a kept its own copy of all that b made.
    assert sent == [("a b", 24), ("a b", None)], "a checkpoint, and the records"
    folder = RunFolder(a[1] / "run")
    assert runs.trained(folder.path) == runs.trained(unbroken(2))
    kept = database.read(folder.records)
    assert kept.steps["step"].tolist() == list(range(1, runs.LAST + 1))
    assert [attempt.first_step for attempt in kept.attempts] == [1, HALF + 1, 33]
    assert sorted(set(runs.steps_in_log(folder.path))) == list(range(1, runs.LAST + 1))
    assert folder.best.resolve().parent == folder.checkpoints.resolve()
    saved_state.verify(folder.best)
    assert not [path for path in tmp_path.rglob("*") if ".unfinished" in path.name or ".seen" in path.name]


def test_where_rank_0_has_the_run_the_others_get_its_newest_checkpoint_and_keep_no_more_than_it(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    runs.copy_stopped_at(unbroken(2), tmp_path / "a" / "run", 40)
    runs.copy_stopped_at(unbroken(2), tmp_path / "b" / "run", 32)
    row = [("a", tmp_path / "a"), ("b", tmp_path / "b"), ("c", tmp_path / "c")]
    result = hosts.train(task, row, "train.steps=41", "checkpoint.keep_last=1")
    assert result.returncode == 0, result.stderr
    assert hosts.sent(result) == [("a b c", 40)]
    saved_state.verify(RunFolder(tmp_path / "c" / "run").checkpoint(40))
    assert runs.trained(tmp_path / "b" / "run", 41) == runs.trained(tmp_path / "a" / "run", 41)
    assert RunFolder(tmp_path / "c" / "run").checkpoint_steps() == [40]
    assert len(RunFolder(tmp_path / "b" / "run").checkpoint_steps()) <= 2  # the newest, and the best


def test_the_history_that_survived_counts_before_later_steps_of_an_abandoned_one(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    a, b = ("a", tmp_path / "a"), ("b", tmp_path / "b")
    runs.copy_stopped_at(unbroken(2), a[1] / "run", HALF)
    runs.copy_stopped_at(unbroken(2), b[1] / "run", 40)  # lost at that step; a continued alone from step 24
    assert hosts.train(task, [a], "train.steps=32").returncode == 0
    result = hosts.train(task, [a, b])
    assert result.returncode == 0, result.stderr
    assert runs.resumed_at(a[1] / "run") == [HALF, 32]
    assert runs.trained(a[1] / "run") == runs.trained(b[1] / "run")


def test_hosts_that_share_a_disk_send_nothing(task: Task, unbroken: Unbroken, tmp_path: Path) -> None:
    runs.copy_stopped_at(unbroken(2), tmp_path / "disk" / "run", 40)
    (tmp_path / "other name").symlink_to(tmp_path / "disk")
    result = hosts.train(task, [("a", tmp_path / "other name"), ("b", tmp_path / "disk")])
    assert result.returncode == 0, result.stderr
    assert runs.resumed_at(tmp_path / "disk" / "run") == [40]
    assert not hosts.sent(result)
    assert runs.trained(tmp_path / "disk" / "run") == runs.trained(unbroken(2))


def test_a_damaged_checkpoint_is_replaced_by_another_hosts_sound_one(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    for host in "ab":
        runs.copy_stopped_at(unbroken(2), tmp_path / host / "run", 40)
    model = RunFolder(tmp_path / "a" / "run").checkpoint(40) / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1] + b"x")
    result = hosts.train(task, [("a", tmp_path / "a"), ("b", tmp_path / "b")])
    assert result.returncode == 0, result.stderr
    only(result.stdout.splitlines(), "step-00000040.damaged")
    assert ("b a", 40) in hosts.sent(result)
    assert runs.trained(tmp_path / "a" / "run") == runs.trained(unbroken(2))


def test_settings_are_compared_with_those_of_the_host_that_has_the_run(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    runs.copy_stopped_at(unbroken(2), tmp_path / "a" / "run", 40)
    before = runs.snapshot(tmp_path)
    result = hosts.train(task, [("b", tmp_path / "b"), ("a", tmp_path / "a")], "train.seed=2")
    assert result.returncode != 0
    assert not lacking(result.stderr, "train.seed", 1, 2)
    assert runs.snapshot(tmp_path) == before
    assert not (tmp_path / "b").exists()
