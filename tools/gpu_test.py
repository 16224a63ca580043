"""What the first owner of one or two GPUs runs: `make gpu-test`. After minutes it prints a page of results.

Everything is trained for real with `dragoman train` on the demo corpus. Without a GPU the same checks run on
the CPU, smaller. The exit code is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dragoman import format_units  # noqa: E402
from dragoman.cost import capability, gpu_types  # noqa: E402
from dragoman.doctor import gpus, host  # noqa: E402
from dragoman.doctor.facts import UsableGpu  # noqa: E402
from dragoman.measure import database  # noqa: E402
from dragoman.measure.records import Records  # noqa: E402
from dragoman.rundir import RunFolder  # noqa: E402

DRAGOMAN = [sys.executable, "-m", "dragoman"]
EXPECTED = ROOT / "benchmarks" / "gpu.md"
RANK = str(ROOT / "tools" / "gpu_test_rank.py")
FAILURE = "told to fail by gpu_test"
# A few steps of several microbatches each, every one logged.
ON_GPU = (
    "train.steps=30",
    "data.step=32768",
    "data.microbatch=8192",
    "checkpoint.every=10",
    "evaluate.every=30",
)
ON_CPU = (
    "train.steps=8", "data.step=512", "data.microbatch=128", "checkpoint.every=4", "evaluate.every=8",
    "model.width=32", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.feedforward=64",
)  # fmt: skip
ALWAYS = ("measure.every=1", "checkpoint.keep_last=9", "evaluate.samples=0", "train.warmup_steps=4")
LIMIT_SECONDS = 600.0  # for one command
AT_ONCE_SECONDS = 15.0  # until a rank's error is on the screen
END_SECONDS = 60.0  # until the other ranks have ended, too: the launcher gives them 30 s
ALIKE, ALIKE_IN_HALF = 2e-3, 2e-2  # losses of the same steps, computed otherwise
SKIPPED = "skipped"


class Failed(Exception):
    """A check failed; the message says what was found."""


class Skipped(Exception):
    """A check does not apply here; the message says why."""


@dataclass(frozen=True)
class Row:
    name: str
    expected: str
    found: str
    verdict: str  # ok, FAILED or skipped
    seconds: float


@dataclass(frozen=True)
class Check:
    name: str
    expected: str
    run: Callable[[Bench], str]  # what was found; raises Failed or Skipped


@dataclass(frozen=True)
class Said:
    """The lines of a command, each with the time at which it arrived."""

    code: int
    lines: list[tuple[float, str]]
    ended: float

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)

    def at(self, words: str) -> float | None:
        return next((when for when, line in self.lines if words in line), None)


@dataclass
class Bench:
    """Where the checks run, and on what."""

    folder: Path
    data: Path
    cards: list[UsableGpu]
    # The first losses of earlier checks, by run: until a step was skipped, as fp16 does to find its scale.
    losses: dict[str, np.ndarray] = field(default_factory=dict)

    def automatic(self, ranks: int = 1) -> str:
        """What `train.precision=auto` must stand for."""
        return capability.automatic([card.capability for card in self.cards[:ranks]])

    @property
    def settings(self) -> list[str]:
        return [*(ON_GPU if self.cards else ON_CPU), *ALWAYS]

    @property
    def most_ranks(self) -> int:
        return min(2, len(self.cards)) if self.cards else 2

    def cores(self, ranks: int = 2) -> int | None:
        """On a CPU one for each rank: threads that wait for each other crawl where other programs compute."""
        return None if self.cards else ranks

    def words(self, run: str, *changes: str) -> list[str]:
        """The words of `dragoman train` for a run."""
        places = ["train", "demo", "--data", str(self.data), "--run", str(self.folder / run)]
        return [*places, *(word for change in (*self.settings, *changes) for word in ("--set", change))]

    def train(self, run: str, *changes: str, workers: int = 1) -> Records:
        """The records of a run that must finish."""
        said = spoken([*DRAGOMAN, *self.words(run, *changes), "--workers", str(workers)], self.cores(workers))
        if said.code:
            raise Failed(f"exit code {said.code}: {last_error(said.text)}")
        return self.records(run)

    def records(self, run: str) -> Records:
        records = database.read(RunFolder(self.folder / run).records)
        steps = records.steps
        skipped = np.flatnonzero(np.nan_to_num(steps["is_bad"]) + np.nan_to_num(steps["is_rescaled"]))
        self.losses[run] = steps["loss"][: skipped[0] + 1 if len(skipped) else 3]
        return records


def spoken(words: Sequence[str], cores: int | None = None, until: Callable[[], bool] | None = None) -> Said:
    """Runs a command on this many cores to its end, or kills it and all below it once `until` holds."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
    lines: list[tuple[float, str]] = []
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        preexec_fn=partial(_keep_to, cores) if cores else None,
    ) as process:
        reader = threading.Thread(target=_read, args=(process, lines), daemon=True)
        reader.start()
        deadline = time.monotonic() + LIMIT_SECONDS
        while process.poll() is None:
            if until and until():
                kill(process.pid)
            elif time.monotonic() > deadline:
                kill(process.pid)
                raise Failed(f"not done after {LIMIT_SECONDS:.0f} s: {shlex.join(words)}")
            time.sleep(0.02)
        ended = time.time()
        reader.join()  # all that could write are gone
    return Said(process.returncode, lines, ended)


