"""sockeye, for slow_link_peers.py: prepares its data once, then is started by torchrun on every host.

    sockeyed.py TASK prepare
    sockeyed.py TASK CLOCK STEPS

What is not named here is sockeye's default: a step exchanges all gradients in fp32 through DDP.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

# Its prepared data is a pickle of its own making, which torch reads only when told to.
os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"

from sockeye import prepare_data, train, training
from sockeye.data_io import Batch
from task import Clock, Task

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")


def prepare(task: Task) -> None:
    words = [*SPECIAL, *map(str, range(len(SPECIAL), task.vocabulary))]
    vocabulary = task.text("sockeye.json")
    vocabulary.write_text(json.dumps({word: number for number, word in enumerate(words)}))
    sys.argv[1:] = ["--source", str(task.text("train.source")), "--target", str(task.text("train.target"))]
    sys.argv += ["--source-vocab", str(vocabulary), "--target-vocab", str(vocabulary), "--shared-vocab"]
    sys.argv += ["--output", str(prepared(task)), "--max-processes", "1"]
    prepare_data.main()


def prepared(task: Task) -> Path:
    return task.folder / "sockeye"


def options(task: Task, output: Path, steps: int) -> list[str]:
    size = task.model
    both = {
        "--transformer-model-size": size["width"],
        "--num-embed": size["width"],
        "--transformer-attention-heads": size["heads"],
        "--transformer-feed-forward-num-hidden": size["feedforward"],
        "--transformer-dropout-prepost": task.dropout,
        "--transformer-dropout-attention": task.dropout,
        "--transformer-dropout-act": task.dropout,
    }
    words = ["--prepared-data", str(prepared(task)), "--output", str(output), "--use-cpu", "--dist"]
    words += ["--validation-source", str(task.text("dev.source"))]
    words += ["--validation-target", str(task.text("dev.target"))]
    words += ["--num-layers", f"{size['encoder_layers']}:{size['decoder_layers']}"]
    words += [word for name, value in both.items() for word in (name, f"{value}:{value}")]
    words += ["--weight-tying-type", "src_trg_softmax", "--batch-type", "word"]
    words += ["--batch-size", str(task.tokens), "--initial-learning-rate", str(task.rate)]
    words += ["--learning-rate-scheduler-type", "none", "--decode-and-evaluate", "0"]
    return words + ["--max-updates", str(steps + 1), "--checkpoint-interval", str(steps + 1)]


def main() -> None:
    task = Task.load(Path(sys.argv[1]))
    if sys.argv[2] == "prepare":
        prepare(task)
        return
    clock = Clock(Path(sys.argv[2]), int(sys.argv[3]), parameters=0)
    step = training.EarlyStoppingTrainer._step

    def timed(trainer: training.EarlyStoppingTrainer, batch: Batch) -> bool:
        is_update = bool(step(trainer, batch))
        clock.parameters = sum(
            each.numel() for each in trainer.sockeye_model.parameters() if each.requires_grad
        )
        clock.step(int(batch.labels["target_label"].ne(0).sum()))
        if clock.is_over:  # before it saves and evaluates
            sys.exit(0)
        return is_update

    training.EarlyStoppingTrainer._step = timed
    sys.argv[1:] = options(task, clock.file.with_suffix(""), clock.steps)
    train.main()


if __name__ == "__main__":
    main()
