from __future__ import annotations

import math
from pathlib import Path

import pytest

from dragoman.explain.finding import Finding
from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.foreign.faults import FAULTS
from tests.facts import lacking
from tests.foreign import logs

ABORTED = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:
"""
NOT_EMPTY = "OSError: Log directory is not empty. If you want to continue learning, you should provide ...\n"


DIVERGED = next(fault for fault in FAULTS if fault.kind == "diverged")


def duration(folder: Path, text: str) -> Finding:
    made = diagnose([logs.written(folder, text)], Given())
    return next(finding for finding in made.findings if finding.id == "duration")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ResourceExhaustedError (see above): OOM when allocating tensor", "out of memory"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "out of memory"),
        ("python: can't open file 'run.py': [Errno 2] No such file", "launch failure"),
        (NOT_EMPTY.strip(), "launch failure"),
        ("OSError: [Errno 28] No space left on device", "no space"),
        ("mpirun noticed that process rank 1 exited on signal 9 (Killed).", "killed"),
        ("FloatingPointError: Minimum loss scale reached (0.0001).", "diverged"),
    ],
)
def test_a_crash_is_called_by_its_name_with_what_to_change(tmp_path: Path, line: str, kind: str) -> None:
    found = duration(tmp_path, f"{logs.HEAD}{line}\n{ABORTED}")
    fault = next(fault for fault in FAULTS if fault.pattern.search(line))
    assert fault.kind == kind
    assert found.numbers["finished"] is False
    assert f"{kind}: {fault.meaning}" in found.answer
    assert fault.advice and fault.advice in found.advice


@pytest.mark.parametrize(
    ("line", "option"),
    [
        (NOT_EMPTY.strip(), "--continue_learning"),
        ("mpirun noticed that process rank 1 exited on signal 9 (Killed).", "dmesg"),
    ],
)
def test_advice_on_a_crash_names_what_to_type(tmp_path: Path, line: str, option: str) -> None:
    found = duration(tmp_path, f"{logs.HEAD}{line}\n{ABORTED}")
    assert any(not lacking(text, option) for text in found.advice)


def test_the_cause_outranks_its_consequences(tmp_path: Path) -> None:
    text = "NCCL WARN Call to recv failed\nCUDA out of memory\nCUDA_ERROR_ILLEGAL_ADDRESS\n" * 50
    found = duration(tmp_path, f"{logs.HEAD}{text}{ABORTED}")
    assert f"{FAULTS[0].kind}: {FAULTS[0].meaning}" in found.answer


def test_failed_starts_before_the_run_are_told_apart(tmp_path: Path) -> None:
    stopped = "mpirun noticed that process rank 0 with PID 0 on node a1 exited on signal 15 (Terminated).\n"
    text = (NOT_EMPTY + ABORTED) * 2 + logs.openseq2seq(500, end=stopped)
    found = duration(tmp_path, text)
    assert found.numbers["attempts"] == 3
    assert found.numbers["steps"] == 500
    assert not lacking(found.answer, "3 attempts", 2, "launch failure")
    assert "stopped: " in found.answer
    failed = next(fault for fault in FAULTS if fault.kind == "launch failure")
    assert failed.advice not in found.advice, "the third start was none"
    assert found.numbers["wall_seconds"] == pytest.approx(500 * 1.7 + 88.1 + 20)


@pytest.mark.parametrize(
    "line", ["a1:1:2 [0] NCCL WARN NET/IB : unable to open", "ImportError: No module named 'apex'"]
)
def test_a_warning_after_which_steps_were_made_was_no_end(tmp_path: Path, line: str) -> None:
    text = logs.openseq2seq(head=logs.HEAD.replace("*** Starting", f"{line}\n*** Starting"))
    found = duration(tmp_path, text)
    assert found.answer == duration(tmp_path, logs.openseq2seq()).answer
    assert found.numbers["attempts"] == 1


def test_a_fault_is_the_end_though_buffered_lines_were_written_after_it(tmp_path: Path) -> None:
    text = logs.openseq2seq(2000).replace("*** Global step 1600", "CUDA out of memory\n*** Global step 1600")
    assert "out of memory: " in duration(tmp_path, text).answer


def test_a_failed_launch_after_a_run_is_another_start(tmp_path: Path) -> None:
    found = duration(tmp_path, logs.openseq2seq(500) + NOT_EMPTY + ABORTED)
    assert found.numbers["attempts"] == 2
    assert not lacking(found.answer, "2 attempts", "launch failure")
    finished = duration(tmp_path, logs.openseq2seq(500, end="*** Finished training\n") + NOT_EMPTY)
    assert finished.numbers["finished"] is True


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Killed by signal 2.", "stopped"),
        ("[a1:01234] Signal: Segmentation fault (11)", "crash"),
        ("InvalidArgumentError: Nan in summary histogram for: loss", "diverged"),
    ],
)
def test_signals_are_told_apart(tmp_path: Path, line: str, kind: str) -> None:
    assert f"{kind}: " in duration(tmp_path, logs.openseq2seq(500, end=f"{line}\n")).answer


@pytest.mark.parametrize(
    ("end", "fact"),
    [
        ("NanLossDuringTrainingError: NaN loss during training.\n", DIVERGED.meaning),
        (logs.pace(3100, 1.7, math.nan) + logs.pace(3200, 1.7, math.inf), "step 3,100"),
    ],
)
def test_a_loss_that_is_no_number_is_divergence_and_not_improvement(
    tmp_path: Path, end: str, fact: str
) -> None:
    made = diagnose([logs.written(tmp_path, logs.openseq2seq(3000, end=end))], Given())
    improving = diagnose([logs.written(tmp_path, logs.openseq2seq(3000))], Given())
    found = next(finding for finding in made.findings if finding.id == "convergence")
    better = next(f for f in improving.findings if f.id == "convergence")
    assert better.verdict == "improving"
    assert (found.verdict, lacking(found.answer, fact)) == ("diverged", [])
    assert better.advice and not set(found.advice) & set(better.advice)


def test_words_of_faults_in_the_examples_are_no_faults(tmp_path: Path) -> None:
    example = "***     *****EVAL Source[0]: Killed Error CUDA out of memory KeyboardInterrupt\n"
    plain = duration(tmp_path, logs.openseq2seq())
    assert duration(tmp_path, logs.openseq2seq() + example * 20).answer == plain.answer
