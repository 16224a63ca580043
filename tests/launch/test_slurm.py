"""Ranks started by Slurm: its variables, and the batch file, which a shell runs with stand-ins for Slurm."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.launch import sbatch, slurm
from dragoman.launch.sbatch import Batch
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

RANK_3 = {
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_NUM_TASKS": "5",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
    "SLURM_STEP_NODELIST": "gpu[08-10]",
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
}


def test_variables_of_slurm_become_those_of_torch() -> None:
    assert slurm.translate(RANK_3) == {
        "RANK": "3",
        "WORLD_SIZE": "5",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "gpu08",
        "MASTER_PORT": "27110",
    }
    assert slurm.translate(RANK_3 | {"SLURM_NODEID": "2"})["LOCAL_WORLD_SIZE"] == "1"


def test_two_steps_of_a_job_do_not_meet() -> None:
    assert slurm.translate(RANK_3 | {"SLURM_STEP_ID": "1"})["MASTER_PORT"] == "27111"


def test_a_batch_script_and_a_step_of_one_task_are_no_ranks() -> None:
    script = {name: value for name, value in RANK_3.items() if "STEP" not in name}
    assert slurm.translate(script) == {}
    assert slurm.translate(RANK_3 | {"SLURM_STEP_ID": "4294967291"}) == {}
    assert slurm.translate(RANK_3 | {"SLURM_STEP_NUM_TASKS": "1"}) == {}
    assert slurm.translate({}) == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("login", ["login"]),
        ("a,b", ["a", "b"]),
        ("gpu[08-10,12],login", ["gpu08", "gpu09", "gpu10", "gpu12", "login"]),
        ("r[1-2]n[3,7]", ["r1n3", "r1n7", "r2n3", "r2n7"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
    ],
)
def test_node_lists_are_read_in_order(text: str, names: list[str]) -> None:
    assert slurm.node_names(text) == names


def test_a_first_node_that_calls_itself_loopback_takes_the_address_others_use() -> None:
    first = RANK_3 | {"SLURM_NODEID": "0", "SLURM_STEP_NODELIST": "localhost,192.0.2.7"}
    address = slurm.translate(first)["MASTER_ADDR"]
    assert address != "localhost"
    assert not address.startswith("127.")


def launch_slurm(task: Task, run: Path, file: Path, *extra: str) -> subprocess.CompletedProcess[str]:
    words = ["launch", "slurm", str(task.config), "--data", str(task.data), "--run", str(run)]
    words += ["--nodes", "2", "--workers-per-node", "4", "-o", str(file), *extra]
    return subprocess.run([*runs.DRAGOMAN, *words], capture_output=True, text=True)


def test_a_batch_file_starts_the_same_training_on_every_node(task: Task, tmp_path: Path) -> None:
    run, file = tmp_path / "it's a run; $HOME", tmp_path / "my.sbatch"
    done = launch_slurm(
        task, run, file, "--time", "2-00:00:00", "--partition", "gpu", "--set", "train.rate=0.1"
    )
    assert done.returncode == 0, done.stderr
    assert f"sbatch {file}" in done.stdout
    text = file.read_text()
    for line in ("nodes=2", "ntasks-per-node=4", "time=2-00:00:00", "partition=gpu"):
        assert f"\n#SBATCH --{line}\n" in text
    # after the failure of a node, Slurm itself starts the file again, which adds to its output
    for line in ("requeue", "open-mode=append", "signal=B:USR1@300"):
        assert f"\n#SBATCH --{line}\n" in text
    # a shell reads from it the words that were meant, with srun replaced by one that shows them
    (tmp_path / "srun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "srun").chmod(0o755)
    shown = subprocess.run(
        ["bash", file], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    words = shown.stdout.splitlines()
    assert words[words.index(sys.executable) :] == [
        sys.executable,
        *["-m", "dragoman", "train", str(task.config), "--data", str(task.data), "--run", str(run)],
        *["--set", "train.rate=0.1"],
    ]


HOSTILE = [
    "; reboot",
    "$(reboot)",
    "`reboot`",
    "' reboot '",
    '" reboot "',
    "| cat",
    "> x",
    "&",
    "\\",
    "*",
    "~",
    "!!",
]
HOSTILE += ["--uid=0", "#SBATCH", "a\nb", "a\rb", "a\x1b[2J", "a\u2028b", "\u202eab", "{job_name}", "%s", "é"]


@pytest.mark.parametrize("word", HOSTILE)
def test_a_shell_reads_from_a_batch_file_the_words_that_were_meant_or_it_is_refused(word: str) -> None:
    arguments = ["train", word, "--run", word]
    try:
        text = sbatch.text(arguments, Path(word), Batch(1, 1))
    except UsageError:
        assert not word.isprintable()
        return
    lines = text.splitlines()
    assert sum(line.startswith("#SBATCH") for line in lines) == 7  # none was added
    start, end = "srun --kill-on-bad-exit=1 --cpu-bind=none ", " &"
    (line,) = (line for line in lines if line.startswith(start))
    assert line.endswith(end)
    command = line.removeprefix(start).removesuffix(end)
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines()[3:] == arguments


@pytest.mark.parametrize("value", [word for word in HOSTILE if word not in ("--uid=0", "%s", "é")])
def test_options_of_sbatch_are_plain_values(value: str) -> None:
    for batch in (Batch(1, 1, time=value), Batch(1, 1, partition=value)):
        with pytest.raises(UsageError):
            sbatch.text(["train"], Path("run"), batch)


def test_what_could_change_the_batch_file_is_refused(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "my.sbatch"
    for run, extra in (
        (tmp_path / "a\nb", []),
        (tmp_path / "run", ["--time", "1:00\n#SBATCH --uid=0"]),
        (tmp_path / "run", ["--partition", "gpu --uid=0"]),
        (tmp_path / "run", ["--set", "train.steps=no"]),
    ):
        done = launch_slurm(task, run, file, *extra)
        assert done.returncode == 2, done.stderr
        assert not file.exists()


# Slurm's commands. srun runs one rank; scancel signals it; scontrol writes down what was asked of it.
STAND_INS = {
    "srun": """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
