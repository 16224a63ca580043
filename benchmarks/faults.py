"""The bench of faults: trainings over hosts of the test bed, which random faults disturb and must not end.

    python benchmarks/faults.py --faults 500 --seed 1 --out results.jsonl
    python benchmarks/faults.py --table results.jsonl

Each run has a seed of its own: two to four hosts, a way of exchange, and a few faults of random kinds
(fault_kinds.py), one after the other at random moments. After each run its history, weights, checkpoints,
processes and records are checked (fault_checks.py) against a run that nobody disturbed. Runs whose results
are in the file already are not made again. What goes wrong keeps its folder beside the results. Needs root.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import fault_checks
from benchmarks.fault_checks import Seen, Verdict
from benchmarks.fault_kinds import FELT, KINDS, Fault, wait_until_continued
from benchmarks.fault_site import PYTHON, Hang, Launched, Layout, Lost, Site, kill, site
from dragoman.measure import database
from dragoman.rundir import RunFolder
from testbed import why_not
from tests.train import runs
from tests.train.runs import Task

STEPS = 900
EVERY = 20  # steps between checkpoints
WORKERS = ((1, 1), (2, 1), (2, 2), (1, 1, 1), (1, 1, 1, 1))
MOST_SECONDS_GONE = 10.0  # for the processes of a run that has ended to be gone
LONG = ("host_cut",)  # at most one of these in a run: it trains on meanwhile


@dataclass(frozen=True)
class Plan:
    """A run and its faults; the same for the same seed and number."""

    name: str
    layout: Layout
    kinds: tuple[str, ...]
    steps: int = STEPS
    most_pause_seconds: float = 2.5  # before a fault


def plan(seed: int, number: int, kinds: Sequence[str], steps: int = STEPS, most: int = 6) -> Plan:
    random = Random(f"{seed} {number}")
    layout = Layout(
        workers=random.choice(WORKERS),
        mode=random.choice(["allreduce", "diloco"]),
        has_own_disks=random.random() < 0.75,
        is_launched_inside=random.random() < 0.5,
    )
    possible = [kind for kind in kinds if kind != "disk_full" or layout.has_own_disks]
    chosen: list[str] = []
    for _ in range(random.randint(min(3, most), most)):
        used_up = [kind for kind in LONG if kind in chosen]
        if chosen.count("notice") >= len(layout.workers) - 1:
            used_up.append("notice")
        if left := [kind for kind in possible if kind not in used_up]:
            chosen.append(random.choice(left))
    steps *= 2 if set(LONG) & set(chosen) else 1
    return Plan(f"seed-{seed}-run-{number}", layout, tuple(chosen), steps)


class Bench:
    def __init__(self, folder: Path):
        self.folder = folder.absolute()

    @property
    def task(self) -> Task:
        folder = self.folder / "task"
        if folder.exists():
            return Task(folder / "data", folder / "config.toml")
        return runs.make_task(folder)

    def reference(self, layout: Layout, steps: int) -> RunFolder:
        """The run of as many ranks that nobody disturbed."""
        run = RunFolder(self.folder / "references" / f"{layout.mode}-{layout.ranks}-{steps}")
        if run.checkpoint_steps()[-1:] != [steps]:
            shutil.rmtree(run.path, ignore_errors=True)
            words = runs.arguments(self.task, run.path, *_settings(layout, steps), workers=layout.ranks)
            with runs.started([*PYTHON, *words]) as process:
                out, errors = process.communicate()
            if process.returncode:
                raise RuntimeError(f"the undisturbed run failed: {out[-2000:]} {errors[-2000:]}")
        return run

    def row(self, plan: Plan) -> dict[str, Any]:
        """Makes the run, and returns its line of the results."""
        folder = self.folder / plan.name
        shutil.rmtree(folder, ignore_errors=True)
        began, reference = time.monotonic(), self.reference(plan.layout, plan.steps)
        with site(plan.layout, folder) as where:
            words = runs.arguments(self.task, where.run, *_settings(plan.layout, plan.steps))
            launched = Launched(where, [*PYTHON, *words, "--hosts", plan.layout.hosts])
            disturbed = Disturbed(plan, where, launched)
            disturbed.go()
            left = _left_processes(where)
            for host in where.hosts:
                if where.disk(host).path.exists():
                    shutil.copytree(where.disk(host).path, folder / f"h{host}", symlinks=True)
        home = _home(folder) if disturbed.ended == "well" else None
        verdict = Verdict({}, {})
        if home:
            verdict = fault_checks.judge(
                home, reference, plan.steps, plan.layout.mode, _seen(launched, disturbed.faults)
            )
        wrong = dict(verdict.wrong)
        if left:
            wrong["processes"] = "; ".join(left)
        if home and not wrong:
            shutil.rmtree(folder)
        return {
            "name": plan.name,
            "layout": asdict(plan.layout),
            "steps": plan.steps,
            "kinds": plan.kinds,
            "faults": disturbed.faults,
            "ended": disturbed.ended,
            "why": disturbed.why,
            "wrong": wrong,
            "numbers": verdict.numbers,
            "seconds": round(time.monotonic() - began, 1),
        }


def _home(folder: Path) -> RunFolder:
    """What the host kept whose records know most starts."""
    kept = [RunFolder(path) for path in sorted(folder.glob("h?"))]
    return max(kept, key=lambda run: (database.attempts(run.records), run.checkpoint_steps()[-1:]))


def _settings(layout: Layout, steps: int) -> list[str]:
    return [
        f"train.steps={steps}",
        "evaluate.every=300",
        f"checkpoint.every={EVERY}",
        "checkpoint.keep_last=2",
        "measure.every=1",
        "sync.bucket_mb=25",  # as measured, it may differ, and with it the order of additions
        f"sync.mode={layout.mode}",
        "sync.inner_steps=10",
    ]


def _left_processes(where: Site) -> list[str]:
    deadline = time.monotonic() + MOST_SECONDS_GONE
    while True:
        left = [(host, one) for host in where.hosts for one in where.processes(host)]
        if not left or time.monotonic() > deadline:
            found = [f"h{host}: {one.pid} {' '.join(one.cmdline())[:200]}" for host, one in left]
            kill([one for _, one in left])
            return found
        time.sleep(0.1)


class Disturbed:
    """A run with its faults."""

    def __init__(self, plan: Plan, where: Site, launched: Launched):
        self.plan, self.where, self.launched = plan, where, launched
        self.random = Random(plan.name)
        self.faults: list[dict[str, Any]] = []
        self.ended, self.why = "well", ""  # or: lost, hang

    def go(self) -> None:
        self.launched.start()
        try:
            self.launched.wait_for_step_after(0, 2 * EVERY)
            for kind in self.plan.kinds:
                if self.launched.code() is not None or not self._fault(kind):
                    break
            self.launched.end()
            if self.launched.code() != 0:
                raise Lost(f"ended with {self.launched.code()}")
        except Hang as hang:
            self.ended, self.why = "hang", f"no step for long: waited for {hang}"
            self.launched.keep_stacks()
        except Lost as lost:
            self.ended, self.why = "lost", str(lost)
        except Exception:  # of the bench: the run counts as lost until somebody has looked
            self.ended, self.why = "lost", traceback.format_exc()
        finally:
            if self.launched.code() is None:
                self.launched.kill()
        if self.ended != "well" and self.faults and "seconds" not in self.faults[-1]:
            self.faults[-1]["ended"] = self.ended

    def _fault(self, kind: str) -> bool:
        """Whether the run has made a step again; False at its end."""
        time.sleep(self.random.uniform(0.2, self.plan.most_pause_seconds))
        if self.launched.newest_step() > self.plan.steps - 2 * EVERY:
            return False
        since, step = len(self.launched.lines), self.launched.newest_step()
        fault = Fault(self.where, self.launched, Random(f"{self.plan.name} {len(self.faults)}"))
        row: dict[str, Any] = {"kind": kind, "step": step}
        self.faults.append(row)
        launches = self.launched.launches
        KINDS[kind](fault)
        row["ended_launcher"] = self.launched.launches > launches
        row["where"] = fault.where
        if kind in FELT:
            wait_until_continued(self.launched, since)
        else:
            healed = len(self.launched.lines)
            self.launched.wait(lambda: self._moves(healed), "a step")
        row.update(_measured(self.launched, since, fault.began))
        return self.launched.code() is None

    def _moves(self, since: int) -> bool:
        return self.launched.code() == 0 or bool(self.launched.steps(since))


def _measured(launched: Launched, since: int, began: float) -> dict[str, Any]:
    """What the lines since a fault tell of its cost."""
    lines = launched.lines
    continued = next((place for place in range(since, len(lines)) if lines[place].continued), None)
    after = launched.steps(since if continued is None else continued)
    before = launched.steps()[: -len(after) or None]
    if continued is None or not after:
        moments = [moment for moment, _ in [*before[-1:], *after]]
        longest = max(np.diff(moments), default=0.0)
        return {"seconds": round(float(longest), 2), "was_felt": False}
    line = lines[continued].continued
    assert line
    newest = max((step for _, step in before), default=0)
    # Training may have continued for a while: it stood still only since the last step of the old world.
    stopped = max(began, before[-1][0]) if before else began
    return {
        "seconds": round(after[0][0] - stopped, 2),
        "since_fault_seconds": round(after[0][0] - began, 2),
        "was_felt": True,
        "was_told": any(each.text.startswith("lost: ") for each in lines[since:]),
        "in_process": line[0],
        "steps_lost": max(0, newest - line[1]),
    }


def _seen(launched: Launched, faults: Sequence[Mapping[str, Any]]) -> Seen:
    """Faults of the launcher itself end the run: nobody is left to record them."""
    gaps: dict[bool, list[float]] = {True: [], False: []}  # by whether a new world began
    last, is_continuing = None, False
    for line in launched.lines:
        is_continuing |= line.continued is not None
        if line.step is not None:
            if last is not None:
                gaps[is_continuing].append(line.moment - last)
            last, is_continuing = line.moment, False
    worlds, usual = len(gaps[True]), float(np.median(gaps[False]))
    still = sum(gaps[True]) - worlds * usual
    told = [fault for fault in faults if fault.get("was_told") and not fault["ended_launcher"]]
    is_from_disk = not any(line.continued and line.continued[0] for line in launched.lines)
    return Seen(still, worlds, len(told), is_from_disk)


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The results by kind, and all together."""
    faults = [(fault, row) for row in rows for fault in row["faults"]]
    yield (
        f"{'kind':20} {'count':>5} {'memory':>6} {'disk':>5} {'unfelt':>6} "
        f"{'median':>7} {'p95':>6} {'most':>6} steps lost"
    )
    for kind in [*KINDS, "in process", "new processes", "all"]:
        mine = [fault for fault, _ in faults if kind in ("all", fault["kind"], _way(fault))]
        if not mine:
            continue
        ways = [_way(fault) for fault in mine]
        seconds = [fault["seconds"] for fault in mine if "seconds" in fault] or [float("nan")]
        lost = [fault.get("steps_lost", 0) for fault in mine]
        counts = (ways.count("in process"), ways.count("new processes"), ways.count("unfelt"))
        yield (
            f"{kind:20} {len(mine):5} {counts[0]:6} {counts[1]:5} {counts[2]:6} {np.median(seconds):7.1f} "
            f"{np.percentile(seconds, 95):6.1f} {max(seconds):6.1f} "
            f"{np.mean(lost):6.1f} ({max(lost)} at most)"
        )
    wrong = [f"{row['name']}: {name}: {what}" for row in rows for name, what in row["wrong"].items()]
    bad = [f"{row['name']}: {row['ended']}: {row['why']}" for row in rows if row["ended"] != "well"]
    histories = sum("history" in row["wrong"] for row in rows)
    same = sum(bool(row["numbers"].get("same_ranks")) for row in rows)
    yield (
        f"{len(faults)} faults in {len(rows)} runs: {sum(row['ended'] == 'lost' for row in rows)} lost runs, "
        f"{sum(row['ended'] == 'hang' for row in rows)} hangs, {histories} wrong histories, "
        f"{same} compared bit for bit"
    )
    yield from bad
    yield from wrong


