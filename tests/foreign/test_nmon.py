from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.foreign.read import read
from tests.facts import only
from tests.foreign import logs

RECORDING = """\
AAA,progname,nmon
AAA,host,a1
AAA,interval,60
CPU_ALL,CPU Total a1,User%,Sys%,Wait%,Idle%,Busy,CPUs
NET,Network I/O a1,lo-read-KB/s,eth1-read-KB/s,eth0-read-KB/s,lo-write-KB/s,eth1-write-KB/s,eth0-write-KB/s,
DISKREAD,Disk Read KB/s a1,xvda,xvda1
"""


def recording(rates: list[float], first_minute: int = 36) -> str:
    """Of a machine whose clock stands where the log's does (15:36 and some seconds)."""
    text = RECORDING
    for number, rate in enumerate(rates):
        minutes = first_minute + number
        time = f"{15 + minutes // 60:02}:{minutes % 60:02}:43,26-JUN-2020"
        text += f"ZZZZ,T{number:04},{time}\nCPU_ALL,T{number:04},8.0,7.0,0.2,84.0,,16\n"
        text += f"NET,T{number:04},0.1,2.0,{rate + 5},0.1,1.0,{rate},\nDISKREAD,T{number:04},10.0,10.0\n"
    return text


def test_units_are_those_of_the_header(tmp_path: Path) -> None:
    rows = read([logs.written(tmp_path, recording([200_210.0]), "a1.nmon")])
    eth0 = next(row for row in rows.nics if row["interface"] == "eth0")
    assert eth0["sent_bytes"] == pytest.approx(1024 * 200_210)
    assert (eth0["host"], eth0["span"]) == ("a1", 60)
    assert rows.hosts[0]["cpu_share"] == pytest.approx(0.15)


def test_bytes_per_step_come_from_the_counters_of_the_same_time(tmp_path: Path) -> None:
    """365 MB in 1.7 s are 209,839 KB/s; minutes before and after the run do not count."""
    rate = 365.285e6 / 1.7 / 1024
    log = logs.written(tmp_path, logs.openseq2seq(2000))
    quiet = [1.0] * 5
    nmon = logs.written(tmp_path, recording([*quiet, *[rate] * 90, *quiet], 33), "a1.nmon")
    made = diagnose([log, nmon], Given())
    network = next(finding for finding in made.findings if finding.id == "network")
    assert network.numbers["bytes_per_step_per_host"] == pytest.approx(365.3e6, rel=0.06)
    only(network.evidence, "bytes_per_step_per_host", "eth0")


def test_a_recording_of_another_day_gives_its_busy_rate(tmp_path: Path) -> None:
    text = recording([3.0, 200_000.0, 201_000.0, 199_000.0, 2.0]).replace("2020", "2019")
    files = [logs.written(tmp_path, logs.openseq2seq(2000)), logs.written(tmp_path, text, "a1.nmon")]
    made = diagnose(files, Given())
    assert made.records.facts.nic_bytes_per_second == pytest.approx(1024 * 200_000)
    answer = next(finding for finding in made.findings if finding.id == "step_network")
    assert answer.confidence == "estimated"
    assert answer.numbers["bytes_per_step_per_host"] == pytest.approx(1024 * 200_000 * 1.74, rel=0.01)


def test_a_pasted_screen_is_read(tmp_path: Path) -> None:
    screen = "|I/F Name Recv=KB/s Trans=KB/s packin packout insize outsize Peak->Recv Trans\n"
    screen += "|      lo     0.0     0.0       0.0      0.0    0.0    0.0 0.0 0.0\n"
    screen += "|    eth0 220269.9 213121.1 157152.1 9672.1 1435.3 22563.6 3429392.8 3315087.8\n"
    rows = read([logs.written(tmp_path, screen)]).nics
    assert rows[1]["interface"] == "eth0"
    assert (rows[1]["sent_bytes"], rows[1]["received_bytes"]) == (1024 * 213121.1, 1024 * 220269.9)


def test_a_recording_cut_anywhere_is_read(tmp_path: Path) -> None:
    text = recording([100.0] * 10)
    for end in range(len(RECORDING) + 40, len(text), 37):
        rows = read([logs.written(tmp_path, text[:end], "a1.nmon")]).nics
        assert all(np.isfinite(row["span"]) for row in rows)


def test_a_sorted_recording_keeps_its_times(tmp_path: Path) -> None:
    text = recording([100.0] * 10)
    plain = read([logs.written(tmp_path, text, "a1.nmon")]).nics
    ordered = read([logs.written(tmp_path, "\n".join(sorted(text.splitlines())), "a1.nmon")]).nics
    assert [row["time"] for row in ordered] == [row["time"] for row in plain]
    assert np.isfinite([row["time"] for row in ordered]).all()


def test_a_recording_without_its_head_has_no_names_for_its_columns(tmp_path: Path) -> None:
    text = recording([100.0] * 10)
    found = read([logs.written(tmp_path, text[text.index("ZZZZ") :], "a1.nmon")])
    assert not found.nics
    assert len(found.notes) == 1
    assert not read([logs.written(tmp_path, text, "a1.nmon")]).notes
