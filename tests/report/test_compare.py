"""report/compare_text.py and compare_page.py: a comparison in words, and as a page."""

import io
import re

import pytest
from rich.console import Console

from dragoman.explain.compare import RunComparison, compare
from dragoman.measure.records import Records
from dragoman.report import compare_page, compare_text
from dragoman.report.charts import Missing, both
from tests.report import build
from tests.report.test_page import chart_data


def shown(comparison: RunComparison) -> str:
    """As a terminal of any width has it."""
    out = io.StringIO()
    compare_text.show(comparison, Console(file=out, width=1_000, highlight=False))
    return out.getvalue()


def test_scores_with_unlike_signatures_are_not_compared() -> None:
    one, other = build.rich(300, name="one"), build.rich(300, name="other")
    for row in other.evaluations:
        row.bleu_signature, row.bleu = "nrefs:1|tok:intl", 40.0
    bleu = next(row for row in compare(one, other).quality if row.metric == "bleu")
    assert not bleu.is_comparable and bleu.better is None
    assert "tok:intl" in bleu.note and "tok:13a" in bleu.note
    assert bleu.note in shown(compare(one, other))


@pytest.mark.parametrize("make", [build.empty, build.minimal, build.holes])
def test_gaps_are_reported(make) -> None:
    found = compare(build.rich(200), make())
    assert found.speed.slower is None
    (sentence,) = found.why
    assert not re.search(r"\d", sentence), "no figure where steps were not timed"
    compare_text.show(found, Console(file=io.StringIO()))
    RunComparison.model_validate_json(found.model_dump_json())


def test_the_reason_comes_first() -> None:
    found = compare(build.rich(300, name="fast", exchange=0.1), build.rich(300, name="slower"))
    assert found.speed.slower == "b"
    assert shown(found).startswith(found.why[0])


def with_vocabulary(records: Records, pieces: int, checksum: str) -> Records:
    card = {"vocabulary_pieces": pieces, "vocabulary_sha256": checksum, "fingerprint": checksum}
    records.facts.data_card = {**build.CARD, **card}
    return records


def test_data_that_differ_are_reported_in_words_and_not_by_their_checksums() -> None:
    one = with_vocabulary(build.rich(200, name="one"), 32_768, "ab" * 32)
    other = with_vocabulary(build.rich(200, name="other"), 8_000, "cd" * 32)
    found = compare(one, other)
    assert [(row.name, row.a, row.b) for row in found.machines] == [
        ("vocabulary", "32,768 pieces", "8,000 pieces")
    ]
    assert "abab" not in shown(found) and "cdcd" not in shown(found)
    loss = next(row for row in found.quality if row.metric == "eval_loss")
    assert not loss.is_comparable
    assert compare(one, with_vocabulary(build.rich(200), 32_768, "ef" * 32)).machines[0].name == "vocabulary"


def test_no_line_is_printed_twice() -> None:
    one, other = build.rich(300, name="one"), build.rich(300, name="other", exchange=0.1)
    for statistic in ("mean", "least", "most"):
        for phase in ("forward", "backward"):
            other.steps[f"{phase}_{statistic}"] = other.steps[f"{phase}_{statistic}"] + 1.0
    other.steps["seconds"] = other.steps["seconds"] + 2.0
    for records, peak in ((one, 2e12), (other, 1e12)):
        for probe in records.probes_of("peak"):
            probe.numbers["flops_per_second"] = peak
    found = compare(one, other)
    assert sum("FLOP/s" in sentence for sentence in found.why) == 1
    assert len(set(found.why)) == len(found.why)
    notes = [note for section in compare_text.sections(found) for note in section.notes]
    assert len(set(notes)) == len(notes)


def test_the_page_draws_both_runs_over_each_other() -> None:
    one, other = build.rich(700, name="one"), build.rich(400, name="<b>other</b>")
    html = compare_page.render(compare(one, other), one, other)
    drawn = chart_data(html)["charts"]
    charts = both.of(("one", one), ("<b>other</b>", other))
    assert [f'-title">{chart.title}<' in html for chart in charts] == [True] * 5 == [True] * len(drawn)
    for chart in drawn.values():
        assert [trace["name"] for trace in chart["data"]] == ["one", "&lt;b&gt;other&lt;/b&gt;"]
        assert len({trace["line"]["color"] for trace in chart["data"]}) == 2
        assert None not in [value for trace in chart["data"] for value in trace["y"]]
    evaluated = drawn["chart-1"]["data"][0]
    assert evaluated["y"] == pytest.approx([row.eval_loss for row in one.evaluations], rel=1e-5)
    assert "<b>other" not in html


@pytest.mark.parametrize("make", [build.empty, build.minimal, build.holes])
def test_a_page_of_runs_with_gaps_says_what_is_not_drawn(make) -> None:
    one, other = build.rich(200), make()
    html = compare_page.render(compare(one, other), one, other)
    missing = [chart for chart in both.of(("one", one), ("other", other)) if isinstance(chart, Missing)]
    assert missing and all(chart.title in html and chart.reason in html for chart in missing)
