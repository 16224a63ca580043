from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import csv_runs
from dragoman.errors import DataError, LogError
from dragoman.explain.finding import Finding
from dragoman.figures import LONGEST_TEXT
from dragoman.foreign.facts import Given
from tests.facts import failed, lacking, only

HEADER = (
    "run,gpu,nodes_x_gpus,n_ranks,cloud,requested_network,precision,batch_size_per_gpu,steps_done,hours,"
    "sec_per_step_written,sec_per_step_log,network_reading_verbatim,checkpoint_answer,"
    "nmon_screenshot_trans_KBps,gpu_power_screenshot_W,ours_verdict"
)
RUNS = Path(os.environ.get("DRAGOMAN_DATA", "/nowhere")) / "public-runs"
WHOLE = 'a,V100,2x2,4,One Cloud,1000 Mbps,mixed,256,50000,23.5,1.69,,200 Mbps,852267044 B,,"42,43",wrong'


def answers(folder: Path, *lines: str, **common: object) -> dict[str, dict[str, Finding]]:
    path = folder / "runs.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    made = csv_runs.read(path, Given.model_validate(common))
    return {row.name: {finding.id: finding for finding in found.findings} for row, found in made}


def test_a_row_gets_its_verdict(tmp_path: Path) -> None:
    network = answers(tmp_path, WHOLE)["a"]["network"]
    assert network.verdict == "bottleneck"
    assert network.numbers["step_seconds"] == pytest.approx(1.69, rel=2e-3)  # 23.5 hours say it as finely
    assert network.numbers["expected_bytes_per_step_per_host"] == pytest.approx(365.3e6, rel=1e-3)
    assert not lacking(network.answer[network.answer.index('"200 Mbps"') :], "200 MB/s", "1.6 Gbit/s")


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"1000 Mbps": "100 Gbps", '"42,43"': '"205,210"'}, "not_bottleneck"),
        ({"2x2,4": "1x4,4"}, "single_machine"),
        ({'"42,43"': '"174"'}, "bottleneck"),  # one moment of computing
        (
            {"1000 Mbps": "1gbps (not obtained)", "50000,23.5,1.69": "8000,72,35 s", '"42,43"': ""},
            "bottleneck",
        ),
        ({"V100": "", "256": "", '"42,43"': "", "1000 Mbps": ""}, "unknown"),
    ],
)
def test_another_fact_gives_another_verdict(tmp_path: Path, changes: dict[str, str], verdict: str) -> None:
    line = WHOLE
    for old, new in changes.items():
        line = line.replace(old, new)
    assert answers(tmp_path, line)["a"]["network"].verdict == verdict


def test_steps_per_second_written_as_seconds_are_found_out(tmp_path: Path) -> None:
    found = answers(tmp_path, "b,P100,2x2,4,,,fp32,,64017,30.5,0.6 seconds,,,,,,")["b"]["step_time"]
    assert found.numbers["mean_seconds"] == pytest.approx(1.715, abs=0.001)
    assert not lacking(found.answer, "0.6", "1.72 s")


@pytest.mark.parametrize(
    ("logged", "seconds", "is_slip"),
    [("0.52", 1.9, True), ("1900 ms", 1.9, False), ("1,829", 1.829, False), ("1.75", 1.75, False)],
)
def test_a_slip_in_the_log_column_is_found_out(
    tmp_path: Path, logged: str, seconds: float, is_slip: bool
) -> None:
    """26.4 hours for 50,000 steps: 1.9 s each."""
    row = f'd,P100,2x2,4,,,fp32,,50000,26.4,,"{logged}",,,,,'
    found = answers(tmp_path, row)["d"]["step_time"]
    assert found.numbers["mean_seconds"] == pytest.approx(seconds, abs=0.001)
    assert (not lacking(found.answer, "1.9 s", logged)) == is_slip, "the rate, and the seconds it means"


def test_the_log_is_believed_before_what_was_written(tmp_path: Path) -> None:
    found = answers(tmp_path, "c,P100,2x2,4,,,fp32,,,roughly 24,about 300ms,1.829 mean (8 pts),,,,,")["c"]
    assert found["step_time"].numbers["mean_seconds"] == 1.829


def test_what_a_row_leaves_out_is_taken_from_the_others_and_called_assumed(tmp_path: Path) -> None:
    bare = "d,,,,{cloud},,mixed,,50000,24,,,,,,,"
    found = answers(tmp_path, WHOLE, bare.format(cloud="One Cloud"))["d"]
    assert found["network"].verdict == "bottleneck"
    only(found["network"].evidence, "assumed", "ranks", "machines")
    # Another cloud has other machines: nothing is known of its GPUs.
    assert answers(tmp_path, WHOLE, bare.format(cloud="Other"))["d"]["network"].verdict == "unknown"


@pytest.mark.parametrize(
    ("nodes", "ranks", "placed"),
    [
        ("2x2", "", (4, 2)),
        ("1+1", "", (2, 2)),
        ("2 v100 machines", "4", (4, 2)),
        ("2 GPUs per VM in screenshot", "4", (4, 2)),
        ("2x2 (-n 4)", "4", (4, 2)),
        ("2×4", "", (8, 2)),
        ("2 X 4", "", (8, 2)),
        ("4 nodes x 2 GPUs", "", (8, 4)),
        ("4 GPUs on one machine", "4", (4, 1)),
        ("8 GPUs on 2 machines", "", (8, 2)),
        ("2 (two) machines", "4", (4, 2)),
        ("", "", (None, None)),
    ],
)
def test_machines_are_read_off_any_notation(
    nodes: str, ranks: str, placed: tuple[int | None, int | None]
) -> None:
    assert csv_runs._placing(ranks, nodes) == placed