echo $$ > "$STAND_IN/rank"
exec ${STAND_IN_RANK:+"$STAND_IN_RANK"} "$@"
""",
    "scancel": """#!/bin/sh
[ "$*" = "--signal=TERM 4711" ] && kill -TERM "$(cat "$STAND_IN/rank")"
""",
    "scontrol": """#!/bin/sh
echo "$*" >> "$STAND_IN/asked"
""",
}
# Ends with one exit code by itself, with another after SIGTERM; it says when it can be told to stop.
RANK = """#!/bin/bash
trap 'sleep 0.2; exit {after_signal}' TERM
touch "$STAND_IN/up"
[ {by_itself} ] && exit {by_itself}
while :; do sleep 0.05; done
"""


class Job:
    """A batch file as Slurm would run it, with stand-ins for its commands in a folder."""

    def __init__(self, folder: Path, file: Path):
        for name, text in STAND_INS.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self.folder, self.file = folder, file
        self.environment = {
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "STAND_IN": str(folder),
            "SLURM_JOB_ID": "4711",
        }

    def started(self) -> AbstractContextManager[subprocess.Popen[str]]:
        return runs.started(["bash", self.file], env=self.environment, preexec_fn=runs.core_for(1))

    def rank(self) -> int:
        return int((self.folder / "rank").read_text())

    def asked(self) -> list[str]:
        """What the file asked of scontrol."""
        asked = self.folder / "asked"
        return asked.read_text().splitlines() if asked.exists() else []


REQUEUE = ["requeue 4711"]


@pytest.mark.parametrize(
    ("by_itself", "after_signal", "to_shell", "code", "asked"),
    [
        ("0", 0, [], 0, []),  # finished
        ("3", 0, [], 3, []),  # failed
        ("", 0, [signal.SIGUSR1], 0, REQUEUE),  # saved before the end of its time
        ("", 0, [signal.SIGUSR1, signal.SIGUSR1], 0, REQUEUE),
        ("", 1, [signal.SIGUSR1], 1, []),  # could not save
        ("", 0, [signal.SIGTERM], 0, []),  # cancelled
        ("", 0, [signal.SIGUSR1, signal.SIGTERM], 0, []),  # cancelled while it saves
        ("", 5, [signal.SIGTERM], 5, []),
    ],
)
def test_a_job_is_requeued_only_if_it_saved_because_its_time_was_up(
    by_itself: str,
    after_signal: int,
    to_shell: Sequence[signal.Signals],
    code: int,
    asked: list[str],
    tmp_path: Path,
) -> None:
    file, rank = tmp_path / "my.sbatch", tmp_path / "a rank"
    sbatch.write(["train"], Path("run"), Batch(1, 1), file)
    rank.write_text(RANK.format(by_itself=by_itself, after_signal=after_signal))
    rank.chmod(0o755)
    job = Job(tmp_path, file)
    job.environment["STAND_IN_RANK"] = str(rank)
    with job.started() as shell:
        runs.wait_until("the rank", (tmp_path / "up").exists, None if by_itself else shell)
        for number in to_shell:
            shell.send_signal(number)
            if number == signal.SIGTERM:
                os.kill(job.rank(), signal.SIGTERM)  # Slurm cancels by telling the shell and all ranks
        assert shell.wait(runs.WAIT_SECONDS) == code
    assert job.asked() == asked


def test_a_job_in_three_parts_ends_with_the_bytes_of_an_unbroken_run(
    task: Task, unbroken: Unbroken, tmp_path: Path
) -> None:
    """The first part saves because its time is up, the second loses its node, the third finishes."""
    run, file = tmp_path / "run", tmp_path / "my.sbatch"
    assert launch_slurm(task, run, file).returncode == 0
    job = Job(tmp_path, file)
    for step, is_node_lost in ((10, False), (25, True)):
        with job.started() as shell:
            runs.wait_until(f"step {step}", lambda step=step: runs.reached(run, step), shell)
            if is_node_lost:
                runs.kill_tree(shell.pid)
            else:
                shell.send_signal(signal.SIGUSR1)
                assert shell.wait(runs.WAIT_SECONDS) == 0
    assert job.asked() == REQUEUE
    with job.started() as shell:
        assert shell.wait(runs.WAIT_SECONDS) == 0
    assert job.asked() == REQUEUE, "none for a finished run"
    assert len(runs.resumed_at(run)) == 2
    assert runs.trained(run) == runs.trained(unbroken(1))
