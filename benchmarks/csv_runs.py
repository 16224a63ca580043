"""Runs as their owners wrote them down: a CSV with a row per run, diagnosed row by row.

    python benchmarks/csv_runs.py runs.csv [--facts facts.toml] [--json]

Prints a verdict line per row, or all answers of every row as JSON. --facts names a TOML file as `dragoman
diagnose --facts` takes it; its facts hold for rows that do not say otherwise.

People leave out what they took for granted, and all runs of a file are of one kind. So what a row does not
say is taken from the others where those agree: ranks, machines, batch and parameters from all of them, the
GPU only from rows of the same cloud, for another cloud has other machines. It is called `assumed` then.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dragoman import figures, format_units, terminal
from dragoman.cost import gpu_types
from dragoman.errors import DragomanError, LogError, reading
from dragoman.explain.finding import SCHEMA, Finding
from dragoman.figures import bits_per_second, figure, readings, rounding
from dragoman.foreign import facts as given_facts
from dragoman.foreign import steptime
from dragoman.foreign.answers import STATES_BYTES, Diagnosis, answer
from dragoman.foreign.facts import Given
from dragoman.foreign.lines import check_is_file
from dragoman.foreign.log_facts import ASSUMED, ESTIMATED, GIVEN, MOST_HOURS, MOST_RANKS, NAN, Gathered, count
from dragoman.foreign.nmon import KB
from dragoman.report import summary

AGREEMENT = 2 / 3  # of the rows that say it, for a fact to be taken over by those that do not
_MOST_ROWS = 1_000
_LONGEST_HEAD = 1 << 16  # characters
_KNOWN = (
    "run", "gpu", "nodes_x_gpus", "n_ranks", "requested_network", "precision", "batch_size_per_gpu",
    "steps_done", "hours", "sec_per_step_written", "sec_per_step_log", "network_reading_verbatim",
    "checkpoint_answer", "nmon_screenshot_recv_KBps", "nmon_screenshot_trans_KBps",
    "gpu_power_screenshot_W",
)  # fmt: skip
_SIZE = r"(?<![\w.,])([\d,]+(?:\.\d+)?)\s*([mMgG]?)(?:[bB](?:ytes)?)?(?![a-z])"
_SPELT = ("one|single", "two", "three", "four")
_MACHINE_WORDS = r"(?:machines?|nodes?|hosts?|VMs?|instances?)"


@dataclass
class CsvRow:
    name: str
    cloud: str
    values: dict[str, Any] = field(default_factory=dict)  # fact -> value
    assumed: dict[str, Any] = field(default_factory=dict)
    power: list[float] = field(default_factory=list)  # watts
    power_limit: float | None = None  # as written beside them
    remarks: list[tuple[str, str]] = field(default_factory=list)  # finding, text
    settings: dict[str, Any] = field(default_factory=dict)  # of the model, by dotted key


def read(path: Path, common: Given) -> list[tuple[CsvRow, Diagnosis]]:
    """Each row and its answers. `common` holds for rows that do not say otherwise."""
    rows = [_row(cells, number) for number, cells in enumerate(_cells(path), start=1)]
    _fill(rows, common)
    return [(row, _answered(row)) for row in rows]


def _cells(path: Path) -> list[dict[str, str]]:
    check_is_file(path)
    with (
        reading(path, LogError, "a CSV with a row per run"),
        path.open(newline="", encoding="utf-8-sig", errors="replace") as file,
    ):
        first = file.readline(_LONGEST_HEAD)
        divider = max(",;\t", key=first.count)
        names = [_column(name) for name in next(csv.reader([first], delimiter=divider), [])]
        if not {"run", "n_ranks", "hours", "sec_per_step_written", "sec_per_step_log"} & set(names):
            hint = f"its first line should name some of {', '.join(_KNOWN)}"
            raise LogError("no known columns", path=path, hint=hint)
        reader = csv.DictReader(file, fieldnames=names, delimiter=divider)
        rows: list[dict[str, str]] = []
        for row in islice(reader, _MOST_ROWS + 1):
            # What others worked out of a row (ours_*) is not a fact of the run.
            cells = {name: (row.get(name) or "").strip() for name in (*_KNOWN, "cloud")}
            if len(rows) == _MOST_ROWS or any(len(cell) > figures.LONGEST_TEXT for cell in cells.values()):
                what = f"more than {_MOST_ROWS:,} rows, or {figures.LONGEST_TEXT:,} characters in a cell"
                raise LogError(what, path=path, line=reader.line_num + 1)
            rows.append(cells)
        return rows


def _column(name: str) -> str:
    """A known column's name however it is capitalised."""
    plain = name.strip().lower().replace(" ", "_")
    return next((known for known in (*_KNOWN, "cloud") if known.lower() == plain), plain)


# --- one row ----------------------------------------------------------------------------------------------


