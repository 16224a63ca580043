"""foreign/facts.py: what the user says, beside a log and without one."""

from pathlib import Path

import pytest

from dragoman.explain.finding import Finding
from dragoman.foreign.answers import Diagnosis, diagnose
from dragoman.foreign.facts import Given
from tests.facts import lacking
from tests.foreign import logs


def finding(made: Diagnosis, id: str) -> Finding:
    return next(finding for finding in made.findings if finding.id == id)


def test_facts_alone_are_not_called_measured() -> None:
    made = diagnose([], Given(step_seconds=1.9, steps=50_000, hours=26.4))
    duration, step_time = finding(made, "duration"), finding(made, "step_time")
    assert duration.numbers["steps"] == 50_000
    assert "finished" not in duration.numbers, "nobody said how it ended"
    assert step_time.numbers["mean_seconds"] == pytest.approx(1.9)
    assert "median_seconds" not in step_time.numbers, "of a mean nobody knows the median"
    assert duration.confidence == step_time.confidence == "estimated"


def test_the_times_of_a_log_are_its_own_and_a_note_says_so(tmp_path: Path) -> None:
    path = logs.written(tmp_path, logs.openseq2seq(2000))
    plain = diagnose([path], Given())
    made = diagnose([path], Given(step_seconds=99.0, steps=5, hours=1.0))
    for id in ("duration", "step_time"):
        assert finding(made, id).numbers == finding(plain, id).numbers
        assert finding(made, id).evidence == finding(plain, id).evidence, "nothing rests on what was given"
    assert [note.partition(":")[0] for note in made.notes] == ["--step-seconds", "--steps", "--hours"]


def test_what_differs_from_the_log_is_pointed_out(tmp_path: Path) -> None:
    path = logs.written(tmp_path, logs.openseq2seq(2000))
    batch = diagnose([path], Given()).records.facts.settings["data.microbatch"]
    (note,) = diagnose([path], Given(batch=batch + 1)).notes
    assert not lacking(note, batch + 1, batch)
