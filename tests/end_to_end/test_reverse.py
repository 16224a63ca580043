"""Something small learnt for real: sentences said backwards."""

import json
import subprocess
from pathlib import Path

from tests.train import runs
from tests.train.runs import Task


def test_two_workers_learn_to_reverse_sentences(task: Task, learnt: Path) -> None:
    words = [*runs.DRAGOMAN, "evaluate", str(learnt), "--data", str(task.data), "--part", "dev", "--json"]
    evaluated = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert evaluated["systems"][0]["scores"]["bleu"]["value"] > 90
