"""What a person sees of a run."""

import io
import os
import pty
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from dragoman.checkpoint import saved_state
from dragoman.measure import database
from dragoman.measure.quality import Evaluation, Score
from dragoman.rundir import RunFolder
from dragoman.train.pace import Left
from dragoman.train.state import StepOutcome
from dragoman.train.view import BarView, LogView, forecast, long_warning, view
from tests.explain.sentences import wording
from tests.facts import lacking, only
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

OUTCOME = StepOutcome(5.4321, 4_000, 1.25, 0.0005, is_bad=False, stop_wanted=False)


def test_the_log_has_the_arithmetic_the_lines_and_the_end(unbroken: Unbroken) -> None:
    said = runs.log(unbroken(2)).splitlines()
    lines = [
        line for line in said if not line.startswith(("warning: speed", "warning: cores"))
    ]  # on a busy machine
    assert not lacking(lines[0], "512 tokens", "4 microbatches", "2 ranks", "cpu")
    number = r"[\d.,:]+"
    assert re.fullmatch(
        rf"step 1/48  loss \d\.\d{{4}}  {number} tokens/s  lr 7\.500e-04  \D+ {number}  \D+ {number}",
        lines[1],
    )
    run, folder = unbroken(2), RunFolder(unbroken(2))
    state = saved_state.saved_state(folder.checkpoint(48))
    only(lines, "48 steps", f"{state.pairs:,} pairs")
    only(lines, f"{state.seconds / 48:.4f} s", "target tokens/s")
    best = saved_state.saved_state(folder.best.resolve())
    only(lines, f"BLEU {max(each.bleu.value for each in state.history):.2f}", f"step {best.step}", "nrefs:1")
    assert not lacking(lines[-2], f"dragoman report {run}")
    assert not lacking(lines[-1], f"dragoman translate {run}")


def test_the_time_left_is_reported_after_the_first_steps_and_after_the_first_evaluation(
    unbroken: Unbroken,
) -> None:
    said = runs.log(unbroken(2)).splitlines()
    forms = [wording(forecast(left(9.0)._replace(seconds_per_evaluation=each))) for each in (None, 3.0)]
    told = [line for line in said if wording(line) in forms]
    assert [wording(line) for line in told] == forms
    assert not lacking(told[0], "42 steps", "3 evaluations")
    assert not lacking(told[1], "31 steps", "2 evaluations")


def left(seconds: float, steps: int = 90) -> Left:
    return Left(steps, 2, seconds, 0.5, 3.0, is_settled=True)


@pytest.mark.parametrize(("days", "warnings"), [(0.9, 0), (1.1, 1)])
def test_days_are_warned_of_once(tmp_path: Path, days: float, warnings: int) -> None:
    shown = LogView(tmp_path / "log.txt", 100)
    for seconds_per_evaluation in (None, 3.0):
        shown.tick(1, left(days * 86_400)._replace(seconds_per_evaluation=seconds_per_evaluation))
    shown.close()
    said = (tmp_path / "log.txt").read_text().splitlines()
    assert said.count(long_warning(left(1.1 * 86_400))) == warnings
    assert not lacking(long_warning(left(1.1 * 86_400)), "1.1 days", "--minutes", "--workers", "--hosts")
    assert len(said) == 2 + warnings


@pytest.mark.parametrize(("columns", "parts"), [(40, 2), (80, 4), (140, 6)])
def test_the_bar_and_the_time_left_have_room_at_any_width(tmp_path: Path, columns: int, parts: int) -> None:
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=columns, color_system=None)
    shown = BarView(tmp_path / "log.txt", 100_000, 0, console)
    drawn.truncate(0)
    shown.step(12_345, 5.4321, OUTCOME, 123_456.7, left(45_296.0)._replace(is_settled=False))
    shown.close()
    drawn_lines = re.split(r"[\r\n]|\x1b\[[\d;?]*[a-zA-Z]", drawn.getvalue())
    lines = [line for line in drawn_lines if "12,345" in line]
    assert lines
    for line in lines:
        assert len(line) <= columns
        assert not lacking(line, "12,345/100,000", "12:34:56")
    assert columns < 80 or "━" in lines[-1]
    shown_parts = ["12,345/100,000", "12:34:56", "5.432", "123,457 tokens/s", "5.00e-04", "1.25"]
    assert lacking(lines[-1], *shown_parts) == shown_parts[parts:]


def test_what_mpirun_passes_on_is_plain_whatever_terminal_it_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")
    forwarded = view(tmp_path / "log.txt", 10, 0, is_forwarded=True)
    seen = view(tmp_path / "log.txt", 10, 0)
    try:
        assert type(forwarded) is LogView and type(seen) is BarView
    finally:
        seen.close()
        forwarded.close()


def test_without_a_terminal_there_are_plain_lines_only_those_of_the_log(unbroken: Unbroken) -> None:
    stdout = (unbroken(2) / "stdout").read_text()
    assert stdout == runs.log(unbroken(2))
    assert "\x1b" not in stdout and "\r" not in stdout


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # of the bar's own thread
def test_a_terminal_that_is_closed_ends_nothing(tmp_path: Path) -> None:
    is_through = False
    master, slave = pty.openpty()
    with suppress(OSError), open(slave, "w") as terminal:  # closing it fails once more
        shown = BarView(tmp_path / "log.txt", 10, 0, Console(file=terminal, force_terminal=True))
        os.close(master)
        shown.say("evaluation at step 5")
        shown.tick(6, left(9.0, steps=0))
        shown.close()
        is_through = True
    assert is_through
    assert (tmp_path / "log.txt").read_text() == "evaluation at step 5\n"


@pytest.mark.parametrize(
    ("metric", "facts"),
    [("bleu", ["BLEU 12.50", "step 8", "tok:13a"]), ("loss", ["loss 3.2500", "step 8"])],
)
def test_the_best_is_called_by_what_it_is_best_at(metric: str, facts: list[str]) -> None:
    score = Score(value=12.5, signature="tok:13a")
    made = Evaluation(step=8, eval_loss=3.25, train_sample_loss=3, bleu=score, chrf=score, seconds=1)
    assert not lacking(made.best_by(metric), *facts)


def test_on_a_terminal_a_bar_is_drawn_and_ctrl_c_saves(task: Task, tmp_path: Path) -> None:
    """The whole terminal: Ctrl-C is typed, not sent."""
    master, slave = pty.openpty()
    words = [*runs.DRAGOMAN, *runs.arguments(task, tmp_path, "train.steps=100000", workers=2)]
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=runs.environment(TERM="xterm", COLUMNS="150"),
    )
    os.close(slave)
    shown = b""
    try:
        is_typed = False
        while True:
            try:
                shown += os.read(master, 65_536)
            except OSError:  # the other end is closed
                break
            if not is_typed and len(runs.steps_in_log(tmp_path)) > 20:
                os.write(master, b"\x03")
                is_typed = True
        assert process.wait(runs.WAIT_SECONDS) == 0
    finally:
        runs.kill_tree(process.pid)
        process.wait()
        os.close(master)
    text = shown.decode()
    assert "━" in text
    assert re.search(r"step [\d,]+/100,000", text)
    assert "dragoman train" in text, "the command to go on"
    last = runs.steps_in_log(tmp_path)[-1]
    assert last in [row.step for row in database.read(RunFolder(tmp_path).records).evaluations]
    assert "Traceback" not in text
    assert "━" not in runs.log(tmp_path)
