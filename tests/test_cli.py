from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from dragoman import __version__, cli
from dragoman.cli import app
from dragoman.data.card import Card
from tests.facts import lacking

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def dragoman(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    colours = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")  # these would put escape codes into the text
    environment = {name: value for name, value in os.environ.items() if name not in colours}
    environment["COLUMNS"] = "200"
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 100 pairs, `train.en` and `train.de`."""
    folder = tmp_path_factory.mktemp("corpus")
    for language, word in (("en", "word"), ("de", "Wort")):
        (folder / f"train.{language}").write_text("".join(f"{word} {n}\n" for n in range(100)))
    (folder / "short.de").write_text("Wort 0\n")
    (folder / "file").write_text("mine\n")
    (folder / "odd\udcff.en").write_text("")
    return folder


def test_the_version_is_printed() -> None:
    done = dragoman("--version")
    assert (done.returncode, done.stdout) == (0, f"dragoman {__version__}\n")


def test_help_names_every_command() -> None:
    done = dragoman("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = dragoman(command, "--help")
    assert done.returncode == 0
    assert re.search(rf"\bdragoman {command}\b", done.stdout.partition("Usage")[2].partition("\n")[2])


def test_a_data_set_is_made_and_its_card_printed_as_json_then_in_short(folder: Path) -> None:
    words = (
        "prepare",
        "en=train.en",
        "de=train.de",
        "-o",
        "missing/parent/data",
        "--set",
        "vocabulary.size=60",
    )
    first = dragoman(*words, "--json", folder=folder)
    assert first.returncode == 0, first.stderr
    card = Card.model_validate(json.loads(first.stdout))
    assert card == Card.load(folder / "missing" / "parent" / "data" / "card.json")
    assert card.read_pairs == 100
    second = dragoman(*words, folder=folder)
    assert second.returncode == 0
    *summary, page, following = second.stdout.splitlines()
    assert len(summary) < 10 and summary[1].split() == ["read", "100", "pairs"]
    assert page.endswith(" missing/parent/data/card.md")
    assert not lacking(
        following, "dragoman train transformer-tiny --data missing/parent/data --run runs/data"
    )


@pytest.mark.parametrize(
    ("words", "code", "facts"),
    [
        ("", 2, COMMANDS),
        ("prepair demo", 2, ["'prepair'"]),
        ("prepare", 2, ["RECIPE|FILES"]),
        ("prepare demo", 2, ["'-o'"]),
        ("prepare --nonsense", 2, ["--nonsense"]),
        ("prepare dem -o out", 2, ["dem", "demo"]),
        ("prepare en=train.en -o out", 2, ["en=train.en"]),
        ("prepare en=none.en de=train.de -o out", 2, ["en=none.en:"]),
        ("prepare en=train.en de=train.de -o file", 2, ["file:"]),
        ("prepare en=train.en de=train.de -o out --set clean.max_wrods=9", 2, ["clean.max_words"]),
        ("prepare en=train.en de=train.de -o out --config none.toml", 2, ["none.toml:"]),
        ("prepare en=train.en de=short.de -o out", 1, ["train.en", 100, "short.de", 1]),
        ("prepare en=train.en de=train.de -o out --vocab file", 1, ["file:"]),
        ("prepare en=train.en de=train.de -o file/out", 1, ["file/out.stages:"]),
        ("prepare en=train.en de=train.de -o /proc/out", 1, ["/proc/out.stages:"]),
        ("prepare en=odd*.en de=train.de -o out", 2, [r"odd\udcff.en:", "en=odd*.en", "UTF-8"]),
    ],
)
def test_a_mistake_is_explained_without_a_traceback(
    words: str, code: int, facts: list[object], folder: Path
) -> None:
    done = dragoman(*words.split(), folder=folder)
    assert done.returncode == code, done.stderr
    assert not lacking(done.stdout + done.stderr, *facts)
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("out*"))
    assert (folder / "file").read_text() == "mine\n"


def test_a_full_disk_is_reported_and_leaves_no_data_set(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    command = f"ulimit -f 1; {sys.executable} -m dragoman prepare en=train.en de=train.de -o {out}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1
    assert f"error: {out}.stages/" in done.stderr
    assert f": {os.strerror(errno.EFBIG)}\n  try: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def ended(words: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code of `dragoman WORDS`, in this process."""
    monkeypatch.setattr(sys, "argv", ["dragoman", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


@pytest.mark.parametrize("value", ["", "odd\udcff"], ids=["empty", "not UTF-8"])
@pytest.mark.parametrize(
    "words",
    [
        "demo PATH",
        "prepare demo -o PATH",
        "prepare demo -o out --downloads PATH",
        "prepare demo -o out --vocab=PATH",
        "train PATH --data data --run run",
        "train config --data PATH --run run",
        "train config --data data --run PATH",
        "train config --data data --run=PATH",
        "train config --data data --run run --from PATH",
        "stop PATH",
        "stop run --host PATH",
        "report PATH",
        "compare run PATH",
        "diagnose PATH",
        "diagnose log --html PATH",
        "evaluate PATH --data data",
        "translate run file -o PATH",
        "translate run --out=PATH file",
        "export run --to ctranslate2 -o PATH",
        "serve PATH",
        "serve run --token-file PATH",
        "doctor --run PATH",
        "plan config --for PATH",
        "launch slurm config --data data --run PATH -o out",
        "launch copy --hosts a --data PATH",
    ],
)
def test_an_empty_name_and_one_that_is_not_utf8_are_refused_at_once(
    words: str,
    value: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ended([word.replace("PATH", value) for word in words.split()], monkeypatch) == 2
    said = capsys.readouterr()
    before = words[: words.index("PATH")].replace("=", " ").split()[-1]
    assert not lacking(said.err, before if not value else r"odd\udcff")
    assert said.err.startswith("error: ") and not said.out
    assert list(tmp_path.iterdir()) == []


def test_a_current_folder_whose_name_is_not_utf8_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd\udcff").mkdir()
    monkeypatch.chdir(tmp_path / "odd\udcff")
    assert ended(["report", "run"], monkeypatch) == 2
    assert not lacking(capsys.readouterr().err, str(tmp_path / r"odd\udcff:"), "UTF-8")


def test_names_and_texts_in_errors_do_not_command_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(["report", "run\x1b[31m\x9b"], monkeypatch) == 2
    assert r"run\x1b[31m\x9b" in capsys.readouterr().err


@pytest.mark.parametrize("debug", [False, True])
def test_an_unforeseen_exception_is_called_a_defect_and_names_the_files_given(
    debug: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def mistake(*_: object) -> None:
        raise KeyError("steps")

    monkeypatch.setattr("dragoman.data.jobs.resolve", mistake)
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de"):
        (tmp_path / name).touch()
    words = ["prepare", "en=a.en", "de=a.de", "-o", "out", *(["--debug"] if debug else [])]
    assert ended(words, monkeypatch) == 1
    said = capsys.readouterr().err
    assert "error: KeyError: 'steps'\n" in said
    assert not lacking(said, "dragoman", "a.en", "a.de")
    assert "--debug" in said.splitlines()[-1]
    assert ("Traceback" in said) == debug


def test_a_full_disk_behind_standard_output_is_named() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "--version"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: standard output: {os.strerror(errno.ENOSPC)}\n  try: ")
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("place", ["first", "last"])
def test_debug_shows_the_traceback_wherever_it_stands(place: str, folder: Path) -> None:
    words = ["prepare", "en=none.en", "de=train.de", "-o", "out"]
    done = dragoman(*(["--debug", *words] if place == "first" else [*words, "--debug"]), folder=folder)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith("  try: "), "the error comes last"


def test_the_data_layer_and_the_commands_start_without_torch() -> None:
    script = """
import importlib, pkgutil, sys
sys.modules["torch"] = None
import dragoman.cli, dragoman.data
for module in pkgutil.walk_packages(dragoman.data.__path__, "dragoman.data."):
    importlib.import_module(module.name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_demo_is_prepared_offline_from_an_empty_folder(tmp_path: Path) -> None:
    changes = ("--set", "vocabulary.sample_pairs=20000")
    done = dragoman("prepare", "demo", "-o", "data/demo", *changes, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    card = Card.model_validate_json(done.stdout)
    assert card.read_pairs == 200_000
    assert (card.parts["dev"].pairs, card.parts["test"].pairs) == (1_000, 1_000)
    assert not card.dropped.keys() & {"leakage", "identical", "invalid_utf8", "empty"}
