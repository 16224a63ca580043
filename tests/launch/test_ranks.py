"""The ranks of one machine, with programs of a few lines in their place."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import psutil

from tests.train import runs

LAUNCHER = [sys.executable, "-m", "dragoman.launch.ranks"]
# Rank 1 leaves first; rank 0 knows why, and takes a moment to say it.
TELLS_LATE = """
import os, sys, time
if os.environ["RANK"] == "0":
    time.sleep(0.5)
    print("the reason", file=sys.stderr)
    sys.exit(3)
sys.exit(1)
"""
WAITS = """
import signal, sys
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: sys.exit(int(sys.argv[1])))
print("up\\n", end="", flush=True)
signal.pause()
"""
# Leaves at the second signal, and says which they were.
TELLS_SIGNALS = """
import signal, sys
heard = []
def note(number, frame):
    print("heard", number, flush=True)
    heard.append(number)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, note)
print("up", flush=True)
while len(heard) < 2:
    signal.pause()
"""
ONE_FAILS = f"""
import os
if os.environ["RANK"] == "1":
    raise SystemExit(7)
{WAITS}
"""
SHOWS_ITS_PLACE = """
import os, socket
listener = os.environ.get("DRAGOMAN_LISTENER")
bound = socket.socket(fileno=int(listener)).getsockname() if listener else None
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
print(*(os.environ[name] for name in names), bound == ("127.0.0.1", int(os.environ["MASTER_PORT"])))
"""


def launched(script: str, *words: str, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    command = [*LAUNCHER, str(ranks), "-c", script, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=runs.WAIT_SECONDS)


def test_every_rank_knows_its_place_and_rank_0_alone_has_the_socket() -> None:
    done = launched(SHOWS_ITS_PLACE, ranks=3)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "0 3 0 3 127.0.0.1 True",
        "1 3 1 3 127.0.0.1 False",
        "2 3 2 3 127.0.0.1 False",
    ]


def test_the_rank_that_knows_the_reason_is_heard_though_another_left_before() -> None:
    done = launched(TELLS_LATE)
    assert (done.returncode, done.stderr) == (3, "the reason\n")


def test_a_rank_that_fails_ends_the_others() -> None:
    done = launched(ONE_FAILS, "0")
    assert (done.returncode, done.stderr) == (7, "")


def stopped(code: str) -> tuple[int | None, str]:
    with runs.started([*LAUNCHER, "2", "-c", WAITS, code]) as process:
        assert process.stdout
        for _ in range(2):
            assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=runs.WAIT_SECONDS)
    return process.returncode, stderr


def test_a_wish_to_stop_is_passed_on_and_told_apart_by_whether_all_saved() -> None:
    assert stopped("0") == (0, "")
    code, stderr = stopped("1")
    assert code == 1
    assert re.findall(r"(\d+) (?:\D* )?(\d+) ranks", stderr) == [("2", "2")]


def test_ranks_receive_each_signal_and_can_tell_ctrl_c_from_the_end_of_a_machine() -> None:
    with runs.started([*LAUNCHER, "1", "-c", TELLS_SIGNALS]) as process:
        assert process.stdout
        for said in ("up", "heard 2", "heard 15"):
            assert process.stdout.readline() == f"{said}\n"
            if said != "heard 15":
                process.send_signal(signal.SIGINT if said == "up" else signal.SIGTERM)
        assert process.wait(runs.WAIT_SECONDS) == 0


def test_ranks_end_with_a_launcher_that_is_killed_before_they_run_any_code_of_ours() -> None:
    with runs.started(
        [*LAUNCHER, "2", "-c", "import os, time; os.write(1, b'up\\n'); time.sleep(600)"]
    ) as process:
        assert process.stdout
        for _ in range(2):
            assert process.stdout.readline() == "up\n"
        ranks = runs.ranks_of(process.pid)
        process.kill()
        assert len(ranks) == 2
        assert not psutil.wait_procs(ranks, runs.WAIT_SECONDS)[1]
