"""Numbers and dates that no run has: left out and said, and the rest of the log still counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.foreign.log_facts import MOST_STARTS
from tests.facts import lacking, only
from tests.foreign import logs
from tests.foreign.test_fairseq import log, stamp
from tests.foreign.test_hostile import checked, events

NINES = "9" * 5000  # more digits than Python turns into a number
FAIRSEQ, OPENSEQ2SEQ = log(), logs.openseq2seq()


@pytest.mark.parametrize(
    ("text", "before", "after", "left_out"),
    [
        (FAIRSEQ, "gnorm=1.5", "gnorm=inf", 10),
        (FAIRSEQ, "ups=0.5", "ups=0.50, wpb=nan, bsz=nan", 0),
        (FAIRSEQ, "wall=1000", "wall=inf", 1),
        (FAIRSEQ, "num_updates=500", f"num_updates={NINES}", 1),
        (FAIRSEQ, "num_updates=500", "num_updates=-5e20", 1),
        (FAIRSEQ, "60,880,896", NINES, 1),
        (FAIRSEQ, "'lr': [0.0005]", "'lr': [1e-320]", 0),
        (FAIRSEQ, "'warmup_updates': 400", f"'warmup_updates': {NINES}", 0),
        (OPENSEQ2SEQ, "60880896", NINES, 1),
        (OPENSEQ2SEQ, "nranks 4", f"nranks {NINES}", 4),
        (OPENSEQ2SEQ, "step 500:", "step 5000000000000000:", 1),
        (OPENSEQ2SEQ, "step = 0:00:1.9", "step = 9999999:00:1.9", 8),
        (OPENSEQ2SEQ, "'print_loss_steps': 100", "'print_loss_steps': 1e999", 0),
        (OPENSEQ2SEQ, "'batch_size_per_gpu': 256", "'iter_size': 'abc',\n 'batch_size_per_gpu': 10**9", 0),
        (OPENSEQ2SEQ, "2020-06-26 15:36:43", "2098-02-31 15:36:43", 0),
        (FAIRSEQ, stamp(410), "0001-01-01 00:00:00", 1),
        (FAIRSEQ, stamp(410), "9999-12-31 23:59:59", 1),
        (FAIRSEQ, stamp(410), "2035-01-01 00:00:00", 1),
        (FAIRSEQ, stamp(0), "2003-01-01 00:00:00", 1),
        (FAIRSEQ, stamp(1410), "2021-03-04 09:00:00", 0),
    ],
)
def test_what_cannot_be_true_is_left_out_and_said(
    text: str, before: str, after: str, left_out: int, tmp_path: Path
) -> None:
    assert before in text
    made = diagnose([logs.written(tmp_path, text.replace(before, after), "run.log")], Given())
    checked(made)
    assert [note.rpartition(" ")[2] for note in made.notes] == [f"({left_out})"] * bool(left_out)
    numbers = {finding.id: finding.numbers for finding in made.findings}
    assert numbers["duration"]["steps"] in (1000, 2000)
    assert 0 < numbers["duration"]["wall_seconds"] < 3 * 3600
    assert 1.5 < numbers["step_time"]["median_seconds"] < 2.1


@pytest.mark.parametrize("time", [1e18, -5.0, float("nan"), float("inf"), 3e9])
def test_times_of_a_curve_that_cannot_be_true_are_left_out(time: float, tmp_path: Path) -> None:
    made = diagnose([logs.written(tmp_path, events(late=time), "events.out.tfevents.1")], Given())
    checked(made)
    numbers = {finding.id: finding.numbers for finding in made.findings}
    assert numbers["step_time"]["median_seconds"] == pytest.approx(2.0)
    assert numbers["duration"]["wall_seconds"] == pytest.approx(580)
    if time == time:
        assert not lacking(" ".join(made.notes), 3), "its three values"


def test_many_starts_take_no_longer_than_many_lines(tmp_path: Path) -> None:
    """Every line falls back, with an evaluation between: comparing each with each would take minutes."""
    lines = "".join(logs.pace(step % 2, 1.7) + logs.evaluation(3.0, 0.1) for step in range(5_000))
    made = diagnose([logs.written(tmp_path, lines)], Given())
    checked(made)
    only(made.notes, f"{MOST_STARTS:,}")