def _keep_to(cores: int) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def _read(process: subprocess.Popen[str], lines: list[tuple[float, str]]) -> None:
    assert process.stdout
    for line in process.stdout:
        lines.append((time.time(), line.rstrip()))


def kill(pid: int) -> None:
    """kill -9 of a process and all below it."""
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def answered(words: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer of `dragoman ... --json`."""
    done = subprocess.run(
        [*DRAGOMAN, *words, "--json"], capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    if not done.stdout:
        raise Failed(last_error(done.stderr))
    return done.returncode, json.loads(done.stdout)


def last_error(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "rror" in line), lines[-1] if lines else "no output")


# --- the checks -------------------------------------------------------------------------------------------


def doctor(bench: Bench) -> str:
    code, answer = answered(["doctor", "--data", str(bench.data), "--config", "demo"])
    checks = answer["checks"]
    wrong = [f"{check['name']}: {check['value']}" for check in checks if check["status"] != "ok"]
    if code:
        raise Failed("; ".join(wrong))
    speed = next((check["value"] for check in checks if check["name"] == "speed"), "")
    return f"{len(checks)} checks, {len(wrong)} warnings; products at {speed}"


def learns(bench: Bench, precision: str, optimizer: str, workers: int = 1) -> str:
    """Real steps, whose loss falls and agrees with what other formats and ranks compute."""
    run = f"{precision}-{optimizer}-{workers}"
    changes = (f"train.precision={precision}", f"train.optimizer={optimizer}")
    records = bench.train(run, *changes, workers=workers)
    losses, bad = records.steps["loss"], int(np.nansum(records.steps["is_bad"]))
    if bad or not losses[-1] < losses[0]:
        raise Failed(f"loss {losses[0]:.3f} to {losses[-1]:.3f}, {bad} bad steps")
    computed, wanted = records.facts.precision, precision
    if precision == "auto":
        wanted = bench.automatic(workers)
    if not computed.startswith(wanted):
        raise Failed(f"computed in {computed or 'an unknown format'}, not in {wanted}")
    _agree(bench, run, optimizer, ALIKE if computed == "fp32" else ALIKE_IN_HALF)
    tokens = records.steps["target_tokens"][3:].sum() / records.steps["seconds"][3:].sum()
    (scored,) = records.evaluations
    return (
        f"{computed}: loss {losses[0]:.3f} to {losses[-1]:.3f}, dev {scored.eval_loss:.3f}, "
        f"{format_units.count(tokens)} target tokens/s"
    )


def _agree(bench: Bench, run: str, optimizer: str, alike: float) -> None:
    """Raises unless the first losses are those of the first run with this optimizer."""
    reference = next(
        (bench.losses[name] for name in bench.losses if name.split("-")[1:2] == [optimizer]), None
    )
    if reference is None or reference is bench.losses[run]:
        return
    steps = min(3, len(bench.losses[run]), len(reference))
    difference = float(np.abs(bench.losses[run][:steps] / reference[:steps] - 1).max())
    if difference > alike:
        raise Failed(f"the first losses differ by {difference:.2%} from those of the first {optimizer} run")


def two_ranks(bench: Bench) -> str:
    if bench.most_ranks < 2:
        raise Skipped("one GPU")
    return learns(bench, "auto", "adam", workers=2)


def a_rank_fails(bench: Bench) -> str:
    notes = bench.folder / "failed-at"
    said = spoken(_in_trouble(bench, "fails", notes, bench.words("fails"), bench.most_ranks), bench.cores())
    if not notes.exists() or said.code == 0:
        raise Failed(f"exit code {said.code}: {last_error(said.text)}")
    failed_at, heard = float(notes.read_text()), said.at(FAILURE)
    if heard is None:
        raise Failed(f"its message never came: {last_error(said.text)}")
    after, end = heard - failed_at, said.ended - failed_at
    found = f"its message after {after:.1f} s, the end after {end:.1f} s, of {bench.most_ranks} ranks"
    if after > AT_ONCE_SECONDS or end > END_SECONDS:
        raise Failed(found)
    return found


def out_of_memory(bench: Bench) -> str:
    notes = bench.folder / "limited"
    said = spoken(
        _in_trouble(bench, "memory", notes, bench.words("memory", "train.precision=auto"), 1), bench.cores(1)
    )
    if said.code or not notes.exists():
        raise Failed(f"exit code {said.code}: {last_error(said.text)}")
    if (split := said.at("microbatches are now split")) is None:
        raise Failed("it never ran out of memory" + (": the limit was not low enough" * bool(bench.cards)))
    bench.records("memory")
    _agree(bench, "memory", "adam", ALIKE_IN_HALF)  # the parts of a microbatch have their own dropout
    (line,) = {line for when, line in said.lines if when == split}
    kind = "" if bench.cards else " (pretended: no GPU here)"
    return f"{line}, and the run finished{kind}"


def _in_trouble(bench: Bench, trouble: str, notes: Path, words: list[str], ranks: int) -> list[str]:
    launch = [sys.executable, "-m", "dragoman.launch.ranks", str(ranks)]
    return [*launch, RANK, trouble, str(notes), *words]


def kill_and_resume(bench: Bench) -> str:
    """The bits of a run that was killed at its first checkpoint and resumed are those of one that was not."""
    ranks, changes = bench.most_ranks, ("train.deterministic=true",)
    whole = bench.train("whole", *changes, workers=ranks)
    words = [*DRAGOMAN, *bench.words("pieces", *changes), "--workers", str(ranks)]
    folders = [RunFolder(bench.folder / run) for run in ("whole", "pieces")]
    spoken(words, bench.cores(), until=lambda: bool(folders[1].checkpoint_steps()))
    pieces = bench.train("pieces", *changes, workers=ranks)
    if len(pieces.attempts) < 2:
        raise Failed("the run was over before it was killed")
    resumed = pieces.attempts[1].first_step
    for name in ("model.safetensors", "optimizer.safetensors"):
        last = int(whole.steps["step"][-1])
        if len({(folder.checkpoint(last) / name).read_bytes() for folder in folders}) > 1:
            raise Failed(f"resumed at step {resumed}, but {name} differs")
    return f"killed, resumed at step {resumed}: the same bits{_cost(bench, whole)}"


def _cost(bench: Bench, deterministic: Records) -> str:
    """What `train.deterministic` costs, against the same steps without it."""
    name = f"auto-adam-{bench.most_ranks}"
    if not bench.cards or name not in bench.losses:
        return ""
    usual = float(np.median(bench.records(name).steps["seconds"]))
    ratio = float(np.median(deterministic.steps["seconds"])) / usual
    return f"; steps with train.deterministic take {ratio:.2f} x the time"


def base_speed(bench: Bench, workers: int) -> str:
    """Target tokens per second of transformer-base, by real steps on made-up sentences."""
    if not bench.cards:
        raise Skipped("no GPU here")
    if len(bench.cards) < workers:
        raise Skipped("one GPU")
    settings = ("data.unit=tokens", "data.step=25000", "data.microbatch=12500")
    words = ["plan", "transformer-base", *(word for each in settings for word in ("--set", each))]
    words += ["--workers", str(workers)]
    _, measured = answered([*words, "--calibrate"])
    seconds = measured["step_seconds"]["value"]
    flops = format_units.flops(measured["flops_per_step"] / seconds / workers)
    found = f"{format_units.count(25_000 / seconds)} target tokens/s, {flops} per GPU"
    if (most := bound(bench.cards[0].name)) is None:
        return found
    share = format_units.share(25_000 / seconds / workers / most)
    return f"{found}: {share} of the bound of {format_units.count(most)}"


def bound(card: str) -> float | None:
    """Target tokens per second at most on such a card, by the roofline in gpu.md; None if it is not there."""
    kinds = gpu_types.named(card)
    for line in EXPECTED.read_text().splitlines() if kinds else ():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.match(rf"{kinds[0].name}\b.*, (bf|fp)16$", cells[0]):
            return float(cells[3].replace(",", ""))
    return None


def checks(bench: Bench, shortest: bool) -> Iterator[Check]:
    yield Check("doctor", "no error", doctor)
    formats = ["auto"]
    if bench.cards:
        formats += ["fp32", "fp16", *(["bf16"] if bench.automatic() == "bf16" else [])]
    for precision in formats:
        yield Check(
            f"{precision}, adam", "loss falls", partial(learns, precision=precision, optimizer="adam")
        )
    if not shortest:
        for optimizer in ("adamw", "muon"):
            yield Check(
                f"auto, {optimizer}", "loss falls", partial(learns, precision="auto", optimizer=optimizer)
            )
    yield Check("two ranks", "losses of one rank", two_ranks)
    yield Check("a rank fails", f"its message within {AT_ONCE_SECONDS:.0f} s, no hang", a_rank_fails)
    yield Check("out of memory", "splits microbatches, finishes", out_of_memory)
    yield Check("kill -9 and resume", "the same bits (train.deterministic)", kill_and_resume)
    if not shortest:
        for workers in (1, 2):
            name = f"transformer-base, {workers} GPU{'s' * (workers > 1)}"
            yield Check(name, "benchmarks/gpu.md, What to expect", partial(base_speed, workers=workers))


# --- the page ---------------------------------------------------------------------------------------------


def run(check: Check, bench: Bench) -> Row:
    began = time.monotonic()
    try:
        verdict, found = "ok", check.run(bench)
    except Skipped as reason:
        verdict, found = SKIPPED, str(reason)
    except Exception as error:  # a check that cannot be made is one that failed
        found = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
        verdict = "FAILED"
    return Row(check.name, check.expected, " ".join(found.split()), verdict, time.monotonic() - began)


def page(rows: Sequence[Row], cards: Sequence[UsableGpu]) -> str:
    failed = [row.name for row in rows if row.verdict == "FAILED"]
    lines = [
        "## dragoman gpu-test",
        "",
        *_where(cards),
        "",
        "| check | expected | found | verdict | seconds |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {r.name} | {r.expected} | {_cell(r.found)} | {r.verdict} | {r.seconds:.0f} |" for r in rows),
        "",
        f"{len(failed)} of {len(rows)} checks FAILED: {', '.join(failed)}" if failed else "no check failed",
    ]
    return "\n".join(lines)


def _where(cards: Sequence[UsableGpu]) -> list[str]:
    found = gpus.inspect()
    versions = ", ".join(f"{name} {version}" for name, version in host.versions().items())
    if not cards:
        return ["no GPU here: the same on the CPU, smaller", versions]
    names = ", ".join(f"{card.name} ({'.'.join(map(str, card.capability))})" for card in cards)
    return [
        names,
        f"driver {found.driver}, CUDA {found.cuda}, {versions}",
        f"kernels: {' '.join(found.architectures)}",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "/")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a prepared data set instead of the demo corpus")
    parser.add_argument("--shortest", action="store_true", help="fewer checks: a minute or two on a CPU")
    parser.add_argument("--folder", type=Path, help="keep the runs here")
    options = parser.parse_args(words)
    cards = gpus.inspect().usable
    with tempfile.TemporaryDirectory(prefix="dragoman-gpu-test-") as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        bench = Bench(folder, options.data or folder / "data", cards)
        if not options.data:
            prepared = spoken([*DRAGOMAN, "prepare", "demo", "-o", str(bench.data)])
            if prepared.code:
                print(prepared.text)
                return 1
        rows = []
        for check in checks(bench, options.shortest):
            rows.append(run(check, bench))
            print(f"{rows[-1].verdict:<8} {rows[-1].name}: {rows[-1].found}", flush=True)
    print(f"\n{page(rows, cards)}")
    return 1 if any(row.verdict == "FAILED" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
