"""Something small learnt for real: sentences said backwards."""

import json
import subprocess
import time
from pathlib import Path

from tests.train import runs
from tests.train.runs import Task


def test_two_workers_learn_to_reverse_sentences(task: Task, tmp_path: Path) -> None:
    settings = (
        "model.width=64",
        "model.heads=4",
        "model.feedforward=128",
        "model.dropout=0",
        "model.attention_dropout=0",
        "model.feedforward_dropout=0",
        "data.step=1024",
        "data.microbatch=512",
        "train.steps=400",
        "train.schedule=linear",
        "train.rate=0.005",
        "train.warmup_steps=40",
        "evaluate.every=200",
        "checkpoint.every=200",
        "measure.every=50",
    )
    began = time.monotonic()
    result = runs.train(task, tmp_path, *settings, workers=2)
    assert result.returncode == 0, result.stderr
    words = [*runs.DRAGOMAN, "evaluate", str(tmp_path), "--data", str(task.data), "--part", "dev", "--json"]
    scores = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    print(f"BLEU {scores['bleu']['value']:.1f} after {time.monotonic() - began:.0f} s")
    assert scores["bleu"]["value"] > 90
