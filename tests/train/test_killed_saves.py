"""kill -9 of a process that does nothing but save, a hundred times."""

import json
import subprocess
import sys
from pathlib import Path

from tests.train import killed_saves, runs

KILLS = 100


def test_whatever_moment_a_kill_hits_the_newest_checkpoint_and_the_best_are_sound(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.train.killed_saves", str(tmp_path), "--kills", str(KILLS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * runs.WAIT_SECONDS)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    answer = json.loads(done.stdout)
    in_saves = sum(count for what, count in answer["hits"].items() if what.startswith("a save"))
    assert sum(answer["hits"].values()) == KILLS
    assert in_saves > KILLS / 2
    assert 2e6 < answer["checkpoint_bytes"] < 5e6
    assert answer["most_bytes"] < (killed_saves.MOST_FOLDERS + 0.1) * answer["checkpoint_bytes"]
