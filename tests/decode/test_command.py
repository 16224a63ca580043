"""`dragoman translate` as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import polib
import pytest

from dragoman import cli, engines
from dragoman.decode import Options
from tests.decode.models import SENTENCES, make_run
from tests.facts import lacking
from tests.ranks import Ended, command
from tests.train.runs import started

TRANSLATE = [sys.executable, "-m", "dragoman", "translate"]
QUICK = ["--beam", "1", "--precision", "float32", "--threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("models") / "run")


@pytest.fixture(scope="module")
def expected(run: Path) -> list[str]:
    engine = engines.load(run, precision="float32", threads=1)
    return [found[0].text for found in engine.translate(SENTENCES, Options(beam=1, split=True))]


def translate(*words: object, text: str = "") -> Ended:
    return command("translate", *words, text=text)


def lines(texts: list[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def test_standard_input_goes_to_standard_output(run: Path, expected: list[str]) -> None:
    done = translate(run, *QUICK, text="\ufeff" + lines([*SENTENCES, "", SENTENCES[0]]))
    assert done.returncode == 0, done.stderr
    assert done.stdout == lines([*expected, "", expected[0]])  # a byte order mark is no part of the text


def test_nothing_is_left_in_the_temporary_folder(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert translate(run, *QUICK, text="red\n").returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_as_output_is_written_to(run: Path, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(lines(SENTENCES))
    os.mkfifo(tmp_path / "out")
    with started([*TRANSLATE, str(run), *QUICK, str(tmp_path / "in.txt"), "-o", str(tmp_path / "out")]):
        assert (tmp_path / "out").read_text() == lines(expected)
    assert (tmp_path / "out").is_fifo()


def test_files_of_every_kind_go_to_a_folder(run: Path, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(lines(SENTENCES).encode()))
    (tmp_path / "b.tsv").write_text(lines(SENTENCES[:3]))
    (tmp_path / "c.po").write_text(f'msgid "{SENTENCES[0]}"\nmsgstr ""\n')
    done = translate(
        run,
        tmp_path / "a.txt.gz",
        tmp_path / "b.tsv",
        tmp_path / "c.po",
        "-o",
        tmp_path / "new" / "out",
        *QUICK,
    )
    assert done.returncode == 0, done.stderr
    assert not lacking(done.stderr, len(SENTENCES) + 4)
    assert gzip.decompress((tmp_path / "new" / "out" / "a.txt.gz").read_bytes()).decode() == lines(expected)
    assert (tmp_path / "new" / "out" / "b.tsv").read_text() == lines(
        [f"{source}\t{target}" for source, target in zip(SENTENCES[:3], expected, strict=False)]
    )
    assert polib.pofile(str(tmp_path / "new" / "out" / "c.po"))[0].msgstr == expected[0]


def test_with_plain_any_file_is_translated_a_line_at_a_time(
    run: Path, expected: list[str], tmp_path: Path
) -> None:
    for name in ("a.srt", "a.po"):
        (tmp_path / name).write_text(lines(SENTENCES))
        assert translate(run, *QUICK, tmp_path / name, "--plain").said() == lines(expected)
    assert translate(run, *QUICK, tmp_path / "a.srt", "--plain", "--json").returncode == 0


def test_several_translations_come_with_scores_in_rows_or_as_json(run: Path) -> None:
    done = translate(run, "--beam", 4, "--best", 3, "--threads", 1, text="red blue\n\n")
    rows = [row.split("\t") for row in done.stdout.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "1", "2"]
    assert [float(row[1]) for row in rows[:3]] == sorted((float(row[1]) for row in rows[:3]), reverse=True)
    done = translate(run, "--beam", 4, "--best", 3, "--threads", 1, "--json", text="red blue\n\n")
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["source"] == "red blue"
    assert [found["text"] for found in first["translations"]] == [row[2] for row in rows[:3]]
    assert second == {"line": 2, "source": "", "translations": [{"text": "", "score": 0.0}]}


def test_a_line_is_answered_before_the_next_one_is_there(run: Path, expected: list[str]) -> None:
    with started([*TRANSLATE, str(run), *QUICK], stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for sentence, translation in zip(SENTENCES[:2], expected, strict=False):
            process.stdin.write(f"{sentence}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{translation}\n"
            time.sleep(0.1)


def test_a_reader_that_has_enough_is_no_error_to_speak_of(run: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*TRANSLATE, str(run), *QUICK],
        input="red\n",
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["-o", "x"], ["-o"]),
        (["a.po", "--json"], ["a.po:", "JSON"]),
        (["a.txt", "--best", "2", "-o", "x"], ["2", "-o"]),
        (["--best", "9"], ["9", "4"]),
        (["a.txt", "-o", "a.txt"], ["a.txt"]),
        (["a.txt", "none.txt"], ["none.txt"]),
        (["a.txt", "a.srt.gz"], ["a.srt.gz", ".srt", "--plain"]),
    ],
    ids=str,
)
def test_wrong_use_is_reported_before_a_model_is_loaded(
    tmp_path: Path,
    words: list[str],
    facts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("a.txt", "a.po", "a.srt.gz"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dragoman", "translate", "no-such-model", *words])
    with pytest.raises(SystemExit, match="2|1"):
        cli.main()
    said = capsys.readouterr()
    assert (said.out, lacking(said.err, *facts)) == ("", []), said.err
