"""What nvidia-smi says: its table, `dmon`, and csv queries."""

from __future__ import annotations

import re
from typing import Any

from dragoman.foreign.cluster import moment
from dragoman.foreign.gathered import NAN, Gathered, number

LOOKS_FOR = "nvidia-smi's table, dmon or csv"
BEGINS = (
    rb"\| +(?:\d+|N/A|ERR!|\d+%) |# *gpu +| +\d+ +(?:\d+|-) +(?:\d+|-) |\d+, |\d{4}/\d\d/\d\d \d\d:"
    rb"|(?:timestamp|index|name|uuid|power\.|utilization\.|memory\.|temperature\.|pci\.)[^,]{0,20},"
)

MIB = 2**20
_NAME = re.compile(r"^\| +(\d+) +(\S.*?) +(?:On|Off|N/A) +\|")
_METERS = re.compile(
    r"(?:(\d+)C +)?P\d+ +(\d+|N/A)W? / +(\d+|N/A)W? +\| +(\d+)MiB / +(\d+)MiB +\| +(\d+|N/A)%?"
)
_CSV = {  # column of a query, without its unit -> column of ours, factor
    "utilization.gpu": ("utilisation", 0.01),
    "power.draw": ("power_watts", 1.0),
    "power.limit": ("power_limit_watts", 1.0),
    "enforced.power.limit": ("power_limit_watts", 1.0),
    "memory.used": ("memory_bytes", float(MIB)),
    "temperature.gpu": ("temperature_celsius", 1.0),
    "index": ("gpu", 1.0),
}
_DMON = {"pwr": ("power_watts", 1.0), "sm": ("utilisation", 0.01), "gtemp": ("temperature_celsius", 1.0)}
_MOST_ROWS = 500_000


class Nvidia:
    def __init__(self, gathered: Gathered):
        self._run = gathered
        self._gpu = 0
        self._dmon: list[str] = []
        self._csv: list[str] = []
        self.is_found = False

    def line(self, text: str) -> None:
        if len(self._run.gpus) >= _MOST_ROWS:
            return
        if text.startswith("|"):
            self._table(text)
        elif text.startswith("#"):
            names = text.lstrip("# ").split()
            if names[:1] == ["gpu"]:
                self._dmon = names
        elif "power.draw" in text or "utilization.gpu" in text:
            self._csv = [re.sub(r" *\[.*\]", "", name).strip() for name in text.split(",")]
        elif self._csv and "," in text:
            self._query(text)
        elif self._dmon:
            self._sample(text)

    def _table(self, text: str) -> None:
        if name := _NAME.match(text):
            self._gpu = int(name[1])
            self._run.fact("device", name[2].strip().rstrip("."))
        elif meters := _METERS.search(text):
            values = [number(value) for value in meters.groups()]
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
        row = {"gpu": number(cells[0])}
        for name, cell in zip(self._dmon, cells, strict=True):
            if name in _DMON:
                ours, factor = _DMON[name]
                row[ours] = factor * number(cell)
        self._add(**row)

    def _query(self, text: str) -> None:
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) != len(self._csv):
            return
        row: dict[str, Any] = {}
        for name, cell in zip(self._csv, cells, strict=True):
            if name in _CSV:
                ours, factor = _CSV[name]
                row[ours] = factor * number(cell.split(" ")[0])
            elif name == "timestamp":
                row["time"] = moment(cell.replace("/", "-"))
            elif name == "name":
                self._run.fact("device", cell)
        self._add(**row)

    def _add(self, **row: Any) -> None:
        self.is_found = True
        self._run.gpus.append({"host": "", "time": NAN, "span": 1.0, **row})

    def finish(self) -> None:
        """Nothing is left open."""
