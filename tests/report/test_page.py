import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape

from dragoman.explain.finding import Finding
from dragoman.explain.questions import QUESTIONS
from dragoman.measure.records import Records
from dragoman.report import charts, page, summary
from tests.facts import lacking
from tests.report import build

HOSTILE = "</title><script>document.title='owned'</script><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data


def chart_data(html: str) -> dict:
    block = re.search(r'<script type="application/json" id="chart-data">(.*?)</script>', html, re.DOTALL)
    assert block
    return json.loads(block[1])


def missing(records: Records, findings: list[Finding]) -> list[charts.Missing]:
    made = [chart for finding in findings for chart in charts.of(records, finding)]
    return [chart for chart in made if isinstance(chart, charts.Missing)]


@pytest.fixture(scope="module")
def rich() -> str:
    return page.render(build.rich(), build.findings(), {"packages": {"torch": "2.6.0"}})


def test_holds_every_answer_with_verdict_numbers_advice_and_evidence(rich: str) -> None:
    text = Tags(rich).text
    for finding in build.findings():
        assert finding.question in text
        assert finding.answer in text
        assert f'id="{finding.id}" class="answer" data-verdict="{finding.verdict}"' in rich
        assert all(part in text for part in [*finding.advice, *finding.evidence])
        assert finding.verdict == "stated" or summary.verdict(finding).words in text
    assert summary.recording_cost(build.rich()) in text and not lacking(text, "7.2 s")
    assert "train.warmup_steps" in text
    assert "packages.torch" in text


def test_rich_run_has_every_chart(rich: str) -> None:
    assert len(chart_data(rich)["charts"]) == sum(len(question.charts) for question in QUESTIONS.values())
    assert not missing(build.rich(), build.findings())


def test_charts_that_were_not_recorded_are_left_out_and_named() -> None:
    html = page.render(build.minimal(), build.unknowns())
    assert list(chart_data(html)["charts"]) == ["chart-convergence-1"]
    left_out = missing(build.minimal(), build.unknowns())
    assert len(left_out) == 13
    assert all(escape(part) in html for chart in left_out for part in (chart.title, chart.reason))
    assert summary.recording_cost(build.minimal()) in html


def test_nothing_comes_from_the_network(rich: str) -> None:
    parsed = Tags(rich)
    for tag, attributes in parsed.tags:
        assert tag not in ("link", "iframe", "object", "img", "base")
        for name in ("src", "href", "action", "poster"):
            assert not attributes.get(name) or attributes[name].startswith("#")
    assert "url(" not in re.sub(r"<script.*?</script>", "", rich, flags=re.DOTALL)
    policy = next(a["content"] for t, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy and policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "script-src" in policy and "'unsafe-eval'" not in policy


def test_hostile_text_is_shown_not_run() -> None:
    records, findings = build.rich(200, name=HOSTILE), build.findings()
    records.facts.settings = {"train.rate": HOSTILE, HOSTILE: 1}
    records.facts.hosts = [HOSTILE, HOSTILE]
    records.facts.gradient_interfaces = [HOSTILE, HOSTILE]
    records.facts.exchange_why = records.facts.device = records.facts.data_card["fingerprint"] = HOSTILE
    records.facts.precision = records.facts.precision_why = HOSTILE
    records.attempts[0].reason = HOSTILE
    records.nics["interface"] = np.full(len(records.nics["interface"]), HOSTILE)
    records.facts.checkpoint_files = [{"name": HOSTILE, "bytes": 5, "purpose": HOSTILE}]
    findings[0].answer = HOSTILE
    findings[7].numbers = {"files": [{"name": HOSTILE, "bytes": 5}], HOSTILE: HOSTILE}
    html = page.render(records, findings, {HOSTILE: HOSTILE})
    names = [tag for tag, _ in Tags(html).tags]
    assert names.count("script") == 3  # data, plotly, ours
    assert "img" not in names
    assert HOSTILE in Tags(html).text
    assert "<img" not in json.dumps(chart_data(html)["charts"])


def test_the_page_names_the_number_format_and_what_chose_it() -> None:
    records = build.rich(200)
    records.facts.precision, records.facts.precision_why = "fp16 with loss scaling", "Tesla T4 on b"
    text = Tags(page.render(records, build.findings())).text
    assert records.facts.precision in text and records.facts.precision_why in text


def test_page_of_a_very_long_run_stays_small() -> None:
    html = page.render(build.rich(300_000), build.findings())
    assert len(html.encode()) < 8e6
    for chart in chart_data(html)["charts"].values():
        for trace in chart["data"]:
            assert len(trace.get("x", [])) <= 500, trace["name"]


@pytest.mark.parametrize("make", [build.empty, build.minimal, build.holes])
@pytest.mark.parametrize("answers", [build.findings, build.unknowns])
def test_gaps_never_stop_a_page(make, answers) -> None:
    html = page.render(make(), answers())
    assert all(f'id="{id}"' in html for id in QUESTIONS)
    assert "NaN" not in json.dumps(chart_data(html))


def test_plotly_accepts_every_chart() -> None:
    from plotly import graph_objects

    for finding in build.findings():
        for chart in charts.of(build.rich(300), finding):
            assert isinstance(chart, charts.Chart)
            plain = re.sub(r'"--[a-z0-9-]+"', '"#123456"', json.dumps([chart.traces, chart.layout]))
            traces, layout = json.loads(plain)
            graph_objects.Figure(traces, layout)


@pytest.mark.parametrize("every", [7, 100])
def test_curves_of_a_log_that_speaks_once_in_many_steps_are_unbroken(every: int) -> None:
    """A point between two nulls is drawn by no browser: such a curve would be invisible."""
    records = build.rich(2000)
    silent = records.steps["step"] % every != 0
    for name in ("loss", "learning_rate"):
        records.steps[name] = np.where(silent, np.nan, records.steps[name])
    drawn = chart_data(page.render(records, build.findings()))["charts"]
    for key, name in (("chart-convergence-1", "training"), ("chart-learning-rate-1", "applied")):
        (trace,) = [trace for trace in drawn[key]["data"] if trace["name"] == name]
        assert len(trace["y"]) == len(trace["x"]) == min((~silent).sum(), 500)
        assert None not in trace["y"]
