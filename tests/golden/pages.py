"""Every golden file by its name, and what renders it."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

from rich.console import Console

from dragoman.config import Training
from dragoman.explain import fault_words, outages
from dragoman.explain.compare import compare
from dragoman.explain.run import explain
from dragoman.faults import WORDS, FaultKind
from dragoman.foreign import show as foreign_show
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.measure import database
from dragoman.measure.records import Fault, Records
from dragoman.plan import show as plan_show
from dragoman.plan.request import PlanRequest, plan
from dragoman.report import compare_text, happened, markdown, text
from tests.explain.altered import elastic
from tests.foreign import logs, test_nvidia
from tests.golden import answers, checks, errors, foreign, meeting, training

FOLDER = Path(__file__).parent
RUNS = FOLDER.parent / "runs"
WIDTH = 100
REPORTED = ("slow-link-1", "slow-host", "converged", "overfitting", "diverged")
COMPARED = (("slow-link-1", "fast-link"), ("slow-data", "compute-bound"), ("converged", "converged"))


def read(name: str) -> Records:
    return database.read(RUNS / f"{name}.db")


def shown(show: Callable[[Console], None]) -> str:
    """What a terminal is told, without colours."""
    out = io.StringIO()
    show(Console(file=out, width=WIDTH, highlight=False))
    return out.getvalue()


def report_text(name: str) -> str:
    records = read(name)
    return shown(lambda console: text.show(records, explain(records, price_per_hour=1.5), console))


def report_markdown(name: str) -> str:
    records = read(name)
    return markdown.render(records, explain(records, price_per_hour=1.5))


def story() -> str:
    """What happened in a run with faults, on a terminal and in markdown, and every kind of fault."""
    records = elastic()
    told = shown(lambda console: text.show(records, explain(records), console))
    written = markdown.render(records, explain(records))
    parts = [told[told.index(happened.TITLE) :], written[written.index(f"## {happened.TITLE}") :]]
    parts = [part.split("What measuring cost")[0].rstrip("# \n") for part in parts]
    return "\n\n\n".join([*parts, "\n".join(map(_of_a_fault, WORDS))])


def _of_a_fault(kind: FaultKind) -> str:
    fault = Fault(time=1.0, attempt=1, step=120, kind=kind, host="b", rank=2)
    return f"{kind}: {WORDS[kind]}. {fault_words.sentence([outages.Outage(fault, still_seconds=6.0)])}"


def compared() -> str:
    pairs = [compare(read(a), read(b)) for a, b in COMPARED]
    return "\n\n".join(shown(partial(compare_text.show, pair)) for pair in pairs)


def diagnosed() -> str:
    """A log with meters beside it, and a few facts alone."""
    log = logs.written(Path(), logs.openseq2seq(5000), "nohup.out")
    meters = logs.written(Path(), test_nvidia.TABLE, "smi.txt")
    facts = {"model": "transformer-base", "step_seconds": 1.7, "machines": 2, "gpu": "V100"}
    handful = Given.model_validate(facts | {"nic_kb_per_s": 200_210})
    with redirect_stdout(io.StringIO()) as out:
        for made in (diagnose([log, meters], Given(link="1gbit")), diagnose([], handful)):
            foreign_show.diagnosis(made, as_json=False, html=None)
            print("\n")
    return out.getvalue()


def planned() -> str:
    """By a table of GPUs, with a price and without, and by a run."""
    two = PlanRequest(Training(), hosts=2, workers=2, link="1gbit", gpu="V100", pairs=4_500_000, epochs=2.0)
    priced = replace(two, price_per_hour=5.0, currency="EUR")
    one = replace(two, hosts=1, link=None, gpu="A100")
    shutil.copy(RUNS / "fast-link.db", "records.db")
    by_a_run = PlanRequest(Training(), hosts=2, link="100mbit", run=Path())
    return "\n\n".join(shown(partial(plan_show.show, plan(request))) for request in (priced, one, by_a_run))


PAGES: dict[str, Callable[[], str]] = {
    **{f"report-{name}.txt": partial(report_text, name) for name in REPORTED},
    **{f"report-{name}.md": partial(report_markdown, name) for name in REPORTED[:2]},
    "story.txt": story,
    "compare.txt": compared,
    "diagnose.txt": diagnosed,
    "plan.txt": planned,
    "answers.txt": answers.page,
    "foreign.txt": foreign.page,
    "doctor.txt": checks.page,
    "training.txt": training.page,
    "errors.txt": errors.page,
    "meeting.txt": meeting.page,
}


@contextmanager
def empty_folder() -> Iterator[None]:
    """A folder of its own as the current one, so that paths in messages are the same on every machine."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def rendered(name: str) -> str:
    """The page as it is now, without spaces at the ends of lines."""
    with empty_folder(), mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH)}):
        lines = [line.rstrip() for line in PAGES[name]().splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def write() -> None:
    for name in PAGES:
        (FOLDER / name).write_text(rendered(name), encoding="utf-8")
