"""Valid input of every kind, the same bytes each time: a damaged one is made again from its number.

What takes long to make (models, a data set, records) is written once into a folder that all entrances share.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
import zstandard
from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from dragoman.checkpoint import saved_state
from dragoman.config import Model, Training
from dragoman.data import card, store
from dragoman.data.batches import Position
from dragoman.data.tokens import Tokenizer
from dragoman.exchange_way import ExchangeWay
from dragoman.export import ctranslate2
from dragoman.measure import scored
from dragoman.measure.quality import Evaluation, Score
from dragoman.plan import document, request
from dragoman.rundir import RunFolder
from dragoman.sync.choice import Choice
from dragoman.train import optimizer, saver
from dragoman.train.state import State
from tests.benchmarks import test_csv_runs
from tests.decode import models
from tests.decode.documents import test_documents as documents
from tests.foreign import logs, test_fairseq, test_nmon, test_nvidia, test_tfcheckpoint
from tests.measure import damage

_TESTS = Path(__file__).parent.parent
SETTINGS = Training(model=Model(width=8, heads=2, encoder_layers=1, decoder_layers=1, feedforward=8))
PAIRS = 40


def write(folder: Path) -> None:
    """What is shared: a run with a checkpoint and records, a model for CTranslate2, a data set."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    tokenizer = models.vocabulary(size=80)
    model = models.transformer(tokenizer, SETTINGS.model)
    run = RunFolder(folder / "run")
    state = State(SETTINGS, model, optimizer.build(model, SETTINGS.train), step=1, position=Position(0, 0, 1))
    scores = {"bleu": Score(value=20.5, signature="x"), "chrf": Score(value=40.0, signature="x")}
    state.history = [Evaluation(step=1, eval_loss=3.5, train_sample_loss=3.0, seconds=1.5, **scores)]
    state.choice = Choice(way=ExchangeWay(), why="asked for", asked={}, rank_hosts=[0])
    saved_state.write(run.checkpoint(1), 1, saver.contents(state, tokenizer.model, 1, "f" * 64))
    run.provenance.write_text(json.dumps({"source_language": "en", "target_language": "de", "ranks": 1}))
    run.records.write_bytes(records("slow-link-1"))
    run.plan.write_text(
        document.text(request.plan(request.PlanRequest(Training(), 2, 2, "1gbit", "V100", pairs=100_000)))
    )
    bleu = scored.IntervalScore(value=20.5, low=19.0, high=22.0, signature="x")
    entry = scored.Scored(step=1, held_out="test", sentences=5, made="torch", scores={"bleu": bleu})
    scored.add(run.scores, entry)
    (folder / "ct2").mkdir()
    ctranslate2.write(folder / "ct2", model, tokenizer, languages=("en", "de"))
    _data_set(folder / "data", tokenizer)


def _data_set(folder: Path, tokenizer: Tokenizer) -> None:
    texts = models.SENTENCES[:PAIRS]
    rows = tokenizer.encode(texts)
    for part in ("train", "dev"):
        with store.PartWriter(folder / part) as writer:
            writer.add((rows, rows))
    for side in store.SIDES:
        (folder / "dev" / f"{side}.txt").write_text("".join(f"{text}\n" for text in texts))
    (folder / store.VOCABULARY_FILE).write_bytes(tokenizer.model)
    side_facts = card.SideFacts(bytes=900, tokens=len(rows[0]), lengths={"1-10": 30, "11-20": 10, "21-30": 0})
    part_facts = card.PartFacts(pairs=PAIRS, source=side_facts, target=side_facts)
    example = card.DroppedExample(file="a.en", line=3, source="x", target="x")
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    corpora = [
        card.CorpusFacts(name="a", weight=1.0, pairs=30),
        card.CorpusFacts(name="b", weight=2.0, pairs=10),
    ]
    made = card.Card(
        source_language="en",
        target_language="de",
        parts={"train": part_facts, "dev": part_facts},
        corpora=corpora,
        read_pairs=PAIRS + 1,
        read_bytes={"source": 1000, "target": 1000},
        dropped={"identical": card.Dropped(pairs=1, examples=[example])},
        skipped_units={"fuzzy unit": 1},
        vocabulary_pieces=len(tokenizer),
        vocabulary_asked=80,
        vocabulary_sha256=tokenizer.sha256,
        notes=["a note"],
        checks=[card.ExpectedCount(what="pairs", expected=41, found=41)],
        sources=[card.SourceFile(path="a.en", bytes=1000, sha256="0" * 64)],
        files={name: (folder / name).stat().st_size for name in files},
        fingerprint=store.fingerprint(folder, files, corpora),
        job="1" * 64,
        made_with="dragoman",
    )
    (folder / "card.json").write_text(made.json_text())


