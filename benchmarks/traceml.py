"""Runs the truth bench's trainings under traceml-ai, to compare its verdicts on the same injected causes.

    python -m venv ENV && ENV/bin/pip install traceml-ai -c constraints.txt -e .
    ENV/bin/python benchmarks/traceml.py [--only NAME ...] [--out traceml.jsonl]

It covers all scenarios about speed; traceml-ai has no verdicts about learning. Verdict, reason and advice are
quoted from the summary that it writes at the end of a run; traced.py explains how it is attached. Scenarios
with several hosts need root. A scenario takes 20 to 60 s on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.scenarios import SCENARIOS
from benchmarks.truth import Bench
from testbed import why_not

APPLICABLE = [name for name, scenario in SCENARIOS.items() if scenario.config == "speed"]
PARTS = ("input_wait", "forward", "backward", "optimizer", "residual")


def summary(name: str, bench: Bench, written: Path) -> Mapping[str, Any]:
    """Train the scenario with traceml-ai attached; returns its summary of the whole run."""
    # traceml-ai reads these, in its own process and in every rank.
    os.environ |= {"TRACEML_LOGS_DIR": str(written), "TRACEML_SESSION_ID": name}
    bench.train(name, SCENARIOS[name], by_turns=False, program="traced.py")
    content: Mapping[str, Any] = json.loads((written / name / "final_summary.json").read_text())
    return content


def row(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario's result, as written to the results file."""
    verdict, steps = content["primary_diagnosis"], content["step_time"]
    means = {rank: facts["metrics"] for rank, facts in steps["groups"]["rows"].items()}
    return {
        "scenario": name,
        "cause": SCENARIOS[name].cause,
        "traceml_ai": version("traceml-ai"),
        "verdict": verdict["status"],
        "severity": verdict["severity"],
        "why": verdict["summary"],
        "next": verdict["action"],
        "also": [issue["status"] for issue in steps["issues"] if issue["status"] != verdict["status"]],
        "steps": steps["global"]["window"]["steps_analyzed"],
        "milliseconds": {
            rank: {part: mean[f"{part}_ms"] for part in PARTS if mean[f"{part}_ms"] is not None}
            for rank, mean in means.items()
        },
    }


def line(result: Mapping[str, Any]) -> str:
    also = f" (also {', '.join(result['also'])})" if result["also"] else ""
    lines = [f"{result['scenario']:20} {result['verdict']}{also}: {result['why']} {result['next']}"]
    for rank, parts in result["milliseconds"].items():
        times = ", ".join(f"{part} {milliseconds:.0f}" for part, milliseconds in parts.items())
        lines.append(f"{'':20} rank {rank}, ms: {times}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=APPLICABLE, default=APPLICABLE, metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("traceml.jsonl"), help="results, as JSON lines")
    parser.add_argument("--folder", type=Path, help="working folder (default: a temporary one, removed)")
    arguments = parser.parse_args()
    try:
        version("traceml-ai")
    except PackageNotFoundError:
        print("traceml-ai is not installed; --help shows how to install it", file=sys.stderr)
        return 1
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="dragoman-traceml-"))
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(folder)
    if any(bench.where(SCENARIOS[name]).hosts for name in arguments.only) and (reason := why_not()):
        print(f"cannot create hosts here: {reason}", file=sys.stderr)
        return 1
    with open(arguments.out, "a") as file:
        for name in arguments.only:
            result = row(name, summary(name, bench, folder / "traceml"))
            print(line(result), flush=True)
            file.write(json.dumps(result) + "\n")
            file.flush()
    if arguments.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
