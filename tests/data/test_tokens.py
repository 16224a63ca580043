from __future__ import annotations

import errno
import io
import os
import random
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import VocabularySettings
from dragoman.data.tokens import BOS, EOS, PAD, UNK, Tokenizer, learn, suited_pieces
from dragoman.errors import DataError, DataSetError
from tests.facts import raising

SHARED = Path(os.environ.get("DRAGOMAN_DATA", "/nowhere")) / "wmt16-vocab" / "m_common.model"
TEXT = ["the cat sees the dog", "der Hund sieht die Katze", "ein Apfel fällt vom Baum"] * 20


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TEXT, VocabularySettings(size=60))


@pytest.mark.parametrize(
    ("pairs", "pieces"),
    [(1, 4_000), (9_999, 4_000), (29_000, 8_000), (150_000, 16_000), (999_999, 16_000), (4_524_868, 32_768)],
)
def test_the_vocabulary_grows_with_the_corpus(pairs: int, pieces: int) -> None:
    assert suited_pieces(pairs) == pieces


def foreign_model() -> bytes:
    """As sentencepiece makes one when it is told nothing of ids."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=model, vocab_size=60, model_type="bpe", minloglevel=2
    )
    return model.getvalue()


def test_special_ids_are_pad_0_eos_1_bos_2_unk_3(tokenizer: Tokenizer) -> None:
    assert (PAD, EOS, BOS, UNK) == (0, 1, 2, 3)
    tokens, _ = tokenizer.encode(["雪"])
    assert UNK in tokens.tolist() and tokens[-1] == EOS
    assert tokenizer.decode([[PAD, BOS, EOS]]) == [""]


def test_every_line_is_closed_by_eos_also_an_empty_one(tokenizer: Tokenizer) -> None:
    tokens, lengths = tokenizer.encode(["the cat", "", "der Hund"])
    ends = np.cumsum(lengths)
    assert lengths[1] == 1
    assert tokens[ends - 1].tolist() == [EOS] * 3
    assert (tokens == EOS).sum() == 3
    assert [len(part) for part in tokenizer.encode([])] == [0, 0]


@given(st.lists(st.lists(st.text("adefhilmnrstu", min_size=1), max_size=6).map(" ".join), max_size=4))
def test_decoding_gives_back_what_was_encoded(tokenizer: Tokenizer, lines: list[str]) -> None:
    tokens, lengths = tokenizer.encode(lines)
    rows = np.split(tokens, np.cumsum(lengths)[:-1]) if lines else []
    assert tokenizer.decode(rows) == lines


def test_learning_is_repeatable(tokenizer: Tokenizer) -> None:
    assert learn(TEXT, VocabularySettings(size=60)).sha256 == tokenizer.sha256


def test_a_text_too_small_gets_the_largest_vocabulary_it_supports() -> None:
    assert 30 < len(learn(TEXT, VocabularySettings(size=5_000))) < 5_000


@pytest.mark.parametrize("line", ["雪" * 1_500, "▅ snow 雪"])
def test_a_sentence_that_sentencepiece_passes_over_breaks_nothing(line: str) -> None:
    learnt = learn([*TEXT, line], VocabularySettings(size=60))
    assert learnt.encode(["雪"])[0].tolist().count(UNK) == 1
    assert UNK not in learnt.encode(TEXT)[0]


def test_a_character_needs_only_be_seen_now_and_then_to_be_known() -> None:
    text = [*TEXT * 200, "Äpfel zu 7 €"]  # 270,000 characters: each of the new ones is one in 270,000
    known = learn(text, VocabularySettings(size=100)).encode(["Äpfel zu 7 €"])[0]
    assert UNK not in known
    coarse = VocabularySettings(size=100, rarest_character=1e-5)
    assert list(learn(text, coarse).encode(["Äpfel zu 7 €"])[0]).count(UNK) == 3


def test_no_room_for_the_characters_says_which_setting_to_change() -> None:
    with raising(DataError, "vocabulary.size", 16, "vocabulary.rarest_character"):
        learn(TEXT, VocabularySettings(size=16))


def test_text_with_nothing_to_learn_from_is_our_error() -> None:
    with pytest.raises(DataError):
        learn([], VocabularySettings(size=100))


def test_a_model_with_other_special_ids_is_refused() -> None:
    wrong, right = (["pad -1", "eos 2", "bos 1", "unk 0"], ["pad 0", "eos 1", "bos 2", "unk 3"])
    with raising(DataError, *wrong, *right):
        Tokenizer(foreign_model())


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(DataError):
        Tokenizer(content, "some.model")


def test_a_damaged_model_is_refused_or_can_be_used(tokenizer: Tokenizer, tmp_path: Path) -> None:
    draw, path, refused = random.Random(1), tmp_path / "vocabulary.model", 0
    for _ in range(400):
        content = bytearray(tokenizer.model)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(content))
            content[place : place + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
        path.write_bytes(content if draw.random() < 0.9 else content[: draw.randrange(len(content))])
        try:
            damaged = Tokenizer.load(path)
        except DataSetError as error:
            assert error.path == str(path)
            refused += 1
        else:
            tokens, _ = damaged.encode(["the cat", "der Hund, 雪", ""])
            assert tokens.max() < len(damaged)
            damaged.decode([range(len(damaged))])
    assert refused > 200


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with raising(DataError, tmp_path / "none.model", os.strerror(errno.ENOENT)):
        Tokenizer.load(tmp_path / "none.model")


@pytest.mark.skipif(not SHARED.exists(), reason="DRAGOMAN_DATA has no wmt16-vocab")
def test_the_vocabulary_of_the_public_wmt16_runs_loads_and_keeps_16_bits(
    tmp_path: Path, sentences, write, run
) -> None:
    tokenizer = Tokenizer.load(SHARED)
    assert (len(tokenizer), tokenizer.token_type) == (32_768, np.uint16)
    card = run(write(tmp_path, "train", sentences(100)), tmp_path / "data", vocabulary=SHARED)
    assert (card.vocabulary_pieces, card.vocabulary_asked) == (32_768, 32_768)
    assert (tmp_path / "data" / "vocabulary.model").read_bytes() == SHARED.read_bytes()
