"""A line of any length is read in time that grows with its length, not with its square."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import dragoman.explain
import dragoman.foreign
import dragoman.plan
import dragoman.report
from benchmarks import csv_runs
from dragoman import figures
from dragoman.foreign import cluster, fairseq, faults, nmon, nvidia, openseq2seq, read
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.foreign.log_facts import Gathered
from tests.facts import lacking
from tests.foreign import logs

LENGTH = 100_000  # takes milliseconds; what grows with the square of it takes half a minute and more
SECONDS = 8
PACKAGES = (dragoman.foreign, dragoman.plan, dragoman.report, dragoman.explain)
TOKENS = (
    "1", "a", " ", ",", "'", "[", "1 ", "a=", "'a", "[1", "1:", ",}", "NET", "1.", "1C ", "| ", "\x1b[",
)  # fmt: skip


@contextmanager
def within(seconds: int, what: str) -> Iterator[None]:
    """Also where a regular expression never comes back: a signal interrupts it."""

    def late(*_: object) -> None:
        raise AssertionError(f"{what}: not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # A program; and what reads short texts only, of which there is a test below.
            if not found.name.endswith(("calibration_rank", "foreign.figures")):
                yield importlib.import_module(found.name)


def searches() -> Iterator[tuple[str, Callable[..., object], bool]]:
    """Every pattern of a module by the methods that it is used with, and whether it is one of bytes."""
    for module in modules():
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                for method in set(
                    re.findall(rf"\b{name}\.(match|fullmatch|search|findall|finditer|sub)\b", source)
                ):
                    yield (
                        f"{module.__name__}.{name}.{method}",
                        getattr(value, method),
                        isinstance(value.pattern, bytes),
                    )
    for number, fault in enumerate(faults.FAULTS):
        yield f"FAULTS[{number}]", fault.pattern.search, False
    yield "read._MATCH", read._MATCH, True


def test_every_pattern_takes_a_long_line_in_its_stride() -> None:
    found = list(searches())
    assert len(found) > 40
    for name, method, is_bytes in found:
        # What a pattern is made of comes closest to what it finds.
        own = re.sub(r"[^A-Za-z0-9 ,:='{}|/]", "", str(method.__self__.pattern))[:40]  # type: ignore[attr-defined]
        for token in (*TOKENS, own or " "):
            line: str | bytes = own + token * (LENGTH // len(token)) + "!"
            line = line.encode() if is_bytes else line
            with within(SECONDS, f"{name} on {token!r}"):
                taken = method(line) if not name.endswith("sub") else method(line[:0], line)
                list(taken) if name.endswith("finditer") else None  # type: ignore[call-overload]


STAMP = "2021-03-04 10:00:00"
BEGINNINGS = {
    openseq2seq.OpenSeq2Seq: (
        "*** Training config:\n '", "*** Training config:\n 'a': ", "*** Train Source[0]:",
        "*** Global step 1: time per step = 0:00:", "*** Total trainable parameters: ",
    ),
    fairseq.Fairseq: (
        f"{STAMP} | INFO | train_inner | ", f"{STAMP} | INFO | valid | valid on '",
        f"{STAMP} | INFO | fairseq | ",
        f"{STAMP} | INFO | fairseq | {{'_name': 'a', ", f"{STAMP} | INFO | fairseq | name = a",
        f"[{STAMP},1][", "Namespace(", "| epoch 1: ", "| loaded ", "| bin train ",
    ),
    nmon.Nmon: ("NET,a,", "ZZZZ,T1,", "AAA,", "I/F Name Recv=KB/s\n"),
    nvidia.Nvidia: ("| 0 a", "| ", "power.draw [", "# gpu\n ", "1 W, "),
    cluster.LoggedCluster: ("a:1:1 [1] NCCL INFO ", "name: ", "a"),
    faults.Faults: ("", "can't open file "),
}  # fmt: skip


def test_every_reader_takes_a_long_line_in_its_stride() -> None:
    for reader, beginnings in BEGINNINGS.items():
        for beginning in beginnings:
            for token in TOKENS:
                with within(SECONDS, f"{reader.__name__} on {beginning!r} and {token!r}"):
                    one = reader(Gathered())
                    for line in f"{beginning}{token * (LENGTH // 2 // len(token))}!".split("\n"):
                        one.line(line or "!")
                    one.finish()


def test_every_figure_is_read_in_its_stride() -> None:
    reads = (
        figures.figure, figures.hours, figures.step_seconds, figures.rounding, figures.figures,
        figures.bits_per_second, figures.readings, csv_runs._power,
        lambda text: csv_runs._placing(text[: figures.LONGEST_TEXT], text[: figures.LONGEST_TEXT]),
        lambda text: csv_runs._parameters(text[: figures.LONGEST_TEXT], "mixed"),
    )  # fmt: skip
    for token in (*TOKENS, "1 steps: ", "1 d ", "1 Mb to ", "1+", "1 a ", "1 GPU "):
        with within(SECONDS, repr(token)):
            for each in reads:
                each(token * (LENGTH // len(token)) + "!")


def test_a_line_that_was_cut_is_counted(tmp_path: Path) -> None:
    text = logs.openseq2seq() + "*** Global step 1: " + "1" * 30_000 + "\n"
    made = diagnose([logs.written(tmp_path, text)], Given())
    (note,) = made.notes
    assert not lacking(note, tmp_path / "nohup.out", "20,000", 1)
