"""`dragoman prepare`: corpus -> clean text -> selection -> vocabulary -> tokens -> a data set with its card.

The two long stages before encoding (clean text, vocabulary) are kept in DATA.stages until the data set is
complete, so that an attempt after an interruption reuses the finished ones.
"""

from __future__ import annotations

import fcntl
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from dragoman import __version__, atomic, config
from dragoman.config import CleanRules, VocabularySettings
from dragoman.data.card import Card, CorpusFacts, Dropped, DroppedExample, ExpectedCount, PartFacts
from dragoman.data.cleaning_pass import CleanText, clean
from dragoman.data.corpus import Corpus, read
from dragoman.data.encode import encode
from dragoman.data.filters import Pair, as_prepared, hashes
from dragoman.data.jobs import PreparationJob
from dragoman.data.parallel import Workers
from dragoman.data.reasons import Reason
from dragoman.data.selection import Fate, Selection, select
from dragoman.data.store import SIDES, VOCABULARY_FILE, DataSet, fingerprint
from dragoman.data.tokens import Tokenizer, learn, suited_pieces
from dragoman.errors import DataError, UsageError
from dragoman.progress import Reporter

_STAGE = re.compile(rf"(clean|vocabulary)-[0-9a-f]{{16}}({re.escape(atomic.UNFINISHED)})?")


def prepare(job: PreparationJob, out: Path, reporter: Reporter) -> Card:
    """Makes the data set `out`, unless the same job has already made it, and returns its card."""
    out = atomic.destination(out)
    if _is_taken(out):
        return _existing(out, job.key)
    given = Tokenizer.load(job.vocabulary) if job.vocabulary else None  # reports a wrong one before the work
    held_out = _read_held_out(job, reporter)
    with _stages(out, {"clean": job.clean_key, "vocabulary": job.key}) as run_stage, Workers() as workers:
        if _is_taken(out):  # another process finished it before this one got the lock
            return _existing(out, job.key)
        rules = job.settings.clean
        text = CleanText(
            run_stage("clean", lambda folder: clean(folder, job.train, rules, workers, reporter))
        )
        if not text.facts.read_pairs:
            raise DataError(
                "there is no pair in the training text",
                path=job.train[0].files[0].source,
                hint="look into the files: they are empty, or hold nothing in these languages",
            )
        for check in _checks(job, text):
            reporter.note(str(check))
        sources = hashes(pair.source.encode() for pairs in held_out.values() for pair in pairs)
        selection = select(text, job.settings, sources, without_dev=job.dev is None)
        if not selection.pairs(Fate.TRAIN).any():
            raise DataError(
                f"cleaning dropped all {text.facts.read_pairs:,} training pairs: {_reasons(text, selection)}",
                path=job.train[0].files[0].source,
                hint="check the reasons; --set clean.KEY=VALUE changes a rule",
            )
        learnt = run_stage("vocabulary", lambda folder: _learn(folder, text, selection, job, given, reporter))
        with atomic.appearing(out) as folder:
            shutil.copy(learnt / VOCABULARY_FILE, folder)
            if job.dev is None:
                held_out = {"dev": text.pairs(selection.pairs(Fate.DEV)), **held_out}
            parts = _encode_parts(folder, text, selection, held_out, workers, reporter)
            card = _card(folder, job, text, selection, parts)
            (folder / "card.json").write_text(card.json_text(), encoding="utf-8")
            (folder / "card.md").write_text(card.markdown(), encoding="utf-8")
            config.write(job.settings, folder / "config.toml")
    return card


def _is_taken(out: Path) -> bool:
    """Does something exist here? An empty folder does not count."""
    return out.exists() and not (out.is_dir() and not any(out.iterdir()))


def _existing(out: Path, key: str) -> Card:
    if (out / "card.json").exists():
        card = Card.load(out / "card.json")
        if card.job == key:
            return DataSet(out).card  # opens the data set, which reports damage
    raise UsageError(
        "exists already, and was not prepared from these files and settings",
        path=out,
        hint="choose another name with -o, or remove the folder first",
    )


