"""Reads nmon recordings. Their header gives rates in KB/s, and nmon's KB is 1,024 bytes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from dragoman.foreign.log_facts import NAN, Gathered

LOOKS_FOR = "nmon recordings"
BEGINS = (
    rb"(?:AAA|ZZZZ|NET|CPU_ALL|DISKREAD|DISKWRITE),"
    rb"|\W{0,12}I/F Name Recv=KB/s|\W{0,12}\w+ +\d+\.\d +\d+\.\d +\d+\.\d "
)

KB = 1024
_MOST_ROWS = 1_000_000  # six days at one snapshot per second
_PARTITION = re.compile(r"(xvd|sd|vd|nvme\d+n\d+p)[a-z]*\d+")
_SNAPSHOT = re.compile(r"T\d+")
_SCREEN = re.compile(r"^\W*(\w+) +(\d+\.\d) +(\d+\.\d) +\d+\.\d +\d+\.\d ")


class Nmon:
    def __init__(self, gathered: Gathered):
        self._run = gathered
        self._host = ""
        self._interval = NAN
        self._time = NAN
        self._columns: dict[str, list[str]] = {}
        self._on_screen = False
        self._label = ""  # label of the newest snapshot, whose time is self._time
        self._undated: dict[str, list[dict[str, Any]]] = {}  # rows before their snapshot's time (sorted file)
        self._is_headless = False
        self.is_recognised = False

    def line(self, text: str) -> None:
        if "Recv=KB/s" in text:
            self._on_screen = True
            return
        if text[0] not in "AZNCMD":
            self._screen(text)
            return
        cells = text.split(",")
        if cells[0] == "AAA" and len(cells) > 2:
            self._about(cells[1], cells[2])
        elif cells[0] == "ZZZZ" and len(cells) > 3:
            self.is_recognised = True
            self._label, self._time = cells[1], self._run.dated(_moment(cells[3], cells[2]))
            for row in self._undated.pop(self._label, []):
                row["time"] = self._time - self._interval
        elif len(cells) > 2 and not _SNAPSHOT.fullmatch(cells[1]):
            self._columns[cells[0]] = [cell.strip() for cell in cells[2:]]
        elif cells[0] in self._columns:
            if self._has_room():
                self._row(cells[0], cells[1], [self._run.number(cell) for cell in cells[2:]])
        elif cells[0] == "NET":
            self._is_headless = True

    def _about(self, name: str, value: str) -> None:
        if name == "progname" and value.startswith("nmon"):
            self.is_recognised = True
        elif name == "host":
            self._host = value.strip()
        elif name == "interval":
            self._interval = self._run.lasting(self._run.number(value))

    def _row(self, table: str, label: str, values: list[float]) -> None:
        columns = dict(zip(self._columns[table], values, strict=False))
        # A row is the mean over the interval that ends at its time.
        time = self._time if label == self._label else NAN
        base = {"host": self._host, "time": time - self._interval, "span": self._interval, "snapshot": label}
        if table == "NET":
            for name in columns:
                if name.endswith("-read-KB/s"):
                    interface = name.removesuffix("-read-KB/s")
                    sent = columns.get(f"{interface}-write-KB/s", NAN)
                    meters = {"sent_bytes": KB * sent, "received_bytes": KB * columns[name]}
                    self._keep(self._run.nics, base | {"interface": interface} | meters)
        elif table == "CPU_ALL":
            busy = columns.get("User%", NAN) + columns.get("Sys%", NAN)
            self._keep(self._run.hosts, base | {"cpu_share": busy / 100})
        elif table in ("DISKREAD", "DISKWRITE"):
            # Without partitions: the disks they are on count the same bytes.
            whole = [value for name, value in columns.items() if not _PARTITION.fullmatch(name)]
            key = "disk_read_bytes" if table == "DISKREAD" else "disk_written_bytes"
            self._keep(self._run.hosts, base | {key: KB * sum(value for value in whole if value == value)})

    def _keep(self, rows: list[dict[str, Any]], row: dict[str, Any]) -> None:
        label = row.pop("snapshot")
        rows.append(row)
        if row["time"] != row["time"]:
            self._undated.setdefault(label, []).append(row)

    def _screen(self, text: str) -> None:
        """Reads a line that was pasted from nmon's screen, below its header."""
        match = _SCREEN.match(text) if self._on_screen else None
        if not match or not self._has_room():
            return
        self.is_recognised = True
        row = {"host": self._host, "time": NAN, "span": 1.0, "interface": match[1]}
        sent, received = self._run.number(match[3]), self._run.number(match[2])
        self._run.nics.append(row | {"sent_bytes": KB * sent, "received_bytes": KB * received})

    def _has_room(self) -> bool:
        if len(self._run.nics) + len(self._run.hosts) < _MOST_ROWS:
            return True
        self._run.left_out[f"lines of nmon after the first {_MOST_ROWS:,} rows"] += 1
        return False

    def finish(self) -> None:
        """Notes that the beginning of a recording, with the names of its columns, was cut off."""
        if self.is_recognised and self._is_headless:
            self._run.notes.append(
                "the beginning of an nmon recording is missing: the interfaces and units of its NET lines "
                "(given by the lines before the first ZZZZ) are unknown"
            )


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def _moment(date: str, time: str) -> float:
    """The Unix time of 30-JUN-2019 and 06:48:29. strptime's month names would depend on the user's locale."""
    try:
        day, month, year = date.strip().split("-")
        hour, minute, second = map(int, time.split(":"))
        at = datetime(int(year), _MONTHS.index(month.upper()) + 1, int(day), hour, minute, second, tzinfo=UTC)
    except (ValueError, OverflowError):
        return NAN
    return at.timestamp()
