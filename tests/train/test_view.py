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

from dragoman.measure.quality import Evaluation, Score
from dragoman.train.pace import Left
from dragoman.train.state import StepOutcome
from dragoman.train.view import BarView, LogView, view
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

OUTCOME = StepOutcome(5.4321, 4_000, 1.25, 0.0005, is_bad=False, stop_wanted=False)
ARITHMETIC = "23,168 parameters; a step is 512 tokens in 4 microbatches over 2 ranks on cpu"


def test_the_log_has_the_arithmetic_the_lines_and_the_end(unbroken: Unbroken) -> None:
    said = runs.log(unbroken(2)).splitlines()
    lines = [
        line for line in said if not line.startswith(("warning: speed", "warning: cores"))
    ]  # on a busy machine
    assert re.sub(r"^[\d,]+", "23,168", lines[0]) == ARITHMETIC
    assert re.fullmatch(
        r"step 1/48  loss \d\.\d{4}  [\d,]+ tokens/s  lr 7\.500e-04  gradient norm [\d.]+  left [\d:]+",
        lines[1],
    )
    assert any(re.fullmatch(r"Finished training: 48 steps, [\d,]+ pairs", line) for line in lines)
    assert any(
        re.fullmatch(r"Average time per step \d+\.\d{4} s, [\d,]+ target tokens/s", line) for line in lines
    )
    assert any(re.match(r"Best BLEU \d+\.\d\d at step \d+ \(nrefs:1\|", line) for line in lines)
    run = unbroken(2)
    assert lines[-2:] == [
        f"How it went: dragoman report {run}",
        f'Try it: echo "..." | dragoman translate {run}',
    ]


def test_how_long_it_takes_is_said_with_the_first_steps_and_with_the_first_evaluation(
    unbroken: Unbroken,
) -> None:
    said = runs.log(unbroken(2)).splitlines()
    told = [number for number, line in enumerate(said) if line.startswith("Time left: about ")]
    assert len(told) == 2
    first, second = (said[number] for number in told)
    assert "for 42 steps at " in first and first.endswith("; 3 evaluations will add to this")
    assert re.search(r"for 31 steps at .* and 2 evaluations at ", second)


def left(seconds: float, steps: int = 90) -> Left:
    return Left(steps, 2, seconds, 0.5, 3.0, is_settled=True)


@pytest.mark.parametrize(("days", "warnings"), [(0.9, 0), (1.1, 1)])
def test_days_are_warned_of_once(tmp_path: Path, days: float, warnings: int) -> None:
    shown = LogView(tmp_path / "log.txt", 100)
    for seconds_per_evaluation in (None, 3.0):
        shown.tick(1, left(days * 86_400)._replace(seconds_per_evaluation=seconds_per_evaluation))
    shown.close()
    said = (tmp_path / "log.txt").read_text().splitlines()
    assert len([line for line in said if line.startswith("warning: this takes 1.1 days")]) == warnings
    assert len(said) == 2 + warnings


@pytest.mark.parametrize(("columns", "parts"), [(40, 2), (80, 4), (140, 6)])
def test_the_bar_and_the_time_left_have_room_at_any_width(tmp_path: Path, columns: int, parts: int) -> None:
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=columns, color_system=None)
    shown = BarView(tmp_path / "log.txt", 100_000, 0, console)
    drawn.truncate(0)
    shown.step(12_345, 5.4321, OUTCOME, 123_456.7, left(45_296.0)._replace(is_settled=False))
    shown.close()
    lines = [line for line in re.split(r"[\r\n]|\x1b\[[\d;?]*[a-zA-Z]", drawn.getvalue()) if "step" in line]
    assert lines
    for line in lines:
        assert len(line) <= columns
        assert "step 12,345/100,000  left 12:34:56" in line
    assert columns < 80 or "━" in lines[-1]
    assert len(re.findall(r"step|left|loss|tokens/s|lr|gradient norm", lines[-1])) == parts


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
    ("metric", "said"),
    [("bleu", "Best BLEU 12.50 at step 8 (tok:13a)"), ("loss", "Best held-out loss 3.2500 at step 8")],
)
def test_the_best_is_called_by_what_it_is_best_at(metric: str, said: str) -> None:
    score = Score(value=12.5, signature="tok:13a")
    made = Evaluation(step=8, eval_loss=3.25, train_sample_loss=3, bleu=score, chrf=score, seconds=1)
    assert made.best_by(metric) == said


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
    assert "training" in text and "━" in text
    assert re.search(r"step [\d,]+/100,000", text)
    assert "To go on: dragoman train" in text
    last = runs.steps_in_log(tmp_path)[-1]
    assert f"evaluation at step {last}:" in runs.log(tmp_path)
    assert "Traceback" not in text
    assert "━" not in runs.log(tmp_path)
