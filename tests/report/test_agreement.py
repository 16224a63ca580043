"""What an answer says and what its charts show are the same figures, in the same words and units."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dragoman import format_units
from dragoman.explain.duration import PARTS
from dragoman.explain.run import explain
from dragoman.measure.records import Records
from dragoman.report import charts, summary, units
from tests.explain import build as explain_build
from tests.facts import lacking
from tests.report import build


def chart(records: Records, id: str, number: int = 0) -> charts.Chart | charts.Missing:
    finding = next(finding for finding in explain(records) if finding.id == id)
    return charts.of(records, finding)[number]


def answer(records: Records, id: str) -> str:
    return next(finding.answer for finding in explain(records) if finding.id == id)


def test_the_bar_of_the_run_has_the_parts_of_the_answer_under_the_same_names() -> None:
    records = build.rich(400)
    drawn = chart(records, "duration")
    assert isinstance(drawn, charts.Chart)
    (numbers,) = [finding.numbers for finding in explain(records) if finding.id == "duration"]
    parts = {name: seconds for key, name in PARTS.items() if (seconds := numbers.get(key, 0.0)) > 0}
    assert [trace["name"] for trace in drawn.traces] == list(parts)
    said = [f"{name} {format_units.seconds(seconds)}" for name, seconds in parts.items()]
    assert len(said) >= 3
    assert not lacking(drawn.note, *said) and not lacking(answer(records, "duration"), *said)


@pytest.mark.parametrize("probed", [None, 1.0, 0.2])
def test_a_step_without_the_exchange_is_drawn_as_it_is_reported(probed: float | None) -> None:
    """Also where probes were left out of the answer because they do not fit the other steps."""
    records = build.rich(400)
    for probe in records.probes_of("exchange"):
        if probed is not None:
            probe.numbers["step_seconds_without_exchange"] = probed * probe.numbers["step_seconds"]
    finding = next(finding for finding in explain(records) if finding.id == "network")
    drawn = charts.of(records, finding)[0]
    assert isinstance(drawn, charts.Chart)
    without, step = drawn.traces[0]["x"]
    assert step == pytest.approx(finding.numbers["step_seconds"], rel=1e-4)
    assert without == pytest.approx(finding.numbers["step_seconds_without_exchange"], rel=1e-4)
    assert not lacking(finding.answer, format_units.seconds(step), format_units.seconds(without))


def test_no_traffic_is_drawn_where_the_answer_says_that_there_was_none() -> None:
    records = build.rich(400)
    records.facts.hosts, records.facts.rank_hosts = ["smyrna"], [0, 0, 0, 0]
    (found,) = [finding for finding in explain(records) if finding.id == "step_network"]
    assert found.numbers["bytes_per_step_per_host"] == 0
    drawn = [chart(records, "network", 1), *(chart(records, "step_network", n) for n in (0, 1))]
    assert all(isinstance(one, charts.Missing) for one in drawn)


def test_rates_of_networks_are_in_bits_per_second_everywhere() -> None:
    records = build.rich(400)
    drawn = [chart(records, "network", 1), *(chart(records, "step_network", n) for n in (0, 1))]
    for one in drawn:
        assert isinstance(one, charts.Chart)
        text = (
            json.dumps(one.layout)
            + one.note
            + json.dumps([trace.get("hovertemplate") for trace in one.traces])
        )
        assert "ytes per second" not in text and "B/s" not in text
    over_time = drawn[0]
    rates = [value for trace in over_time.traces for value in trace["y"] if value is not None]
    link = np.median([probe.numbers["bits_per_second"] for probe in records.probes_of("link")])
    assert 0.05 * link < np.median(rates) < 1.5 * link
    assert (
        units.shown("nic_bytes_per_second", 125e6) == units.shown("link_bits_per_second", 1e9) == "1 Gbit/s"
    )


def test_one_is_not_several() -> None:
    records = explain_build.records(ranks=1, hosts=1)
    assert not lacking(answer(records, "step_time"), "1 rank")
    assert not lacking(summary.headline(records, explain(records)), "1 rank", "1 host")
    assert format_units.counted(1, "step") == "1 step"
    assert format_units.counted(2000, "step") == "2,000 steps"
    assert format_units.counted(1, "microbatch", "microbatches") == "1 microbatch"


def test_points_of_traffic_are_the_bytes_per_step_of_the_answer() -> None:
    """Also where the interface carried much more, beside the steps."""
    wire = explain_build.Run().wire_bytes
    records = explain_build.records(counted_bytes=1.02 * wire, other_bytes_per_second=3e9)
    finding = next(finding for finding in explain(records) if finding.id == "step_network")
    drawn = charts.of(records, finding)[0]
    assert isinstance(drawn, charts.Chart)
    dots = drawn.traces[0]
    bytes_per_step = np.array(dots["x"]) / 8 * np.array(dots["y"])
    assert bytes_per_step == pytest.approx(finding.numbers["bytes_per_step_per_host"], rel=0.01)


def test_stacked_phases_are_no_taller_than_the_step() -> None:
    """From before ranks met after a checkpoint: the others waited for it in their exchange."""
    records = explain_build.records(hosts=1, ranks=2)
    records.steps["exchange_mean"][::5] += 4.0
    drawn = chart(records, "step_time")
    assert isinstance(drawn, charts.Chart)
    height = np.sum([trace["y"] for trace in drawn.traces], axis=0)
    assert height.max() <= records.steps["seconds"].max() * 1.001
