"""report/happened.py: the time line on a page, in markdown, on a terminal and in findings.json."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
from rich.console import Console

from dragoman.explain.details import timeline
from dragoman.explain.run import explain
from dragoman.measure.records import Records, RunFacts
from dragoman.report import charts, happened, markdown, page, text, write
from tests.explain import build as built
from tests.explain.altered import elastic
from tests.explain.test_outages import of_many_attempts
from tests.facts import lacking
from tests.report.test_page import HOSTILE, Tags, chart_data

FACTS = ("SIGKILL", "rank 2 on host1", 60, "0.25 s", "6 s", "3 steps", "stacks/host0-rank0.txt", "14 s")


def printed(records: Records, width: int = 80) -> str:
    out = io.StringIO()
    text.show(records, explain(records), Console(file=out, highlight=False, width=width))
    return out.getvalue()


def metered(records: Records) -> Records:
    last = records.attempts[-1].ended
    assert last
    times = np.arange(built.BEGAN, last, 5.0)
    meters = {"host": np.zeros(len(times)), "time": times, "span": np.full(len(times), 5.0)}
    records.hosts = Records(RunFacts(), hosts=meters | {"cpu_share": np.full(len(times), 0.8)}).hosts
    return records


def test_every_form_tells_the_same_story(tmp_path: Path) -> None:
    records = elastic()
    findings = explain(records)
    write.write(records, findings, tmp_path)
    html = re.sub("<[^>]+>", " ", (tmp_path / "report.html").read_text())  # cells stand side by side
    written = (tmp_path / "report.md").read_text().replace("\\", "")
    for form in (html, written, " ".join(printed(records).split())):
        assert happened.TITLE in form
        assert not lacking(form, *FACTS)
    told = json.loads((tmp_path / "findings.json").read_text())["timeline"]
    assert told == [row.document for row in timeline(records)]


def test_lines_fit_the_terminal_and_name_every_row() -> None:
    shown = printed(elastic())
    assert all(len(line) <= 80 and line == line.rstrip() for line in shown.splitlines())
    assert len(happened.lines(elastic())) == len(timeline(elastic()))


def test_a_run_in_which_nothing_happened_has_no_such_section(tmp_path: Path) -> None:
    records = built.records()
    findings = explain(records)
    for form in (page.render(records, findings), markdown.render(records, findings), printed(records)):
        assert happened.TITLE not in form
    told = json.loads(write.json_text(records, findings))["timeline"]
    assert [row["kind"] for row in told] == ["start", "stop"]


def test_of_a_thousand_rows_the_first_and_the_last_are_shown() -> None:
    records = of_many_attempts(500, 5_000)
    rows = timeline(records)
    assert len(rows) == 999
    table, lines = happened.table(records), happened.lines(records)
    assert table and len(table.rows) == happened.MOST_ROWS
    assert table.rows[0][0] == "0 s" and not lacking(table.note, len(rows) - happened.MOST_ROWS)
    assert len(lines) == happened.MOST_LINES + 1
    assert not lacking(lines[happened.FIRST_LINES][1], len(rows) - happened.MOST_LINES)


def test_empty_columns_are_left_out() -> None:
    table = happened.table(of_many_attempts(3, 60))
    assert table and "stacks" not in table.header and "noticed after" not in table.header
    assert all(len(row) == len(table.header) for row in table.rows)


def test_charts_over_time_mark_faults_and_joins_where_they_were() -> None:
    records = metered(elastic())
    drawn = chart_data(page.render(records, explain(records)))["charts"]
    minutes = [row.seconds / 60 for row in timeline(records) if row.kind == "fault" and row.seconds]
    for key in ("chart-device-utilisation-1", "chart-network-2"):
        traces = [trace for trace in drawn[key]["data"] if trace.get("yaxis") == "y2"]
        assert len(traces) == 2 and drawn[key]["layout"]["yaxis2"]["range"] == [0, 1]
        assert np.allclose(traces[0]["x"][::3], minutes, rtol=1e-3)
        assert len(set(traces[0]["text"])) == 3
    assert not [trace for trace in drawn["chart-step-time-1"]["data"] if trace.get("yaxis") == "y2"]


def test_meters_are_named_after_the_host_that_they_were_on() -> None:
    """The second attempt goes on without host a, so that host b is its first."""
    records = metered(elastic())
    records.attempts[2].placement = records.attempts[2].placement | {"hosts": ["host1"]}
    (finding,) = [finding for finding in explain(records) if finding.id == "device_utilisation"]
    (chart,) = charts.of(records, finding)
    assert isinstance(chart, charts.Chart)
    named = {trace["name"].split()[0] for trace in chart.traces if "yaxis" not in trace}
    assert named == {"host0", "host1"}


def test_hostile_names_are_shown_not_run() -> None:
    records = metered(elastic())
    changes = {"host": HOSTILE, "detail": HOSTILE, "phase": HOSTILE, "stacks": HOSTILE}
    records.faults = [fault.model_copy(update=changes) for fault in records.faults]
    records.events = [event.model_copy(update={"detail": HOSTILE}) for event in records.events]
    html = page.render(records, explain(records))
    assert [tag for tag, _ in Tags(html).tags].count("script") == 3
    assert HOSTILE in Tags(html).text
    assert "<img" not in json.dumps(chart_data(html)["charts"])
