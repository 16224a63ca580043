"""What the commands say of wrong use and wrong input, a command line each, as a user reads it."""

from __future__ import annotations

import gzip
import io
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from dragoman import cli
from dragoman.export.export import export
from tests.checkpoint.test_exportable import foreign
from tests.data.formats.test_tmx import unit
from tests.decode.models import make_run
from tests.foreign import logs
from tests.train import runs

TRAIN = "train task/config.toml --data task/data --run new"
COMMANDS = f"""
# config files and --set
train unknown-key.toml --data task/data --run new
train wrong-value.toml --data task/data --run new
train broken.toml --data task/data --run new
train transformer-tin --data task/data --run new
train none.toml --data task/data --run new
{TRAIN} --set train.stepz=3
{TRAIN} --set train.steps=many
{TRAIN} --set train.steps
{TRAIN} --set train.steps.x=1
{TRAIN} --set model.width=33
{TRAIN} --set train.weight_decay=0.1
prepare en=a.en de=a.de -o out --set clean.min_words=9 --set clean.max_words=3

# folders of another kind
report task/data
report empty
report nowhere
report a.en
report run/checkpoints/step-00000001
train task/config.toml --data run --run new
train task/config.toml --data task --run new
train task/config.toml --data task/data --run task/data
train task/config.toml --data task/data --run a.en
translate task/data
translate empty
translate huggingface
compare run run

# corpora
prepare nonsense -o out
prepare dem -o out
prepare Statmt-europarl -o out
prepare en=a.en -o out
prepare en=none.en de=a.de -o out
prepare weight=2 en=a.en de=a.de -o out
prepare en=a.en de=a.de weight=none -o out
prepare en=a.en de=a.de -o task
prepare en=a.en de=a.de -o a.en
prepare en=a.en en=a.de -o out
prepare 'en=*.en' de=a.de -o out
prepare en=a.en de=a.de fr=a.de en=a.en -o out
prepare en=a.en de=a.de --dev en=a.en -o out
prepare en=a.en de=long.de -o out
prepare en=a.en de=empty -o out
prepare en:de=bad.tsv -o out
prepare en:de=html.tmx -o out
prepare en:de=fr.tmx -o out
prepare en:de=broken.tmx -o out
prepare en:de=fr.po -o out
prepare en:de=bad.po -o out
prepare en=cut.en.gz de=a.de -o out
prepare en=utf16.en de=a.de -o out
prepare en=a.en de=a.de --dev en=latin.en --dev de=a.de -o out

# models
translate run --engine torch --precision int8
translate run -o x
translate run a.en --best 9
translate run a.en -o a.en
translate run a.en none.txt
translate run table.csv
translate run escape.po -o x
translate ctranslate2 --engine torch
translate ctranslate2 --average 2
translate run --average 7
translate damaged
translate without-vocabulary
export run --to huggingface -o task
export run --to huggingface -o x --precision int8
export unigram --to huggingface -o x
evaluate run
evaluate run --data task/data --part train
evaluate run --source a.en --reference long.de
evaluate run --test-set nonsense --languages en-de
evaluate run --test-set wmt14
evaluate run --data task/data --test-set wmt14
evaluate run --source a.en
evaluate a.en --data task/data --part dev
serve run --host 0.0.0.0
serve run --token-file a.en
serve run --token-file none

# plans
plan transformer-base
plan transformer-base --gpu Z80
plan transformer-base --gpu V100 --calibrate
plan transformer-base --gpu V100 --hosts 2
plan transformer-base --gpu V100 --hosts 2 --link fast
plan transformer-base --gpu V100 --epochs 3
plan transformer-base --gpu V100 --data nowhere

# logs of others
diagnose
diagnose none.log
diagnose a.en
diagnose --step-seconds 1 --ranks 2 --machines 4
diagnose --step-seconds 1 --link fast
diagnose --step-seconds -1
diagnose --step-seconds 1 --precision int3
diagnose --step-seconds 1 --gpu-power warm
diagnose --step-seconds 1 --nic none
diagnose --step-seconds 1 --model transformer-huge
diagnose --facts facts.toml
diagnose trainer_state.json

# hosts
{TRAIN} --hosts a,b,a
{TRAIN} --hosts a:0
{TRAIN} --hosts fd00::2
{TRAIN} --hosts a,b --workers 2
stop run
stop nowhere
doctor --train
launch copy --hosts a --data nowhere
"""


def fill() -> None:
    """The current folder, with everything that the commands name."""
    task = runs.make_task(Path("task"))
    assert task.config == Path("task/config.toml")
    texts = {
        "a.en": "one\ntwo\nthree\n",
        "a.de": "eins\nzwei\ndrei\n",
        "long.de": "eins\nzwei\ndrei\nvier\n",
        "bad.tsv": "one\teins\ntwo\n",
        "table.csv": "one,eins\n",
        "html.tmx": "<html/>",
        "fr.tmx": f'<tmx version="1.4"><body>\n{unit(en="one", fr="un")}\n</body></tmx>',
        "broken.tmx": '<tmx version="1.4"><body>\n<tu></body></tmx>',
        "fr.po": 'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "one"\nmsgstr "un"\n',
        "bad.po": 'msgid "one"\nmsgstr eins"\nmsgstr "x"\n',
        "escape.po": 'msgid "bell \\a"\nmsgstr ""\n',
        "unknown-key.toml": "[train]\nstepz = 3\nseed = 1\n[modle]\n",
        "wrong-value.toml": "[train]\nsteps = 0\n",
        "broken.toml": "[train\n",
        "facts.toml": "rank = 4\n",
        "trainer_state.json": "{",
    }
    for name, text in texts.items():
        logs.written(Path(), text, name)
    logs.written(Path(), "one\ncaf\u00e9\nthree\n".encode("latin-1"), "latin.en")
    logs.written(Path(), "one\n".encode("utf-16"), "utf16.en")
    logs.written(Path(), gzip.compress(b"".join(b"%d\n" % (n**5) for n in range(9_999)))[:-999], "cut.en.gz")
    Path("empty").mkdir()
    make_run(Path("run"))
    make_run(Path("unigram"), foreign(model_type="unigram"))
    export(Path("run"), "ctranslate2", Path("ctranslate2"))
    export(Path("run"), "huggingface", Path("huggingface"))
    damaged = make_run(Path("damaged")) / "checkpoints/step-00000001/model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    Path("without-vocabulary").mkdir()
    logs.written(Path("without-vocabulary"), b"", "model.bin")


@contextmanager
def heard() -> Iterator[io.StringIO]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        yield out


def answered(words: str) -> tuple[str, int]:
    """What `dragoman WORDS` prints, in this process, and its exit code."""
    with heard() as out, mock.patch.object(sys, "argv", ["dragoman", *shlex.split(words)]):
        try:
            cli.main()
        except SystemExit as end:
            return out.getvalue(), int(end.code or 0)
    return out.getvalue(), 0


def page() -> str:
    fill()
    before = set(Path().rglob("*"))
    parts = []
    for line in COMMANDS.splitlines():
        if not line or line.startswith("#"):
            parts.append(line)
            continue
        text, code = answered(line)
        assert code, f"{line}: no error"
        error = text[text.index("error: ") :].replace(f"{Path.cwd()}/", "")
        parts.append(f"$ dragoman {line}\n{error}[{code}]\n")
    assert set(Path().rglob("*")) == before, "a refused command writes nothing"
    return "\n".join(parts)
