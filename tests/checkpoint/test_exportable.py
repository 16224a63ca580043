"""What cannot be exported is refused before anything is written, and said when a training starts."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import pytest
import sentencepiece

from dragoman.checkpoint import exportable
from dragoman.data.tokens import BOS, EOS, PAD, UNK, Tokenizer
from dragoman.errors import DataError, UsageError
from dragoman.export.export import export
from tests.decode.models import SENTENCES, make_run, vocabulary
from tests.facts import lacking, raising
from tests.train.conftest import Here
from tests.train.runs import DRAGOMAN, Task, log


def foreign(**options: object) -> Tokenizer:
    """A vocabulary that prepare would not learn, but takes with --vocab."""
    model = io.BytesIO()
    ids = {"pad_id": PAD, "eos_id": EOS, "bos_id": BOS, "unk_id": UNK}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_writer=model,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"model_type": "bpe", "vocab_size": 60, **ids, **options},
    )
    return Tokenizer(model.getvalue())


def test_a_vocabulary_of_ours_fits_everywhere() -> None:
    for target in ("ctranslate2", "huggingface"):
        exportable.check(vocabulary(), target)
    assert exportable.warnings(vocabulary()) == []


REFUSED: list[dict[str, object]] = [
    {"model_type": "unigram"},
    {"model_type": "char"},
    {"add_dummy_prefix": False},
    {"remove_extra_whitespaces": False},
    {"treat_whitespace_as_suffix": True},
    {"user_defined_symbols": ["<br>"]},
    {"byte_fallback": True, "vocab_size": 330},
]


def reason(tokenizer: Tokenizer) -> str:
    """Why it is refused, as a run is told at its start."""
    (warning,) = exportable.warnings(tokenizer)
    return warning.partition(": ")[2]


def test_each_difference_has_a_reason_of_its_own() -> None:
    unigram, char, prefix, spaces, suffix, symbols, with_bytes = (reason(foreign(**o)) for o in REFUSED)
    assert not lacking(unigram, "unigram", "bpe") and not lacking(char, "char", "bpe")
    assert prefix == spaces, "white space"
    assert symbols == with_bytes, "pieces that are no text"
    assert len({unigram, char, prefix, suffix, symbols}) == 5


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_what_huggingface_would_split_otherwise_is_refused_with_the_reason(
    tmp_path: Path, options: dict[str, object]
) -> None:
    tokenizer = foreign(**options)
    run = make_run(tmp_path / "run", tokenizer)
    with pytest.raises(DataError, match=re.escape(reason(tokenizer))):
        export(run, "huggingface", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "model.bin" in export(run, "ctranslate2", tmp_path / "ct2")


def test_a_training_says_at_its_start_what_will_not_export(here: Here, task: Task, tmp_path: Path) -> None:
    (tmp_path / "unigram.model").write_bytes(foreign(model_type="unigram").model)
    files = [f"{language}={task.data.parent / f'train.{language}'}" for language in ("en", "de")]
    words = ["prepare", *files, "--vocab", str(tmp_path / "unigram.model"), "-o", str(tmp_path / "data")]
    subprocess.run([*DRAGOMAN, *words], check=True, capture_output=True)
    here.train(tmp_path / "run", "train.steps=1", data=tmp_path / "data")
    (warning,) = exportable.warnings(foreign(model_type="unigram"))
    assert warning in log(tmp_path / "run")
    here.train(tmp_path / "other", "train.steps=1")
    assert "huggingface" not in log(tmp_path / "other")


def test_huggingface_has_no_int8(tmp_path: Path) -> None:
    with raising(UsageError, "float32", "int8", "--precision"):
        export(make_run(tmp_path / "run"), "huggingface", tmp_path / "out", precision="int8")
