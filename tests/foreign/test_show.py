from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.explain.questions import QUESTIONS
from tests.facts import lacking
from tests.foreign import logs


def diagnose(*arguments: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own, in which torch cannot be imported."""
    program = "import sys; sys.modules['torch'] = None; from dragoman.cli import main; main()"
    command = [sys.executable, "-c", program, "diagnose", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return logs.written(tmp_path, logs.openseq2seq(), packed=True)


def test_answers_as_json_without_torch(log: Path) -> None:
    done = diagnose(log, "--link", "1gbit", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["schema"], len(document["findings"])) == (1, len(QUESTIONS))
    assert document["run"]["source"] == "OpenSeq2Seq"
    assert document["run"]["origins"]["link_bits_per_second"] == "given"
    assert document["run"]["origins"]["ranks"] == "measured"


def test_the_report_for_people_names_the_files_and_writes_the_page(log: Path, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    done = diagnose(log, "--html", page)
    assert done.returncode == 0
    assert not lacking(done.stdout, log, "OpenSeq2Seq", "NCCL", page)
    text = page.read_text()
    assert all(question.wording in text for question in QUESTIONS.values())
    assert "2020-06-26 15:36:43 UTC" in text


def test_facts_may_come_from_a_file_and_options_go_before_it(tmp_path: Path) -> None:
    path = tmp_path / "facts.toml"
    path.write_text('step_seconds = 1.9\nranks = 4\nmachines = 2\nparams = 60880896\nlink = "1gbit"\n')
    by_file = json.loads(diagnose("--facts", path, "--json").stdout)
    by_option = json.loads(diagnose("--facts", path, "--link", "100gbit", "--json").stdout)
    verdicts = [document["findings"][4]["verdict"] for document in (by_file, by_option)]
    assert verdicts == ["bottleneck", "not_bottleneck"]


@pytest.mark.parametrize(
    ("arguments", "code", "facts"),
    [
        ((), 2, ["--step-seconds", "--steps", "--hours"]),
        (("absent.log",), 2, ["absent.log"]),
        (("--step-seconds", "1", "--ranks", "2", "--machines", "4"), 2, [2, 4]),
        (("--step-seconds", "1", "--link", "fast"), 2, ["fast", "1gbit"]),
        (("--step-seconds", "-1"), 2, ["--step-seconds -1.0", 0]),
        (("--step-seconds", "1", "--precision", "int3"), 2, ["--precision int3", "fp32", "mixed"]),
        (("--step-seconds", "1", "--gpu", "Voodoo"), 0, ["--gpu Voodoo", "V100", "P100"]),
        (("--step-seconds", "1", "--gpu-power", "warm"), 2, ["--gpu-power warm", "--gpu-power 42/250"]),
    ],
)
def test_wrong_use_names_what_was_given_and_what_would_do(
    arguments: tuple[str, ...], code: int, facts: list[object]
) -> None:
    done = diagnose(*arguments)
    assert done.returncode == code
    assert not lacking(done.stderr, *facts)
    assert "Traceback" not in done.stderr


def test_garbage_gets_a_message_and_exit_code_1(tmp_path: Path) -> None:
    path = logs.written(tmp_path, bytes(range(256)) * 99, "thing")
    done = diagnose(path)
    assert done.returncode == 1
    assert not lacking(done.stderr, path, "OpenSeq2Seq")


def test_an_unknown_fact_is_named_with_those_that_are_known(tmp_path: Path) -> None:
    path = tmp_path / "facts.toml"
    path.write_text("rank = 4\n")
    done = diagnose("--facts", path)
    assert done.returncode == 2
    assert not lacking(done.stderr, path, "rank", "gpu_power")
