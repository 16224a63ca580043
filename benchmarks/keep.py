"""Records runs of the truth bench for tests/runs, where explainers are tested without training.

    python benchmarks/keep.py [--only NAME ...] [--into tests/runs]

Each scenario is trained once with its cause active from beginning to end, and its records are kept in a small
file named after it. A run that the report gets wrong is not kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.scenarios import SCENARIOS
from benchmarks.truth import Bench, wrong
from dragoman.rundir import RunFolder

MOST_BYTES = 300_000


def keep(run: Path, kept: Path) -> None:
    """Copy the records without free pages; the run is renamed after the file, and hosts are numbered."""
    kept.unlink(missing_ok=True)
    with closing(sqlite3.connect(RunFolder(run).records)) as database:
        database.execute("VACUUM INTO ?", (str(kept),))
    with closing(sqlite3.connect(kept)) as database:
        facts = {key: json.loads(value) for key, value in database.execute("SELECT key, value FROM facts")}
        facts |= {"name": kept.stem, "hosts": [f"h{host}" for host in range(len(facts["hosts"]))]}
        rows = [(json.dumps(value), key) for key, value in facts.items()]
        database.executemany("UPDATE facts SET value = ? WHERE key = ?", rows)
        database.commit()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME")
    parser.add_argument("--into", type=Path, default=Path(__file__).parents[1] / "tests" / "runs")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="dragoman-keep-"))
    bench, kept = Bench(folder), 0
    for name in arguments.only:
        scenario = SCENARIOS[name]
        faults = wrong(scenario, bench.train(name, scenario, by_turns=False))
        run = max((folder / "runs").glob(f"{name}-*"), key=lambda path: path.stat().st_mtime)
        if not faults:
            keep(run, arguments.into / f"{name}.db")
            kept += 1
        print(f"{name}: {'; '.join(faults) or 'kept'}", flush=True)
    shutil.rmtree(folder)
    return 0 if kept == len(arguments.only) else 1


if __name__ == "__main__":
    sys.exit(main())
