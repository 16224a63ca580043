"""Reads the output of nvidia-smi: its table, `dmon`, and csv queries."""

from __future__ import annotations

import re
from typing import Any

from dragoman.foreign.cluster import moment
from dragoman.foreign.log_facts import MOST_RANKS, NAN, Gathered

LOOKS_FOR = "nvidia-smi's table, dmon or csv"
BEGINS = (
    rb" *\| +(?:\d+|N/A|ERR!|\d+%) |# *(?:Date +|Time +)*gpu +| +[\d:]+ +(?:[\d:]+|-) +(?:\d+|-) "
    rb"|\d{4}/\d\d/\d\d \d\d:|(?:Tesla|NVIDIA|GeForce|Quadro|GRID|GPU-)[^,]{1,60}, |P\d+, "
    rb"|[0-9A-F]{8}:[^,]{7}, |(?:\d+(?:\.\d+)?|\[N[^\],]{1,20}\])(?: (?:%|W|MiB|MHz))?(?:, | *$)"
    rb"|(?:timestamp|index|count|name|uuid|pstate|driver_|gpu_|fan\.|clocks\.|power\.|utilization\.|memory\."
    rb"|temperature\.|pci\.)[^,]{0,24}(?:,|$)"
)

MIB = 2**20
# The bus id at the end tells a GPU's line from a process's.
_NAME = re.compile(r"^\| +(\d+) +(\S+(?: \S+)*) +(?:On|Off|N/A) +\| +[0-9A-Fa-f]{4,8}:")
_METERS = re.compile(
    r"(?:(?<!\d)(\d+)C +)?P\d+ +(\d+|N/A|ERR!)W? / +(\d+|N/A|ERR!)W? +\| +"
    r"(\d+)MiB / +(\d+)MiB +\| +(\d+|N/A)%?"
)
_CSV = {  # column of a query, without its unit -> our column, factor
    "utilization.gpu": ("utilisation", 0.01),
    "power.draw": ("power_watts", 1.0),
    "power.draw.average": ("power_watts", 1.0),
    "power.draw.instant": ("power_watts", 1.0),
    "power.limit": ("power_limit_watts", 1.0),
    "enforced.power.limit": ("power_limit_watts", 1.0),
    "memory.used": ("memory_bytes", float(MIB)),
    "temperature.gpu": ("temperature_celsius", 1.0),
    "index": ("gpu", 1.0),
}
_DMON = {
    "pwr": ("power_watts", 1.0),
    "sm": ("utilisation", 0.01),
    "gtemp": ("temperature_celsius", 1.0),
    "fb": ("memory_bytes", float(MIB)),
    "gpu": ("gpu", 1.0),
}
_WATTS, _PERCENT = (re.compile(rf"(?:^|, )(\d+(?:\.\d+)?) {unit}(?=,|$)") for unit in "W%")
_MOST_ROWS = 500_000


class Nvidia:
    def __init__(self, gathered: Gathered):
        self._run = gathered
        self._gpu = 0
        self._dmon: list[str] = []
        self._csv: list[str] = []
        self.is_recognised = False

    def line(self, text: str) -> None:
        if len(self._run.gpus) >= _MOST_ROWS:
            self._run.left_out[f"lines of nvidia-smi after the first {_MOST_ROWS:,} rows"] += 1
            return
        if text.lstrip().startswith("|"):
            self._table(text.lstrip())
        elif text.startswith("#"):
            names = text.lstrip("# ").split()
            if "gpu" in names[:3]:
                self._dmon = names
        elif "power.draw" in text or "utilization.gpu" in text:
            self._csv = [name.partition("[")[0].strip() for name in text.split(",")]
        elif self._csv and ("," in text or len(self._csv) == 1):
            self._query(text)
        elif not self._csv and _WATTS.search(text):
            self._unnamed(text)
        elif self._dmon:
            self._sample(text)

    def _table(self, text: str) -> None:
        if name := _NAME.match(text):
            self._gpu = self._run.whole(name[1], MOST_RANKS) or 0
            self._run.fact("device", name[2].strip().rstrip("."))
        elif meters := _METERS.search(text):
            values = [self._run.number(value) for value in meters.groups()]
            self._add(
                temperature_celsius=values[0],
                power_watts=values[1],
                power_limit_watts=values[2],
                memory_bytes=values[3] * MIB,
                utilisation=values[5] / 100,
                gpu=self._gpu,
            )

    def _sample(self, text: str) -> None:
        cells = text.split()
        if len(cells) != len(self._dmon):
            return
        row = {"time": self._run.dated(_dmon_time(dict(zip(self._dmon, cells, strict=True))))}
        for name, cell in zip(self._dmon, cells, strict=True):
            if name in _DMON:
                ours, factor = _DMON[name]
                row[ours] = factor * self._run.number(cell)
        self._add(**row)

    def _query(self, text: str) -> None:
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) != len(self._csv):
            return
        row: dict[str, Any] = {}
        for name, cell in zip(self._csv, cells, strict=True):
            if name in _CSV:
                ours, factor = _CSV[name]
                row[ours] = factor * self._run.number(cell.split(" ")[0])
            elif name == "timestamp":
                row["time"] = self._run.dated(moment(cell.replace("/", "-")))
            elif name == "name":
                self._run.fact("device", cell)
        self._add(**row)

    def _unnamed(self, text: str) -> None:
        """Reads a query without its header by units: watts (the limit is larger) and a single percentage."""
        watts = sorted(map(self._run.number, _WATTS.findall(text)))
        shares = [self._run.number(share) for share in _PERCENT.findall(text)]
        row = {"power_watts": watts[0], "power_limit_watts": watts[1] if len(watts) == 2 else NAN}
        if len(watts) <= 2:
            self._add(**row, utilisation=shares[0] / 100 if len(shares) == 1 else NAN)

    def _add(self, **row: Any) -> None:
        self.is_recognised = True
        gpu = row.pop("gpu", NAN)  # a query may lack it
        row["gpu"] = gpu if 0 <= gpu <= MOST_RANKS else 0
        self._run.gpus.append({"host": "", "time": NAN, "span": 1.0, **row})

    def finish(self) -> None:
        """Does nothing: every line is complete by itself."""


def _dmon_time(cells: dict[str, str]) -> float:
    """The Unix time of a line of `dmon -o DT` (20200626, 16:00:01); NaN if the date is missing."""
    day = cells.get("Date", "")
    return moment(f"{day[:4]}-{day[4:6]}-{day[6:]} {cells.get('Time', '')}")
