"""Something small learnt for real: sentences said backwards."""

import json
import subprocess
import time
from pathlib import Path

from tests.train import runs
from tests.train.runs import Task


def test_two_workers_learn_to_reverse_sentences(task: Task, tmp_path: Path) -> None:
    began = time.monotonic()
    result = runs.train(task, tmp_path, *runs.LEARNING, workers=2)
    assert result.returncode == 0, result.stderr
    words = [*runs.DRAGOMAN, "evaluate", str(tmp_path), "--data", str(task.data), "--part", "dev", "--json"]
    evaluated = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    bleu = evaluated["systems"][0]["scores"]["bleu"]["value"]
    print(f"BLEU {bleu:.1f} after {time.monotonic() - began:.0f} s")
    assert bleu > 90