def _row(cells: dict[str, str], number: int) -> CsvRow:
    row = CsvRow(cells["run"] or f"row {number}", re.split(r"[ (]", cells.get("cloud", ""))[0].lower())
    ranks, machines = (
        count(number, MOST_RANKS)
        for number in _placing(" ".join(cells["n_ranks"].split()), " ".join(cells["nodes_x_gpus"].split()))
    )
    precision = cells["precision"].lower()
    steps, hours = count(figure(cells["steps_done"])), figures.hours(cells["hours"])
    hours = hours if hours and hours <= MOST_HOURS else None
    row.values = {
        "ranks": ranks,
        "machines": machines,
        "device": cells["gpu"] if gpu_types.named(cells["gpu"]) else None,
        "precision": "mixed" if "mixed" in precision else "fp32" if "32" in precision else None,
        "pairs_per_rank": figure(cells["batch_size_per_gpu"]),
        "link_bits_per_second": bits_per_second(cells["requested_network"]),
        "given_steps": steps,
        "wall_seconds": 3600 * hours if hours else None,
        "nic_readings": readings(cells["network_reading_verbatim"]) or None,
    }
    sent = figure(cells["nmon_screenshot_trans_KBps"]) or figure(cells["nmon_screenshot_recv_KBps"])
    if sent:  # nmon's column says its unit
        row.values |= {"nic_kb_per_s": sent, "nic_bytes_per_second": KB * sent}
    row.values["given_step_seconds"] = _step_seconds(cells, steps, hours, row)
    row.values["parameters_by_checkpoint"] = _parameters(cells["checkpoint_answer"], row.values["precision"])
    row.power, row.power_limit = _power(cells["gpu_power_screenshot_W"])
    return row


def _power(text: str) -> tuple[list[float], float | None]:
    """Watts drawn, of `42W / 250W`, `42 of 250`, `43,44; 158 at 79%`, and the limit if it is named."""
    plain = re.sub(r"(?<=\d)\s*W(?:atts?)?\b", "", text)
    pairs = re.findall(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:/|of)\s*(\d+(?:\.\d+)?)(?![\w.])", plain)
    if pairs:
        return [float(drawn) for drawn, _ in pairs], max(float(limit) for _, limit in pairs)
    return [watts for watts in figures.figures(plain) if 10 <= watts <= 1000], None


def _placing(ranks_text: str, nodes: str) -> tuple[int | None, int | None]:
    """Ranks and machines, of `2x2`, `1+1`, `2 v100 machines`, `2 GPUs per VM`, `8 GPUs on 2 machines`."""
    ranks = figure(ranks_text)
    machines = None
    for number, names in enumerate(_SPELT, start=1):
        nodes = re.sub(rf"\b(?:{names})\b", str(number), nodes, flags=re.IGNORECASE)
    if found := re.search(rf"(?<!\d)(\d+)\s*{_MACHINE_WORDS}?\s*[x×*]\s*(\d+)", nodes, re.IGNORECASE):
        machines, ranks = int(found[1]), ranks or int(found[1]) * int(found[2])
    elif re.fullmatch(r"\d+(?:\s*\+\s*\d+)+.*", nodes):
        each = [int(number) for number in re.findall(r"\d+", nodes.split("(")[0])]
        machines, ranks = len(each), ranks or sum(each)
    elif found := re.search(rf"(?<!\d)(\d+)\s*(?:GPUs?\s*)?per\s*{_MACHINE_WORDS}", nodes, re.IGNORECASE):
        machines = int(ranks) // int(found[1]) if ranks and int(found[1]) else None
    # Between the number and its noun no other number: `2 v100 machines`, and `4 GPUs on 1 machine`.
    elif found := re.search(
        rf"(?<![\w.])(\d+)\s*(?:[^\d\s,;]\S*\s+)*?{_MACHINE_WORDS}", nodes, re.IGNORECASE
    ):
        machines = int(found[1])
        if in_all := re.search(r"(?<!\d)(\d+)\s*GPUs?\s+(?:on|in|over|across)\b", nodes, re.IGNORECASE):
            ranks = ranks or int(in_all[1])
    return int(ranks) if ranks else None, machines or None


def _step_seconds(cells: dict[str, str], steps: int | None, hours: float | None, row: CsvRow) -> float | None:
    """The log's word first; a written figure if the run's length bears it out; else length over steps."""
    logged = figures.step_seconds(cells["sec_per_step_log"])
    whole = 3600 * hours / steps if hours and steps else None
    if logged and not (whole and steptime.is_rate(logged, whole)):
        return logged
    text = cells["sec_per_step_written"]
    written = logged or figures.step_seconds(text)
    rounded, hours_rounded = rounding(text), rounding(cells["hours"])
    seconds, remark = steptime.settled(written, rounded, steps, hours, hours_rounded)
    if remark:
        row.remarks.append(("step_time", remark))
    return seconds