def records(name: str) -> bytes:
    """Of a recorded run, as few rows as tell the same: reading them is what costs."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize((_TESTS / "runs" / f"{name}.db").read_bytes())
        database.execute("PRAGMA journal_mode = OFF")
        for table, most in (("steps", 60), ("nics", 40), ("hosts", 20), ("lens", 100), ("windows", 20)):
            database.execute(f"DELETE FROM {table} WHERE rowid > {most}")
        damage.add_faults(database)
        database.commit()
        database.execute("VACUUM")
        return database.serialize()


SETS = [
    b"train.steps=1000",
    b'sync.mode=diloco\ntrain.optimizer="muon"',
    b"model.width=64\nmodel.heads=4\ndata.step=0x10",
]
FACTS = b"""\
ranks = 4
machines = 2
link = "1gbit"
gpu = "V100"
nic_kb_per_s = 200210.0
nic = "200 Mbps"
gpu_power = "42/250"
gpu_util = 99.5
params = 60880896
gradient_bytes = 121761792
precision = "mixed"
batch = 256
step_seconds = 1.7
steps = 50000
hours = 23.5
"""
HOSTS = [b"a:2,b:2", b"10.0.0.1,ann@10.0.0.2:4", b"[fe80::1]:2,localhost"]
FIGURES = [
    b"1gbit", b"1000 Mbps", b"2 x 1 Gbps", b"1,5 GB", b"about 1.9", b"22-24 h", b"120K", b"17.3 Gb/5 min",
    b"1-02:24:00", b"4 mins for 100 steps", b"0.6 steps/s", b"100 steps: 190 s", b"43,44; 158,192 at 79%",
    b"200 Mbps, 180 to 220 MB/s",
]  # fmt: skip

LINES = "Ein Hund läuft.\r\na dog runs\n\nzwei Wörter\u2028hier\n".encode() * 5
TSV = "A dog runs.\tEin Hund läuft.\tnote\nTwo words.\tZwei Wörter.\n".encode() * 5
TMX = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx [<!ENTITY name "Acme">]>
<tmx version="1.4"><header srclang="en"/><body>
<tu tuid="1"><tuv xml:lang="en-GB"><seg>a <bpt i="1">b</bpt>lorry<ept i="1"/> &name;</seg></tuv>\
<tuv xml:lang="de"><seg>ein Laster</seg></tuv></tu>
<tu><tuv lang="EN"><seg>one <hi>old <ph>x</ph></hi></seg></tuv><tuv lang="DE"><seg>alt</seg></tuv></tu>
<tu><tuv xml:lang="fr"><seg>non</seg></tuv></tu>
</body></tmx>"""
XLIFF = [documents.XLIFF_1.encode(), documents.XLIFF_2.encode()]
PO = [documents.PO.encode(), documents.PO.replace("UTF-8", "ISO-8859-1").encode()]
SGM = b"""<refset setid="x"><doc docid="1">
<seg id="1">One &amp; two</seg>
<seg id="2"> Three </seg>
</doc></refset>
"""
CSV = f"{test_csv_runs.HEADER}\n{test_csv_runs.WHOLE}\n".encode()