def test_a_file_without_known_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_bytes(b"x,y\n1,2\n\xff\xfe\n")
    with pytest.raises(DataError) as caught:
        csv_runs.read(path, Given())
    assert caught.value.path == str(path)
    assert not lacking(caught.value.hint, "run", "n_ranks", "hours")


@pytest.mark.parametrize(
    ("power", "watts", "limit"),
    [
        ("42W / 250W, 43W / 300W", [42, 43], 300),
        ("42 of 250", [42], 250),
        ("a 41,44; b 158 at 79%", [41, 44, 158], None),
        ("about 45W each", [45], None),
    ],
)
def test_a_limit_is_not_a_draw(power: str, watts: list[float], limit: float | None) -> None:
    assert csv_runs._power(power) == (watts, limit)


def test_machines_may_be_spelt_out() -> None:
    assert csv_runs._placing("4", "a single node with 4 GPUs") == (4, 1)
    assert csv_runs._placing("4", "two machines") == (4, 2)


def test_a_row_whose_bounds_contradict_each_other_is_unknown(tmp_path: Path) -> None:
    """At 10 Gbit/s the exchange takes 0.3 s and computing 0.7 s at most: what filled a step of 1.7 s?"""
    line = WHOLE.replace("1000 Mbps", "10 Gbps").replace('"42,43"', "")
    found = answers(tmp_path, line)["a"]["network"]
    assert found.verdict == "unknown"
    # GPUs that draw their power say that it was computing, whatever the cost model says.
    assert answers(tmp_path, line[:-6] + '"220,230",')["a"]["network"].verdict == "balanced"


def test_hours_and_minutes_are_not_minutes(tmp_path: Path) -> None:
    line = WHOLE.replace("23.5,1.69", "23 hours and 36 minutes,")
    found = answers(tmp_path, line)["a"]["step_time"]
    assert found.numbers["mean_seconds"] == pytest.approx(1.699, abs=0.001)


def test_a_written_step_time_of_some_digits_goes_before_the_quotient(tmp_path: Path) -> None:
    """The quotient holds evaluations and restarts as well."""
    found = answers(tmp_path, WHOLE.replace("23.5,1.69", "25.606,1.714"))["a"]["step_time"]
    assert found.numbers["mean_seconds"] == pytest.approx(1.714)


def test_columns_are_known_in_any_case_order_and_dialect(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("\ufeffSec_per_step_log;GPU;nodes_x_gpus;run\n1.7;V100;2x2;x\n", encoding="utf-8")
    ((row, found),) = csv_runs.read(path, Given())
    assert row.name == "x"
    assert found.records.facts.ranks == 4


@pytest.mark.parametrize("column", HEADER.split(","))
@pytest.mark.parametrize(
    "cell", ["1e-320", "1e999", "9" * 1999, "0", "-1", "nan", "0 per VM", "1 s for 0 steps"]
)
def test_a_cell_that_cannot_be_true_leaves_the_row_its_answers(
    tmp_path: Path, column: str, cell: str
) -> None:
    named = dict(zip(HEADER.split(","), next(csv.reader([WHOLE])), strict=True)) | {column: cell}
    line = ",".join(f'"{value}"' for value in named.values())
    (found,) = answers(tmp_path, line).values()
    assert not failed(list(found.values()))


def test_a_cell_of_a_book_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(LogError) as caught:
        answers(tmp_path, WHOLE, f"{'x' * 3000},V100")
    assert caught.value.where == f"{tmp_path / 'runs.csv'}:3"
    assert not lacking(caught.value.what, f"{LONGEST_TEXT:,}")


def run(*arguments: object) -> str:
    """What the command prints, in a process of its own."""
    command = [sys.executable, csv_runs.__file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_rows_give_a_line_each_and_all_answers_as_json(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEADER}\n{WHOLE}\n")
    (line,) = run(path).splitlines()
    assert line.split()[:2] == ["a", "bottleneck"]
    assert "1.69 s" in line and "365.3 MB" in line
    document = json.loads(run(path, "--json"))
    assert document["schema"] == 1
    (made,) = document["runs"]
    assert len(made["findings"]) == 11


def test_facts_of_a_file_hold_for_rows_that_do_not_say_otherwise(tmp_path: Path) -> None:
    path, facts = tmp_path / "runs.csv", tmp_path / "facts.toml"
    path.write_text(f"{HEADER}\n{WHOLE}\n")
    facts.write_text('params = 1_000_000\nlink = "100gbit"\n')
    (made,) = json.loads(run(path, "--facts", facts, "--json"))["runs"]
    assert made["run"]["parameters"] == 1_000_000
    assert made["run"]["origins"]["link_bits_per_second"] == "given"


@pytest.mark.skipif(not RUNS.exists(), reason="DRAGOMAN_DATA has no public-runs")
def test_every_row_agrees_with_what_its_figures_imply() -> None:
    path = RUNS / "runs.csv"
    with path.open(newline="") as file:
        implied = {row["run"]: row for row in csv.DictReader(file)}
    for row, made in csv_runs.read(path, Given(params=60_880_896)):
        network = next(finding for finding in made.findings if finding.id == "network")
        ours = implied[row.name]
        wanted = ("bottleneck",) if ours["ours_verdict"] == "network-bound" else ("balanced", "unknown")
        assert network.verdict in wanted, row.name
        wire = network.numbers["expected_bytes_per_step_per_host"]
        assert wire == pytest.approx(1e6 * float(ours["ours_wire_MB_per_step"]), rel=1e-3)
        assert network.numbers["step_seconds"] == pytest.approx(float(ours["ours_T_s"]), rel=0.15)
