"""Every place where data comes in: what it takes, how that is damaged, and what feeds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dragoman.config import Preparation, Training
from dragoman.config import text as config_text
from dragoman.launch import hosts
from dragoman.plan.cluster import PlannedLink
from tests.fuzz import feeds, feeds_models, feeds_programs, feeds_runs, seeds
from tests.fuzz.feeds import Opened
from tests.fuzz.mutate import Kind


@dataclass(frozen=True)
class Entrance:
    name: str
    kind: Kind  # how its input is damaged
    open: Callable[[Path, Path], Opened]  # of the folder of seeds and a folder of its own
    names_file: bool = True  # in its errors; words of a command line have no file
    quick: int = 200  # inputs in the quick test
    slow_seconds: float = 5.0  # of computing, that one input may take


def _file(
    name: str,
    kind: Kind,
    path: str,
    content: Sequence[bytes],
    use: Callable[[Path], object],
    quick: int = 200,
) -> Entrance:
    return Entrance(name, kind, partial(feeds.file, path, content, use), quick=quick)


def _word(name: str, content: Sequence[bytes], use: Callable[[str], object], quick: int = 300) -> Entrance:
    return Entrance(name, "text", partial(feeds.word, content, use), names_file=False, quick=quick)


def _data(path: str, kind: Kind) -> Entrance:
    return Entrance(f"data {path}", kind, partial(feeds.data_set, path), quick=60)


def _checkpoint(path: str, kind: Kind) -> Entrance:
    return Entrance(f"checkpoint {path}", kind, partial(feeds_models.saved, path), quick=20)


def _http(name: str, kind: Kind, path: str, content_type: str, content: Sequence[bytes]) -> Entrance:
    return Entrance(name, kind, partial(feeds_programs.http, path, content_type, content), names_file=False)


JSON, FORM = "application/json", "application/x-www-form-urlencoded"

TRAIN, PREPARE = (config_text(settings).encode() for settings in (Training(), Preparation()))

ENTRANCES = (
    _file("config train", "toml", "a.toml", [TRAIN], partial(feeds.settings, Training), quick=100),
    _file("config prepare", "toml", "a.toml", [PREPARE], partial(feeds.settings, Preparation), quick=100),
    _file("config as text", "text", "a.toml", [TRAIN], partial(feeds.settings, Training), quick=100),
    _word("config --set", seeds.SETS, feeds.sets),
    _file("facts of diagnose", "toml", "facts.toml", [seeds.FACTS], feeds_runs.given, quick=15),
    _word("--hosts", seeds.HOSTS, hosts.parse),
    _word("--link", seeds.FIGURES, PlannedLink.parse, quick=15),
    _word("figures", seeds.FIGURES, feeds.figure, quick=25),
    _data("card.json", "json"),
    _data("train/source.tokens", "bytes"),
    _data("train/target.offsets", "bytes"),
    _data("dev/target.offsets", "bytes"),
    _data("dev/source.txt", "text"),
    _data("vocabulary.model", "bytes"),
    Entrance("SentencePiece model", "bytes", feeds.vocabulary),
    _checkpoint("manifest.json", "json"),
    _checkpoint("state.json", "json"),
    _checkpoint("config.toml", "toml"),
    _checkpoint("model.safetensors", "bytes"),
    _checkpoint("optimizer.safetensors", "bytes"),
    _checkpoint("vocabulary.model", "bytes"),
    Entrance("provenance.json", "json", feeds_models.languages, quick=25),
    Entrance("exported config.json", "json", feeds_models.exported, quick=50),
    Entrance("records.db", "sql", feeds_runs.reported, quick=12),
    Entrance("records.db bytes", "bytes", feeds_runs.reported, quick=15),
    Entrance("records.db compared", "sql", feeds_runs.compared, quick=12),
    Entrance("plan.json", "json", feeds_runs.plan, quick=25),
    Entrance("scores.json", "json", feeds_runs.scores, quick=25),
    _file("corpus lines", "text", "a.en", [seeds.LINES], feeds.side_by_side),
    _file("corpus tsv", "text", "a.tsv", [seeds.TSV], feeds.pairs),
    _file("corpus tmx", "text", "a.tmx", [seeds.TMX], feeds.pairs),
    _file("corpus xliff", "text", "a.xlf", seeds.XLIFF, feeds.pairs),
    _file("corpus po", "text", "a.po", seeds.PO, feeds.pairs),
    _file("corpus sgm", "text", "a.sgm", [seeds.SGM], feeds.sgm),
    _file("corpus compressed", "bytes", "a.tsv", seeds.compressed(seeds.TSV), feeds.pairs),
    _file("corpus compressed lines", "bytes", "a.en", seeds.compressed(seeds.LINES), feeds.side_by_side),
    _file("corpus archive", "bytes", "a.archive", seeds.archives(), feeds.unpacked),
    _file("document text", "text", "a.txt", [seeds.LINES], feeds.translated),
    _file("document tsv", "text", "a.tsv", [seeds.TSV], feeds.translated),
    _file("document xliff", "text", "a.xlf", seeds.XLIFF, feeds.translated),
    _file("document po", "text", "a.po", seeds.PO, feeds.translated),
    _file("document compressed", "bytes", "a.txt", seeds.compressed(seeds.LINES), feeds.translated),
    _file("log OpenSeq2Seq", "text", "nohup.out", seeds.openseq2seq(), feeds_runs.log, quick=8),
    _file("log fairseq", "text", "train.log", seeds.fairseq(), feeds_runs.log, quick=6),
    _file("log Hugging Face", "json", "trainer_state.json", seeds.trainer_state(), feeds_runs.log, quick=8),
    _file("log TensorBoard", "bytes", "events.out.tfevents.1.a", seeds.events(), feeds_runs.log, quick=8),
    _file("log nmon", "text", "a.nmon", seeds.nmon(), feeds_runs.log, quick=12),
    _file("log nvidia-smi", "text", "smi.txt", seeds.nvidia(), feeds_runs.log, quick=12),
    _file("log TensorFlow index", "bytes", "model-500.index", seeds.tf_index(), feeds_runs.log, quick=40),
    # each row is a run to diagnose: some 20 ms, for as many rows as there are
    replace(
        _file("log rows of CSV", "text", "runs.csv", [seeds.CSV], feeds_runs.rows_of, quick=6),
        slow_seconds=30.0,
    ),
    _file("launcher.json", "json", "launcher.json", seeds.LAUNCHERS, feeds_runs.launcher_of, quick=40),
    Entrance("agent messages", "json", feeds_programs.said_by_agent, names_file=False, quick=200),
    _http("HTTP translate", "json", "/v1/translate", JSON, seeds.TRANSLATE),
    _http("HTTP LibreTranslate", "json", "/translate", JSON, seeds.LIBRE),
    _http("HTTP form", "text", "/translate", FORM, seeds.FORMS),
)  # fmt: skip
