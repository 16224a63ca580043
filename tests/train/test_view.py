"""What a person sees of a run."""

import os
import pty
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from dragoman.measure.quality import Evaluation, Score
from dragoman.train.view import BarView
from tests.train import runs
from tests.train.conftest import Unbroken
from tests.train.runs import Task

ARITHMETIC = "23,168 parameters; a step is 512 tokens in 4 microbatches over 2 ranks on cpu"


def test_the_log_has_the_arithmetic_the_lines_and_the_end(unbroken: Unbroken) -> None:
    said = runs.log(unbroken(2)).splitlines()
    lines = [line for line in said if not line.startswith("warning: speed")]  # on a busy machine
    assert re.sub(r"^[\d,]+", "23,168", lines[0]) == ARITHMETIC
    assert re.fullmatch(
        r"step 1/48  loss \d\.\d{4}  [\d,]+ tokens/s  lr 7\.500e-04  gradient norm [\d.]+  left [\d:]+",
        lines[1],
    )
    assert any(re.fullmatch(r"Finished training: 48 steps, [\d,]+ pairs", line) for line in lines)
    assert any(
        re.fullmatch(r"Average time per step \d+\.\d{4} s, [\d,]+ target tokens/s", line) for line in lines
    )
    assert re.match(r"Best BLEU \d+\.\d\d at step \d+ \(nrefs:1\|", lines[-1])


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
        shown.tick(6)
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
    assert "Traceback" not in text
    assert "━" not in runs.log(tmp_path)