def _way(fault: Mapping[str, Any]) -> str:
    if "seconds" not in fault:
        return "ended"
    if not fault["was_felt"]:
        return "unfelt"
    return "in process" if fault["in_process"] else "new processes"


def line(row: Mapping[str, Any]) -> str:
    faults = ", ".join(
        f"{fault['kind']} {fault.get('seconds', float('nan')):.1f}"
        + {"in process": "", "new processes": " new", "unfelt": " unfelt", "ended": " ENDED"}[_way(fault)]
        for fault in row["faults"]
    )
    wrong = "; ".join(f"{name}: {what}" for name, what in row["wrong"].items())
    end = "" if row["ended"] == "well" else f"{row['ended'].upper()} {row['why']}"
    where = f"{row['layout']['mode']} {row['layout']['workers']}"
    return f"{row['name']} {row['seconds']:.0f} s {where}: {faults}. {end} {wrong or 'right'}"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=20, help="number of faults, about (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="the runs with these numbers")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"of a run ({STEPS})")
    parser.add_argument("--out", type=Path, default=Path("faults.jsonl"), help="results, as JSON lines")
    parser.add_argument("--folder", type=Path, help="working folder (default: beside the results)")
    parser.add_argument("--table", type=Path, metavar="FILE", help="only print the table of these results")
    arguments = parser.parse_args()
    if arguments.table:
        print("\n".join(table(read(arguments.table))))
        return 0
    if reason := why_not():
        print(f"cannot create hosts here: {reason}", file=sys.stderr)
        return 1
    folder = arguments.folder or arguments.out.absolute().with_suffix(".runs")
    folder.mkdir(parents=True, exist_ok=True)
    bench, rows = Bench(folder), read(arguments.out)
    known = {row["name"]: row for row in rows}
    count, number = 0, 0
    while count < arguments.faults if not arguments.only else number < max(arguments.only):
        number += 1
        if arguments.only and number not in arguments.only:
            continue
        chosen = plan(arguments.seed, number, arguments.kinds, arguments.steps)
        row = known.get(chosen.name)
        if row is None:
            row = bench.row(chosen)
            print(line(row), flush=True)
            rows.append(row)
            with arguments.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        count += len(row["faults"])
    print("\n".join(table(rows)))
    return 0 if all(row["ended"] == "well" and not row["wrong"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