def _parameters(text: str, precision: str | None) -> tuple[float, bool] | None:
    """By a checkpoint's size, and whether it was written down to the byte. The largest file is the data.

    With Adam it is 12 bytes per parameter, 14 with an fp16 copy.
    """
    each = STATES_BYTES.get(precision or "")
    sizes = []
    for number, prefix in re.findall(_SIZE, text):
        size = float(number.replace(",", "") or "nan") * {"m": 1e6, "g": 1e9, "": 1.0}[prefix.lower()]
        if 1e7 <= size <= 1e12 and each:
            sizes.append((size / each, not prefix))
    exact = [size for size in sizes if size[1]]
    return max(exact or sizes, default=None)


# --- what the others say ----------------------------------------------------------------------------------


def _fill(rows: Sequence[CsvRow], common: Given) -> None:
    defaults = Gathered()
    given_facts.add(common, defaults)
    for name in ("ranks", "machines", "pairs_per_rank", "precision", "parameters", "device"):
        for row in rows:
            if row.values.get(name) is None and (value := defaults.value(name)) is not None:
                row.values[name] = value
    for row in rows:
        row.settings = defaults.settings
    for name in ("ranks", "machines", "pairs_per_rank"):
        agreed = _agreed(row.values[name] for row in rows)
        for row in rows:
            if row.values[name] is None and agreed is not None:
                row.assumed[name] = agreed
    counts = [count for row in rows if (count := row.values.pop("parameters_by_checkpoint"))]
    counts = [count for count, is_exact in counts if is_exact] or [count for count, _ in counts]
    for row in rows:
        if row.values.get("parameters") is None and counts:
            row.assumed["parameters"] = round(median(counts))
        if row.values["device"] is None:
            row.assumed["device"] = _devices(rows, row.cloud)


def _agreed(values: Iterable[Any]) -> Any:
    counted = Counter(value for value in values if value is not None)
    if not counted:
        return None
    value, count = counted.most_common(1)[0]
    return value if count >= AGREEMENT * counted.total() else None


def _devices(rows: Sequence[CsvRow], cloud: str) -> str | None:
    """Every type that rows of the same cloud name; of all rows where a row names no cloud."""
    like = [row for row in rows if row.values["device"] and (row.cloud == cloud or not cloud)]
    names = {kind.name for row in like for kind in gpu_types.named(row.values["device"])}
    return " or ".join(sorted(names)) or None


# --- its answers ------------------------------------------------------------------------------------------


def _answered(row: CsvRow) -> Diagnosis:
    gathered = Gathered(settings=dict(row.settings))
    for name, value in row.values.items():
        gathered.fact(name, value, GIVEN)
    for name, value in row.assumed.items():
        gathered.fact(name, value, ESTIMATED if name == "parameters" else ASSUMED)
    kinds = gpu_types.named(gathered.value("device"))
    limit = row.power_limit or max((kind.watts for kind in kinds), default=NAN)
    for number, watts in enumerate(row.power):
        meters = {"power_watts": watts, "power_limit_watts": limit}
        gathered.gpus.append({"host": "", "time": NAN, "span": 1.0, "gpu": number, **meters})
    if row.power:
        gathered.fact("gpu_meters", "watts as written down", GIVEN)
    for id, text in row.remarks:
        gathered.remark(id, text)
    return answer(gathered, row.name)


# --- for people and programs ------------------------------------------------------------------------------


def document(made: Sequence[tuple[CsvRow, Diagnosis]]) -> dict[str, Any]:
    """All answers of every row."""
    runs = [summary.findings_document(diagnosed.records, diagnosed.findings) for _, diagnosed in made]
    return {"schema": SCHEMA, "runs": runs}


def lines(made: Sequence[tuple[CsvRow, Diagnosis]]) -> Iterator[str]:
    """One verdict line per row."""
    for row, diagnosed in made:
        network = next(finding for finding in diagnosed.findings if finding.id == "network")
        yield f"{row.name:<8} {network.verdict:<15} {_key_figures(network)}"


def _key_figures(network: Finding) -> str:
    numbers = network.numbers
    parts = []
    if "step_seconds" in numbers:
        parts.append(f"{format_units.seconds(numbers['step_seconds'])} per step")
    if "expected_bytes_per_step_per_host" in numbers:
        parts.append(f"{numbers['expected_bytes_per_step_per_host'] / 1e6:.1f} MB out of each host")
    if "implied_bits_per_second" in numbers:
        parts.append(format_units.rate(numbers["implied_bits_per_second"]))
    if "computing_seconds_low" in numbers:
        low, high = numbers["computing_seconds_low"], numbers["computing_seconds_high"]
        parts.append(f"computing {format_units.seconds(low)} to {format_units.seconds(high)}")
    return ", ".join(parts) or network.answer


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="a CSV with a row per run")
    parser.add_argument("--facts", type=Path, help="a TOML file of facts that hold for all rows")
    parser.add_argument("--json", action="store_true", help="all answers of every row")
    arguments = parser.parse_args()
    try:
        made = read(arguments.file, given_facts.load(arguments.facts, {}))
    except DragomanError as error:
        terminal.warn(f"error: {error}")
        return error.exit_code
    if arguments.json:
        terminal.answer(json.dumps(document(made), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        for line in lines(made):
            terminal.say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
