from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.foreign.answers import diagnose
from dragoman.foreign.facts import Given
from dragoman.foreign.read import read
from tests.facts import lacking, only
from tests.foreign import logs

TABLE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla V100-PCIE...  Off  | 00000000:00:07.0 Off |                    0 |
| N/A   41C    P0    42W / 250W |  15548MiB / 16130MiB |    100%      Default |
+-------------------------------+----------------------+----------------------+
|   1  Tesla V100-PCIE...  Off  | 00000000:00:08.0 Off |                    0 |
| N/A   43C    P0    46W / 250W |  15548MiB / 16130MiB |    100%      Default |
+-------------------------------+----------------------+----------------------+
"""
DMON = """\
# gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk
# Idx     W     C     C     %     %     %     %   MHz   MHz
    0    43    41     -   100     0     0     0   877  1380
    1    45    43     -    99     1     0     0   877  1380
"""
CSV = """\
timestamp, name, index, power.draw [W], power.limit [W], utilization.gpu [%], memory.used [MiB]
2020/06/26 16:00:00.123, Tesla V100-PCIE-16GB, 0, 44.10 W, 250.00 W, 100 %, 15548 MiB
2020/06/26 16:00:01.123, Tesla V100-PCIE-16GB, 0, 42.10 W, 250.00 W, 100 %, 15548 MiB
"""


@pytest.mark.parametrize(
    ("text", "watts", "limit"), [(TABLE, (42, 46), 250), (DMON, (43, 45), None), (CSV, (44.1, 42.1), 250)]
)
def test_power_and_utilisation_are_read(
    tmp_path: Path, text: str, watts: tuple[float, ...], limit: float | None
) -> None:
    rows = read([logs.written(tmp_path, text, "smi.txt")]).gpus
    assert tuple(row["power_watts"] for row in rows) == watts
    assert rows[0]["utilisation"] == 1.0
    assert rows[0].get("power_limit_watts") == limit


def test_a_hundred_percent_at_forty_watts_is_waiting(tmp_path: Path) -> None:
    files = [logs.written(tmp_path, logs.openseq2seq()), logs.written(tmp_path, TABLE, "smi.txt")]
    devices = next(
        finding for finding in diagnose(files, Given()).findings if finding.id == "device_utilisation"
    )
    assert devices.verdict == "waiting_network"
    assert devices.numbers["power_share"] == pytest.approx(44 / 250)
    assert not lacking(devices.answer, "100%", "18%")


def test_a_table_pasted_into_the_log_is_seen(tmp_path: Path) -> None:
    assert len(read([logs.written(tmp_path, logs.openseq2seq() + TABLE + DMON)]).gpus) == 4


NEWER = """\
|=========================================+======================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |
| N/A   30C    P0              81W / 400W |  40004MiB / 81920MiB |    100%      Default |
|                                         |                      |             Disabled |
+-----------------------------------------+----------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  | 00000000:0B:00.0 Off |                    0 |
| N/A   28C    P0              61W / 400W |      4MiB / 81920MiB |      0%      Default |
+-----------------------------------------+----------------------+----------------------+
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|    0   N/A  N/A      1184      C   python3                                      N/A   |
+---------------------------------------------------------------------------------------+
"""


def test_a_process_is_no_device_and_an_idle_gpu_takes_no_part(tmp_path: Path) -> None:
    made = diagnose([logs.written(tmp_path, NEWER, "smi.txt")], Given())
    assert made.records.facts.device == "NVIDIA A100-SXM4-80GB"
    assert list(made.records.gpus["power_watts"]) == [81]


DATED = """\
#Date       Time        gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk
#YYYYMMDD   HH:MM:SS    Idx     W     C     C     %     %     %     %   MHz   MHz
 20200626   16:00:01      0    43    41     -   100     0     0     0   877  1380
"""


@pytest.mark.parametrize(
    "text",
    [
        DATED,
        DATED.replace("#Date       ", "#").replace("#YYYYMMDD   ", "#").replace(" 20200626  ", ""),
        "name, utilization.gpu [%], power.draw [W]\nTesla V100-PCIE-16GB, 100 %, 43.00 W\n",
        "power.draw [W], utilization.gpu [%]\n43.00 W, 100 %\n",
        "uuid, power.draw [W], utilization.gpu [%]\nGPU-0a-1b, 43.00, 100\n",
        "pstate, power.draw [W], utilization.gpu [%]\nP0, 43.00 W, 100 %\n",
        "2020/06/26 16:00:00.123, Tesla V100-PCIE-16GB, 0, 43.00 W, 250.00 W, 100 %, 15548 MiB\n",
        "    |   0  Tesla V100  Off  | 00000000:00:07.0 Off |   0 |\n"
        "    | N/A   41C    P0    43W / 250W |  15548MiB / 16130MiB |    100%      Default |\n",
    ],
    ids=[
        "dmon -o DT",
        "dmon -o T",
        "name first",
        "watts first",
        "uuid first",
        "pstate first",
        "no header",
        "pasted",
    ],
)
def test_every_way_of_asking_gives_the_same_meters(tmp_path: Path, text: str) -> None:
    (row,) = read([logs.written(tmp_path, text, "smi.txt")]).gpus
    assert (row["power_watts"], row["utilisation"]) == (43, 1)


def test_a_query_of_one_column_is_read(tmp_path: Path) -> None:
    rows = read([logs.written(tmp_path, "utilization.gpu [%]\n100 %\n99 %\n", "smi.csv")]).gpus
    assert [row["utilisation"] for row in rows] == [1, 0.99]


def test_without_a_limit_that_of_the_type_is_taken_and_said_to_be(tmp_path: Path) -> None:
    made = diagnose([logs.written(tmp_path, DMON, "dmon.txt")], Given(gpu="V100"))
    devices = next(finding for finding in made.findings if finding.id == "device_utilisation")
    assert devices.numbers["power_share"] == pytest.approx(44 / 250)
    only(devices.evidence, "estimated", "gpu meters")
