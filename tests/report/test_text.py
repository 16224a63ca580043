import io

import pytest
from rich.console import Console

from dragoman.explain.questions import QUESTIONS
from dragoman.report import markdown, summary, text, units
from tests.facts import lacking
from tests.report import build


def printed(records, findings, **console) -> str:
    out = io.StringIO()
    text.show(records, findings, Console(file=out, highlight=False, **console))
    return out.getvalue()


def test_answers_fit_80_columns_without_colours() -> None:
    shown = printed(build.rich(200), build.findings(), width=80)
    assert all(len(line) <= 80 and line == line.rstrip() for line in shown.splitlines())
    assert "\x1b" not in shown
    flat = " ".join(shown.split())
    for finding in build.findings():
        assert finding.question in flat
        assert finding.answer in flat
        assert all(advice in flat for advice in finding.advice)
        assert finding.verdict == "stated" or f"[{summary.verdict(finding).words}]" in flat
    assert not lacking(flat, f"{units.label('gain_if_doubled_bleu')} 0.48", "0.2", "0.8")
    assert summary.recording_cost(build.rich(200)) in flat and not lacking(flat, "7.2 s")


def test_verdicts_are_coloured_on_a_terminal() -> None:
    shown = printed(build.rich(200), build.findings(), width=80, force_terminal=True, color_system="standard")
    (network,) = [finding for finding in build.findings() if finding.id == "network"]
    assert summary.verdict(network).tone == "bad"
    assert f"\x1b[1;31m[{summary.verdict(network).words}]" in shown


def test_markup_in_names_is_shown_as_it_is() -> None:
    assert "[red]run[/red]" in printed(build.rich(200, name="[red]run[/red]"), build.findings())


@pytest.mark.parametrize("make", [build.empty, build.minimal, build.holes])
def test_gaps_stop_neither_text_nor_markdown(make) -> None:
    for form in (printed(make(), build.unknowns()), markdown.render(make(), build.unknowns())):
        assert all(question.wording in form for question in QUESTIONS.values())


def test_markdown_holds_every_answer() -> None:
    written = markdown.render(build.rich(200), build.findings())
    for number, finding in enumerate(build.findings(), start=1):
        assert f"## {number}. {finding.question}" in written
        assert markdown.escape(finding.answer) in written
        assert all(markdown.escape(part) in written for part in [*finding.advice, *finding.evidence])
    assert markdown.escape(summary.recording_cost(build.rich(200))) in written
    assert "| train.warmup\\_steps | 400 |" in written
    assert "| model.safetensors | 244 MB |" in written


def test_markdown_escapes_names() -> None:
    written = markdown.render(build.rich(200, name="<script>|`x`\n# no"), build.findings())
    assert "\\<script\\>\\|\\`x\\` \\# no" in written
    assert "\n# no" not in written