@contextmanager
def _stages(out: Path, keys: dict[str, str]) -> Iterator[Callable[[str, Callable[[Path], None]], Path]]:
    """A function that returns a stage's folder, and runs the stage unless an earlier attempt finished it."""
    base = out.with_name(out.name + ".stages")
    names = {name: f"{name}-{key[:16]}" for name, key in keys.items()}
    if base.is_symlink():  # the folders behind it are not ours to remove
        raise UsageError("is a link, but prepare needs a folder here", path=base, hint="remove the link")
    base.mkdir(parents=True, exist_ok=True)

    def run_stage(name: str, make: Callable[[Path], None]) -> Path:
        folder = base / names[name]
        if not folder.exists():
            with atomic.appearing(folder) as unfinished:
                make(unfinished)
        return folder

    with open(base / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError("another process is preparing this data set", path=out) from None
        for stale in base.iterdir():
            if _STAGE.fullmatch(stale.name) and stale.name not in names.values():
                atomic.remove(stale)
        try:
            yield run_stage
        except BaseException:
            if not any(path.is_dir() for path in base.iterdir()):  # nothing to resume from
                _clear(base)
            raise
        _clear(base)


def _clear(base: Path) -> None:
    """Removes our files and stages, and the folder if nothing else is in it."""
    for path in base.iterdir():
        if path.name == "lock" or _STAGE.fullmatch(path.name):
            atomic.remove(path)
    with suppress(OSError):
        base.rmdir()


def _read_held_out(job: PreparationJob, reporter: Reporter) -> dict[str, list[Pair]]:
    """All pairs of dev and test. None is dropped, so bad text in them is an error."""
    given = {"dev": job.dev, "test": job.test}
    held_out = {}
    for name, corpus in given.items():
        if corpus:
            skipped: Counter[str] = Counter()
            held_out[name] = _read_all(corpus, job.settings.clean, skipped)
            if skipped:
                reporter.note(f"{name}: skipped units that hold no pair: {_counted(skipped)}")
    return held_out


def _read_all(corpus: Corpus, rules: CleanRules, skipped: Counter[str]) -> list[Pair]:
    pairs = []
    for files in corpus.files:
        for raw in read(corpus, files, skipped):
            try:
                texts = [side.decode() for side in (raw.source, raw.target)]
            except UnicodeDecodeError as error:
                raise DataError(
                    f"not UTF-8 ({error.reason}), and prepare drops no pairs from a dev or test set",
                    path=files.source,
                    line=raw.line,
                    hint="correct this line, in this file or its partner, or remove it from both",
                ) from None
            # The words stay unchanged, because translations are scored against this text.
            pairs.append(Pair(*(as_prepared(text, rules.normalise) for text in texts)))
    if not pairs:
        raise DataError("contains no pair", path=corpus.files[0].source)
    return pairs


def _reasons(text: CleanText, selection: Selection) -> str:
    return _counted(text.tally().dropped + selection.tally.dropped) or "no pair was read"


def _counted(reasons: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())


def _learn(
    folder: Path,
    text: CleanText,
    selection: Selection,
    job: PreparationJob,
    given: Tokenizer | None,
    reporter: Reporter,
) -> None:
    """Writes the given vocabulary, or one learnt from a seeded sample of the training pairs."""
    tokenizer = given
    if tokenizer is None:
        settings = _vocabulary(job, selection)
        wanted = selection.pairs(Fate.TRAIN)
        share = settings.sample_pairs / np.count_nonzero(wanted)
        if share < 1:
            wanted &= np.random.default_rng(job.settings.seed).random(len(wanted), dtype=np.float32) < share
        sentences = (line.decode() for chunk in text.chunks(wanted) for side in chunk for line in side)
        with reporter.stage(f"Learning {settings.size:,} subwords from {np.count_nonzero(wanted):,} pairs"):
            tokenizer = learn(sentences, settings)
    (folder / VOCABULARY_FILE).write_bytes(tokenizer.model)


def _vocabulary(job: PreparationJob, selection: Selection) -> VocabularySettings:
    """The vocabulary settings. If no size is set, it is the one that suits the corpus."""
    settings = job.settings.vocabulary
    pairs = int(np.count_nonzero(selection.pairs(Fate.TRAIN)))
    return settings if settings.size else settings.model_copy(update={"size": suited_pieces(pairs)})


def _encode_parts(
    folder: Path,
    text: CleanText,
    selection: Selection,
    held_out: dict[str, list[Pair]],
    workers: Workers,
    reporter: Reporter,
) -> dict[str, PartFacts]:
    """Writes train, dev and test. Dev and test also keep their text, for scoring."""
    vocabulary = folder / VOCABULARY_FILE
    train = selection.pairs(Fate.TRAIN)
    count = int(np.count_nonzero(train))
    parts = {"train": encode(folder / "train", text.chunks(train), count, vocabulary, workers, reporter)}
    for name, pairs in held_out.items():
        sides = ([pair.source.encode() for pair in pairs], [pair.target.encode() for pair in pairs])
        parts[name] = encode(folder / name, iter([sides]), len(pairs), vocabulary, workers, reporter)
        for side, lines in zip(SIDES, sides, strict=True):
            (folder / name / f"{side}.txt").write_bytes(b"".join(line + b"\n" for line in lines))
    return parts


def _card(
    folder: Path, job: PreparationJob, text: CleanText, selection: Selection, parts: dict[str, PartFacts]
) -> Card:
    files = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    tokenizer = Tokenizer.load(folder / VOCABULARY_FILE)
    train = selection.pairs(Fate.TRAIN)
    corpora = [
        CorpusFacts(name=corpus.name, weight=corpus.weight, pairs=int(np.count_nonzero(train[first:end])))
        for corpus, (first, end) in zip(job.train, text.corpus_ranges(len(job.train)), strict=True)
    ]
    tally = text.tally()
    tally.add(selection.tally)
    asked_pieces = (not job.vocabulary and _vocabulary(job, selection).size) or len(tokenizer)
    return Card(
        source_language=job.train[0].source_language,
        target_language=job.train[0].target_language,
        parts=parts,
        corpora=corpora,
        read_pairs=text.facts.read_pairs,
        read_bytes={"source": text.facts.source_bytes, "target": text.facts.target_bytes},
        dropped={
            reason: Dropped(
                pairs=tally.dropped[reason],
                examples=[DroppedExample(**example._asdict()) for example in tally.examples[reason]],
            )
            for reason in Reason
            if tally.dropped[reason]
        },
        skipped_units=text.facts.skipped_units,
        vocabulary_pieces=len(tokenizer),
        vocabulary_asked=asked_pieces,
        vocabulary_sha256=tokenizer.sha256,
        notes=_notes(job, asked_pieces, len(tokenizer), parts),
        checks=_checks(job, text),
        sources=job.sources,
        files=files,
        fingerprint=fingerprint(folder, list(files), corpora),
        job=job.key,
        made_with=f"dragoman {__version__}",
    )


def _notes(job: PreparationJob, asked_pieces: int, pieces: int, parts: dict[str, PartFacts]) -> list[str]:
    notes = []
    if job.dev is None:
        pairs = parts["dev"].pairs
        notes.append(
            f"no dev set was given, so {pairs:,} training pairs were held out (seed {job.settings.seed})"
        )
    is_chosen = job.vocabulary is None and job.settings.vocabulary.size is None
    if is_chosen:
        pairs = parts["train"].pairs
        notes.append(
            f"chose {asked_pieces:,} subwords to suit {pairs:,} pairs (vocabulary.size sets another size)"
        )
    if pieces < asked_pieces:
        wanted = "wanted" if is_chosen else "asked for"
        notes.append(f"{asked_pieces:,} subwords were {wanted}, but this text supports only {pieces:,}")
    return notes


def _checks(job: PreparationJob, text: CleanText) -> list[ExpectedCount]:
    """The recipe's expected counts beside the actual ones. Too few raw pairs mean a broken source."""
    checks = []
    if job.expected_raw_pairs is not None:
        checks.append(
            ExpectedCount(what="pairs read", expected=job.expected_raw_pairs, found=text.facts.read_pairs)
        )
    if job.expected_clean_pairs is not None:
        checks.append(ExpectedCount(what="clean pairs", expected=job.expected_clean_pairs, found=len(text)))
    return checks
