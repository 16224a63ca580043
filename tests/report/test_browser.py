"""The page in a real browser: drawn, complete, silent."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.explain.questions import QUESTIONS
from dragoman.report.write import write
from tests.report import build

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run "
    "--disable-dev-shm-usage --enable-logging=stderr --virtual-time-budget=20000 --dump-dom"
)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt-get install chromium)")
def test_opens_with_all_answers_and_charts_and_no_complaint(tmp_path: Path) -> None:
    hostile = "<script>document.title='owned'</script>"
    write(build.rich(400, name=hostile), build.findings(), tmp_path)
    command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, (tmp_path / "report.html").as_uri()], capture_output=True, text=True, timeout=120
    )
    page = done.stdout
    assert "CONSOLE" not in done.stderr, done.stderr
    for id, question in QUESTIONS.items():
        assert f'id="{id}-title"' in page
        assert question.wording in page
    charts = sum(len(question.charts) for question in QUESTIONS.values())
    assert page.count('<div class="plot js-plotly-plot"') == charts
    assert page.count("main-svg") >= charts
    title = re.search(r"<title>(.*?)</title>", page)
    assert title and "owned" in title[1] and title[1] != "owned"
