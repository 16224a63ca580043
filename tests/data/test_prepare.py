from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import config
from dragoman.config import Preparation
from dragoman.data.card import Card
from dragoman.data.store import DataSet
from dragoman.data.tokens import suited_pieces
from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.progress import Reporter
from tests.facts import lacking, only, raising


def left_in(folder: Path) -> list[str]:
    """What prepare wrote beside the corpus files."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("data"))


def training_sources(data: DataSet) -> set[str]:
    rows = (np.array([row]) for row in range(len(data.train)))
    return set(data.tokenizer.decode([data.train.source.take(row)[0] for row in rows]))


def replace_line(path: Path, number: int, line: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))


# --- cleaning, as the card tells it ------------------------------------------------------------------------


@pytest.fixture
def faulty(tmp_path: Path, sentences, write, run) -> Card:
    """A corpus with each fault once, at a known line, and dev and test given."""
    held_out = {part: write(tmp_path, part, sentences(5, seed)) for part, seed in (("dev", 7), ("test", 8))}
    pairs = sentences(60)
    pairs[1] = ("\x07 bell", "Glocke")
    pairs[2] = ("hidden\u2028break", "versteckt")
    pairs[3] = ("", "leer")
    pairs[4] = ("word " * 81, "Wort " * 81)
    pairs[5] = ("one", "Wort " * 10)
    pairs[6] = ("Berlin", "Berlin")
    pairs[7] = pairs[0]
    pairs[8] = (sentences(5, 7)[0][0], "another translation of a dev source")
    pairs[9] = sentences(5, 8)[4]
    pairs[10] = ("улица большая", "die große Straße")
    pairs[12] = ("scho\u0308n", "nice")
    words = write(tmp_path, "train", pairs)
    replace_line(tmp_path / "train.de", 12, b"caf\xe9")
    return run(words, tmp_path / "data", "clean.check_script=true", **held_out)


def test_every_reason_is_counted_with_file_and_line(faulty: Card, tmp_path: Path) -> None:
    lines = {reason: [example.line for example in kept.examples] for reason, kept in faulty.dropped.items()}
    assert lines == {
        "invalid_utf8": [12],
        "line_separator": [3],
        "control_character": [2],
        "empty": [4],
        "length": [5],
        "ratio": [6],
        "identical": [7],
        "wrong_script": [11],
        "duplicate": [8],
        "leakage": [9, 10],
    }
    examples = [example for kept in faulty.dropped.values() for example in kept.examples]
    assert {example.file for example in examples} == {str(tmp_path / "train.en")}
    assert faulty.dropped["duplicate"].examples[0].source.endswith("1.0")


def test_read_is_kept_plus_dropped(faulty: Card) -> None:
    assert faulty.read_pairs == 60 == faulty.parts["train"].pairs + faulty.dropped_pairs
    assert faulty.dropped_pairs == sum(dropped.pairs for dropped in faulty.dropped.values()) == 11
    assert faulty.corpora[0].pairs == faulty.parts["train"].pairs
    only(faulty.markdown().splitlines(), 60, 49)


def test_training_text_is_composed(faulty: Card, tmp_path: Path) -> None:
    assert "schön" in training_sources(DataSet(tmp_path / "data"))


def test_settings_and_sources_are_written_beside_the_data(faulty: Card, tmp_path: Path) -> None:
    settings = config.load(Preparation, tmp_path / "data" / "config.toml")
    assert (settings.clean.check_script, settings.vocabulary.size) == (True, 200)
    assert [Path(source.path).name for source in faulty.sources] == [
        f"{part}.{language}" for part in ("train", "dev", "test") for language in ("en", "de")
    ]
    assert (tmp_path / "data" / "card.md").read_text(encoding="utf-8") == faulty.markdown()
    assert Card.load(tmp_path / "data" / "card.json") == faulty


# --- dev and test -------------------------------------------------------------------------------------------


def test_nothing_is_dropped_from_dev_and_test(tmp_path: Path, sentences, write, run) -> None:
    odd = [("", "leer"), ("same", "same"), ("same", "same"), ("a", "b " * 200), ("u\u2028v", "w")]
    held_out = {part: write(tmp_path, part, odd) for part in ("dev", "test")}
    card = run(write(tmp_path, "train", sentences(50)), tmp_path / "data", **held_out)
    assert (card.parts["dev"].pairs, card.parts["test"].pairs) == (5, 5)
    data = DataSet(tmp_path / "data")
    assert data.parts["dev"].text("source") == ["", "same", "same", "a", "u v"]


@pytest.mark.parametrize("part", ["dev", "test"])
def test_invalid_utf8_in_dev_or_test_is_an_error_with_file_and_line(
    part: str, tmp_path: Path, sentences, write, run
) -> None:
    held_out = {part: write(tmp_path, part, sentences(5, 2))}
    replace_line(tmp_path / f"{part}.en", 4, b"caf\xe9")
    with raising(DataError, f"{tmp_path / part}.en:4", "UTF-8"):
        run(write(tmp_path, "train", sentences(50)), tmp_path / "data", **held_out)
    assert left_in(tmp_path) == []


def test_an_empty_dev_set_is_refused(tmp_path: Path, sentences, write, run) -> None:
    words = write(tmp_path, "train", sentences(50))
    for language in ("en", "de"):
        (tmp_path / f"dev.{language}").write_text("")
    with raising(DataError, "dev"):
        run(words, tmp_path / "data", dev=[f"{x}={tmp_path}/dev.{x}" for x in ("en", "de")])


def held_out_run(folder: Path, seed: int, sentences, write, run) -> tuple[Card, set[str], set[str]]:
    """Without a dev set, from text in which every source has three translations: dev and train sources."""
    pairs = [(source, f"{target} {n}") for source, target in sentences(200) for n in range(3)]
    # Two sources of training stand in test.
    test = write(folder, "test", [pairs[0], pairs[3]])
    card = run(write(folder, "train", pairs), folder / "data", f"seed={seed}", test=test)
    data = DataSet(folder / "data")
    return card, set(data.parts["dev"].text("source")), training_sources(data)


def test_without_dev_a_seeded_part_is_held_out_and_training_has_none_of_its_sources(
    tmp_path: Path, sentences, write, run
) -> None:
    card, dev, train = held_out_run(tmp_path / "a", 3, sentences, write, run)
    assert card.parts["dev"].pairs == int(0.05 * (600 - 6))
    only(card.notes, 29, "seed 3")
    assert not dev & train
    assert card.read_pairs == card.parts["train"].pairs + card.parts["dev"].pairs + card.dropped_pairs
    again, same_dev, _ = held_out_run(tmp_path / "b", 3, sentences, write, run)
    assert (same_dev, again.fingerprint) == (dev, card.fingerprint)
    _, other_dev, _ = held_out_run(tmp_path / "c", 4, sentences, write, run)
    assert other_dev != dev


def test_what_is_held_out_does_not_stand_in_test(tmp_path: Path, sentences, write, run) -> None:
    pairs = sentences(400)
    test = write(tmp_path, "test", pairs[:360])
    run(write(tmp_path, "train", pairs), tmp_path / "data", test=test)
    data = DataSet(tmp_path / "data")
    assert not set(data.parts["dev"].text("source")) & set(data.parts["test"].text("source"))


# --- whole or not at all ------------------------------------------------------------------------------------


def test_a_second_attempt_uses_the_stages_the_first_one_finished(
    tmp_path: Path, sentences, write, run, stage_names
) -> None:
    words = write(tmp_path, "train", sentences(300))
    unbroken = run(words, tmp_path / "unbroken")
    out = tmp_path / "data"
    with pytest.raises(KeyboardInterrupt):
        run(words, out, reporter=stage_names(break_in="Encoding"))
    assert left_in(tmp_path) == ["data.stages"]
    second = stage_names()
    card = run(words, out, reporter=second)
    assert second.names == ["Encoding train", "Encoding dev"]
    assert left_in(tmp_path) == ["data"]
    assert card.fingerprint == unbroken.fingerprint


def test_stages_of_another_job_are_not_used(tmp_path: Path, sentences, write, run, stage_names) -> None:
    words = write(tmp_path, "train", sentences(300))
    with pytest.raises(KeyboardInterrupt):
        run(words, tmp_path / "data", reporter=stage_names(break_in="Encoding"))
    stages = tmp_path / "data.stages"
    before = {path.name for path in stages.iterdir() if path.is_dir()}
    with pytest.raises(KeyboardInterrupt):
        run(words, tmp_path / "data", "clean.max_words=8", reporter=stage_names(break_in="Encoding"))
    after = {path.name for path in stages.iterdir() if path.is_dir()}
    assert len(before) == len(after) == 2 and not before & after  # and do not pile up
    second = stage_names()
    card = run(words, tmp_path / "data", "clean.max_words=9", reporter=second)
    assert "Cleaning" in second.names
    assert "length" in card.dropped
    assert left_in(tmp_path) == ["data"]


def test_an_attempt_that_finished_no_stage_leaves_nothing(
    tmp_path: Path, sentences, write, run, stage_names
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(
            write(tmp_path, "train", sentences(50)), tmp_path / "data", reporter=stage_names(break_in="Clean")
        )
    assert left_in(tmp_path) == []


def test_only_our_own_stages_are_removed(tmp_path: Path, sentences, write, run) -> None:
    words = write(tmp_path, "train", sentences(50))
    (tmp_path / "mine" / "photos").mkdir(parents=True)
    (tmp_path / "data.stages").symlink_to("mine")
    with pytest.raises(UsageError, match="data.stages"):
        run(words, tmp_path / "data")
    (tmp_path / "data.stages").unlink()
    (tmp_path / "mine").rename(tmp_path / "data.stages")
    run(words, tmp_path / "data")
    assert left_in(tmp_path) == ["data", "data.stages"]
    assert [path.name for path in (tmp_path / "data.stages").iterdir()] == ["photos"]


def test_a_link_to_an_empty_folder_is_filled_where_it_points(tmp_path: Path, sentences, write, run) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to("disk")
    run(write(tmp_path, "train", sentences(50)), tmp_path / "data")
    assert (tmp_path / "data").is_symlink()
    assert len(DataSet(tmp_path / "disk").train)


def test_the_same_job_again_returns_the_same_card_at_once(
    tmp_path: Path, sentences, write, run, stage_names
) -> None:
    words = write(tmp_path, "train", sentences(50))
    card = run(words, tmp_path / "data")
    second = stage_names()
    assert run(words, tmp_path / "data", reporter=second) == card
    assert second.names == []


def test_the_same_job_again_does_not_pass_off_a_damaged_data_set(
    tmp_path: Path, sentences, write, run
) -> None:
    words = write(tmp_path, "train", sentences(50))
    run(words, tmp_path / "data")
    (tmp_path / "data" / "train" / "source.tokens").write_bytes(b"")
    with raising(DataError, tmp_path / "data" / "train" / "source.tokens", 0):
        run(words, tmp_path / "data")


def test_a_data_set_of_another_job_is_refused_untouched(tmp_path: Path, sentences, write, run) -> None:
    words = write(tmp_path, "train", sentences(50))
    run(words, tmp_path / "data")
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    with raising(UsageError, tmp_path / "data"):
        run(words, tmp_path / "data", "seed=2")
    assert before == {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert left_in(tmp_path) == ["data"]


def test_a_file_in_the_way_is_refused_untouched(tmp_path: Path, sentences, write, run) -> None:
    (tmp_path / "data").write_text("mine")
    with raising(UsageError, tmp_path / "data"):
        run(write(tmp_path, "train", sentences(50)), tmp_path / "data")
    assert (tmp_path / "data").read_text() == "mine"


# --- the vocabulary -----------------------------------------------------------------------------------------


def test_a_vocabulary_too_large_for_the_text_is_made_smaller_and_that_is_reported(
    tmp_path: Path, sentences, write, run
) -> None:
    card = run(write(tmp_path, "train", sentences(50)), tmp_path / "data", "vocabulary.size=32768")
    assert 100 < card.vocabulary_pieces < card.vocabulary_asked == 32_768
    assert only(card.notes, "32,768", f"{card.vocabulary_pieces:,}") in card.markdown()


def test_a_vocabulary_of_the_size_asked_for_needs_no_note(tmp_path: Path, sentences, write, run) -> None:
    card = run(write(tmp_path, "train", sentences(500)), tmp_path / "data")
    assert card.vocabulary_pieces == card.vocabulary_asked == 200
    assert not [note for note in card.notes if not lacking(note, 200)]


def test_a_size_that_nobody_asked_for_suits_the_corpus_and_is_reported(
    tmp_path: Path, sentences, write, run
) -> None:
    card = run(write(tmp_path, "train", sentences(500)), tmp_path / "data", pieces=None)
    assert card.vocabulary_asked == suited_pieces(card.parts["train"].pairs) == 4_000
    assert only(card.notes, "4,000", card.parts["train"].pairs) in card.markdown()


def test_a_given_vocabulary_is_used_byte_for_byte(tmp_path: Path, sentences, write, run, small) -> None:
    model = small.path / "vocabulary.model"
    card = run(write(tmp_path, "train", sentences(50, 9)), tmp_path / "data", vocabulary=model)
    assert (tmp_path / "data" / "vocabulary.model").read_bytes() == model.read_bytes()
    assert card.vocabulary_sha256 == small.card.vocabulary_sha256


def test_a_vocabulary_with_other_special_ids_is_refused_before_any_work(
    tmp_path: Path, sentences, write, run, stage_names
) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["some text"] * 9), model_writer=model, vocab_size=10, minloglevel=2
    )
    (tmp_path / "foreign.model").write_bytes(model.getvalue())
    reporter = stage_names()
    with raising(DataError, tmp_path / "foreign.model", "pad -1"):
        run(
            write(tmp_path, "train", sentences(50)),
            tmp_path / "data",
            vocabulary=tmp_path / "foreign.model",
            reporter=reporter,
        )
    assert (reporter.names, left_in(tmp_path)) == ([], [])


# --- the fingerprint ----------------------------------------------------------------------------------------


def test_the_fingerprint_is_that_of_the_text_wherever_it_stands(
    tmp_path: Path, sentences, write, run
) -> None:
    pairs = sentences(60)
    cards = [run(write(tmp_path / x, "train", pairs), tmp_path / x / "data") for x in ("here", "there")]
    assert cards[0].fingerprint == cards[1].fingerprint
    heavier = run([*write(tmp_path, "train", pairs), "weight=2"], tmp_path / "heavier")
    pairs[30] = ("another", "Zeile")
    changed = run(write(tmp_path, "train", pairs), tmp_path / "changed")
    assert len({cards[0].fingerprint, heavier.fingerprint, changed.fingerprint}) == 3


def test_several_corpora_keep_their_names_weights_and_places(tmp_path: Path, sentences, write, run) -> None:
    first, second = sentences(50, 1), sentences(70, 2)
    words = [*write(tmp_path, "news", first), "weight=2", *write(tmp_path, "web", [*first[:10], *second])]
    card = run([*words, "weight=0.5"], tmp_path / "data", dev=write(tmp_path, "dev", sentences(9, 3)))
    assert [(c.name, c.weight, c.pairs) for c in card.corpora] == [("news", 2.0, 50), ("web", 0.5, 70)]
    assert card.dropped["duplicate"].pairs == 10


def test_a_chunk_that_is_empty_after_cleaning_is_passed_over(tmp_path: Path, sentences, write, run) -> None:
    pairs = sentences(30)
    words = write(tmp_path, "train", [*pairs, *[pairs[0]] * 20_000, *sentences(5, 2)])
    card = run(words, tmp_path / "data", dev=write(tmp_path, "dev", sentences(5, 3)))
    assert (card.parts["train"].pairs, card.dropped["duplicate"].pairs) == (35, 20_000)


# --- files that are not what they should be -----------------------------------------------------------------


def test_files_of_different_lengths_are_an_error_with_both_counts(
    tmp_path: Path, sentences, write, run
) -> None:
    words = write(tmp_path, "train", sentences(50))
    with open(tmp_path / "train.de", "a") as file:
        file.write("one more\nand another\n")
    with raising(DataError, "train.en", 50, "train.de", 52):
        run(words, tmp_path / "data")
    assert left_in(tmp_path) == []


def test_a_truncated_gzip_is_an_error_with_file_and_place(tmp_path: Path, sentences, write, run) -> None:
    words = write(tmp_path, "train", sentences(500))
    whole = gzip.compress((tmp_path / "train.de").read_bytes())
    (tmp_path / "train.de.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"train\.de\.gz:\d+: "):
        run([words[0], f"{words[1]}.gz"], tmp_path / "data")
    assert left_in(tmp_path) == []


def test_a_broken_tmx_is_an_error_with_file_and_line(tmp_path: Path, run) -> None:
    unit = '<tu><tuv xml:lang="en"><seg>one</seg></tuv><tuv xml:lang="de"><seg>eins</seg></tuv></tu>\n'
    (tmp_path / "memory.tmx").write_text(f'<tmx version="1.4"><header/><body>\n{unit}<tu></body></tmx>\n')
    with pytest.raises(DataError, match=r"memory\.tmx:3"):
        run([f"en:de={tmp_path / 'memory.tmx'}"], tmp_path / "data")
    assert left_in(tmp_path) == []


def test_training_files_without_a_pair_are_named(tmp_path: Path, sentences, write, run) -> None:
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text("")
    words = [f"{x}={tmp_path}/train.{x}" for x in ("en", "de")]
    for held_out in ({}, {"dev": write(tmp_path, "dev", sentences(5))}):
        with raising(DataError, tmp_path / "train.en") as caught:
            run(words, tmp_path / "data", **held_out)
        assert lacking(str(caught.value), "--dev", "--set")


def test_a_corpus_that_is_empty_after_cleaning_says_why(tmp_path: Path, sentences, write, run) -> None:
    words = write(tmp_path, "train", [("", "leer")] * 3 + [("same", "same")] * 2)
    dev = write(tmp_path, "dev", sentences(5))
    with raising(DataError, 5, "3 empty", "2 identical"):
        run(words, tmp_path / "data", dev=dev)


lines = st.lists(st.one_of(st.binary(max_size=30), st.text(max_size=30).map(str.encode)), max_size=8)


@given(lines, lines, st.sampled_from(["lines", "tsv", "tmx", "po", "gz"]), st.booleans())
@settings(max_examples=60)
def test_fuzzed_files_give_a_data_set_or_our_own_error(
    tmp_path_factory, run, sentences, write, source, target, kind: str, keep_control_characters: bool
) -> None:
    folder = tmp_path_factory.mktemp("fuzzed")
    dev = write(folder, "dev", sentences(3))
    words = write(folder, "good", sentences(30, 2))
    content = [b"\n".join(side) for side in (source, target)]
    if kind == "lines":
        (folder / "a.en").write_bytes(content[0])
        (folder / "a.de").write_bytes(content[1])
        words += [f"en={folder}/a.en", f"de={folder}/a.de"]
    elif kind == "gz":
        (folder / "a.tsv.gz").write_bytes(gzip.compress(content[0])[:40] + content[1])
        words += [f"en:de={folder}/a.tsv.gz"]
    else:
        (folder / f"a.{kind}").write_bytes(content[0] + b"\t" + content[1])
        words += [f"en:de={folder}/a.{kind}"]
    rule = f"clean.drop_control_characters={'false' if keep_control_characters else 'true'}"
    try:
        card = run(words, folder / "data", rule, dev=dev)
    except DragomanError as error:
        assert str(error)
        assert not (folder / "data").exists()
    else:
        assert DataSet(folder / "data").card == card
        assert card.read_pairs == card.parts["train"].pairs + card.dropped_pairs


class Notes(Reporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def test_units_of_a_held_out_file_that_hold_no_pair_are_counted(
    tmp_path: Path, sentences, write, run
) -> None:
    entries = ['msgid "a dog"\nmsgstr "ein Hund"', '#, fuzzy\nmsgid "b"\nmsgstr "c"', 'msgid "d"\nmsgstr ""']
    (tmp_path / "dev.po").write_text("\n\n".join(entries) + "\n")
    notes = Notes()
    words = write(tmp_path, "train", sentences(60))
    card = run(words, tmp_path / "data", reporter=notes, dev=[f"en:de={tmp_path / 'dev.po'}"])
    assert card.parts["dev"].pairs == 1
    only(notes.said, "dev:", "1 fuzzy unit", "1 untranslated unit")
