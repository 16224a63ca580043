"""Measures what recording costs as a share of step time. The goal is under 0.5 %.

    python benchmarks/overhead.py [--only demo base] [--repeat 3] [--out overhead.jsonl]

There are two cases: configs/demo.toml with two workers, and configs/transformer-base.toml with 1,024 tokens
per step and one worker (on the demo corpus, so with a smaller vocabulary). Each case gets two figures: the
cost that the recorder itself counted (`recording_seconds` over the seconds of training), and how much longer
steps are with recording than without. For the second, spells of steps with and without recording alternate
(unrecorded.py): each spell with recording is divided by the mean of its two neighbours without, and the
median and quartiles are shown. Neither figure includes the steps without exchange, one in 500 and five at the
start, which cost 0.2 % of computing if there are several ranks, nor the probes of device and link before the
first step.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.trainings import HERE, PYTHON
from dragoman.explain.time_outside_steps import outside_seconds
from dragoman.measure import database
from dragoman.rundir import RunFolder

GOAL = 0.005
MOST_SECONDS = 1800


@dataclass(frozen=True)
class Case:
    config: str
    workers: int
    spell_steps: int  # a multiple of measure.every
    spells: int
    settings: tuple[str, ...] = ()


CASES = {
    "demo": Case("demo.toml", workers=2, spell_steps=50, spells=15),
    "base": Case(
        "transformer-base.toml",
        workers=1,
        spell_steps=3,
        spells=11,
        settings=("data.unit=tokens", "data.step=1024", "data.microbatch=1024", "measure.every=3"),
    ),
}


def measure(case: Case, data: Path, folder: Path) -> dict[str, Any]:
    steps = case.spell_steps * case.spells + 1
    never = [f"{name}.every={10 * steps}" for name in ("evaluate", "checkpoint")]
    settings = [*case.settings, *never, f"train.steps={steps}", "evaluate.beam=1"]
    folder.mkdir(parents=True)
    times = folder / "times.txt"
    command = [*PYTHON, "dragoman.launch.ranks", str(case.workers)]
    command += [str(HERE / "unrecorded.py"), str(times), str(case.spell_steps)]
    command += ["train", str(HERE.parent / "configs" / case.config), "--data", str(data)]
    command += ["--run", str(folder / "run"), *(word for pair in settings for word in ("--set", pair))]
    threads = str(max(1, len(os.sched_getaffinity(0)) // case.workers))
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=MOST_SECONDS)
    is_on, seconds = np.loadtxt(times).T
    ratios = [
        seconds[place] / seconds[[place - 1, place + 1]].mean()
        for place in range(1, len(seconds) - 1)
        if is_on[place]
    ]
    low, middle, high = np.percentile(ratios, (25, 50, 75)) - 1
    records = database.read(RunFolder(folder / "run").records)
    outside = outside_seconds(records)
    assert outside and records.facts.recording_seconds is not None
    return {
        "step_seconds": float(np.median(seconds[is_on == 1]) / case.spell_steps),
        "counted_share": records.facts.recording_seconds / outside.training,
        "share": float(middle),
        "share_quartiles": [float(low), float(high)],
        "spells": len(ratios),
    }


def line(name: str, result: dict[str, Any]) -> str:
    low, high = (100 * share for share in result["share_quartiles"])
    counted = f"{name}: step {result['step_seconds']:.3f} s; counted {100 * result['counted_share']:.2f} %"
    spread = f"quartiles {low:+.2f} to {high:+.2f}, {result['spells']} spells"
    return f"{counted}; measured {100 * result['share']:+.2f} % ({spread})"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="only these cases")
    parser.add_argument("--repeat", type=int, default=1, help="number of repetitions (1)")
    parser.add_argument("--out", type=Path, default=Path("overhead.jsonl"), help="results, as JSON lines")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dragoman-overhead-"))
    data = folder / "data"
    command = [*PYTHON, "dragoman", "prepare", "demo", "-o", str(data)]
    subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS)
    shares = []
    with open(arguments.out, "a") as file:
        for repetition in range(arguments.repeat):
            for name in arguments.only:
                result = measure(CASES[name], data, folder / f"{name}-{repetition}")
                print(line(name, result), flush=True)
                file.write(json.dumps({"case": name, "repetition": repetition, **result}) + "\n")
                file.flush()
                shares.append(result["counted_share"])
    shutil.rmtree(folder)
    return 0 if max(shares) < GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