def compressed(content: bytes) -> list[bytes]:
    pack = zstandard.ZstdCompressor()
    zipped, frame = gzip.compress(content, mtime=0), pack.compress(content)
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"  # a frame without content, as pzstd writes it
    return [zipped, zipped + gzip.compress(b"", mtime=0), lzma.compress(content), frame, frame + skipped]


def archives() -> list[bytes]:
    """Each with a.en and a.de in a folder."""
    names = {"x/a.en": LINES, "x/a.de": LINES, "x/other": b"x"}
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as container:
        for name, content in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            container.addfile(member, io.BytesIO(content))
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as folder:
        for name, content in names.items():
            folder.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    plain = tar.getvalue()
    return [
        plain,
        gzip.compress(plain, mtime=0),
        bz2.compress(plain),
        lzma.compress(plain),
        zipped.getvalue(),
    ]


def openseq2seq() -> list[bytes]:
    fault = "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor\n"
    return [logs.openseq2seq(700).encode(), logs.openseq2seq(400, end=fault).encode()]


def fairseq() -> list[bytes]:
    return [test_fairseq.log().encode(), test_fairseq.log(as_json=True).encode()]


def trainer_state() -> list[bytes]:
    return [(_TESTS / "foreign" / "trainer_state.json").read_bytes()]


def events() -> list[bytes]:
    """Written record by record: the writer that tensorboard offers puts today's date into the first."""
    out = io.BytesIO()
    writer = RecordWriter(out)
    writer.write(Event(wall_time=1.6e9, file_version="brain.Event:2").SerializeToString())
    for step in range(0, 400, 10):
        values = {"train/loss": 5 - step / 500, "train/learning_rate": 1e-3}
        values |= {"eval/loss": 2 + 1 / (step + 1), "eval/bleu": 20.0} if step % 50 == 0 else {}
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        writer.write(Event(step=step, wall_time=1.6e9 + 2 * step, summary=summary).SerializeToString())
    return [out.getvalue()]


def nmon() -> list[bytes]:
    return [test_nmon.recording([3.0, 200_000.0, 201_000.0, 199_000.0, 2.0]).encode()]


def nvidia() -> list[bytes]:
    return [text.encode() for text in (test_nvidia.TABLE, test_nvidia.DMON, test_nvidia.CSV)]


def tf_index() -> list[bytes]:
    return [test_tfcheckpoint.table(test_tfcheckpoint.checkpoint(copy)) for copy in (False, True)]


LAUNCHERS = [
    b'{"host": "a", "pid": 7, "since_boot_seconds": 1.5, "command": "dragoman train", "request": "0"}',
    b'{"host": "a", "pid": 7, "since_boot_seconds": 1.5, "is_detached": true, "output_start": 3, "stops": 1, '
    b'"exit_code": 1, "agent_pid": 8, "agent_since_boot_seconds": 2.5}',
]


def messages() -> list[bytes]:
    """What an agent says: its version, answers, lines of what it runs, how that ended."""
    from dragoman import __version__

    said: list[list[dict[str, Any]]] = [
        [{"hello": __version__}, {"answer": {"addresses": ["10.0.0.1"], "port": 4000}}],
        [{"hello": __version__}, {"error": "no such place", "hint": "look"}],
        [{"hello": __version__}, {"line": "step 1", "is_error": False}, {"exit": 0}, {"answer": None}],
        [{"hello": "0.0.0"}],
    ]
    return [json.dumps(lines).encode() for lines in said]


TRANSLATE = [
    b'{"text": "hello", "source": "en", "target": "de", "model": "capitals", "alternatives": 2}',
    b'{"text": ["a", "", "b. c."], '
    b'"options": {"beam": 4, "length_penalty": 0.6, "max_length": 50, "no_repeat_ngram": 3}}',
]
LIBRE = [
    b'{"q": "hello", "source": "auto", "target": "de", "format": "text", "alternatives": 1, "api_key": "x"}',
    b'{"q": ["a", "b"], "source": "en", "target": "de"}',
]
FORMS = [b"q=hello+you%21&source=en&target=de&alternatives=2", "q=grüß%C3%9F&target=de&format=text".encode()]
