"""`dragoman demo`: runs every stage on the built-in corpus, offline, in minutes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from dragoman import demo_corpus as grammar
from dragoman.data.corpus import Corpus
from dragoman.data.jobs import PrepareRequest, resolve
from dragoman.data.prepare import prepare
from dragoman.data.store import DataSet
from dragoman.demo_corpus.baselines import Nearest
from dragoman.errors import DragomanError
from dragoman.evaluate import heldout, system
from dragoman.evaluate.heldout import HeldOut
from dragoman.explain.run import explain
from dragoman.launch import local_host
from dragoman.launch.restarts import Restarts
from dragoman.measure import database
from dragoman.measure.quality import bleu
from dragoman.progress import Reporter
from dragoman.report import write
from dragoman.rundir import RunFolder

_WORKERS = 2
_SHOWN = 5


def run(folder: Path, reporter: Reporter) -> str:
    """Prepares, trains, evaluates, translates and reports; returns the results as text."""
    data_path, run_path = folder / "data" / "demo", folder / "runs" / "demo"
    job = resolve(PrepareRequest(["demo"], data_path), reporter)
    prepare(job, data_path, reporter)
    with as_file(files("dragoman") / "configs" / "demo.toml") as settings:
        words = ["-m", "dragoman", "train", str(settings), "--data", str(data_path), "--run", str(run_path)]
        if local_host.run(words, _WORKERS, RunFolder(run_path), Restarts()):
            raise DragomanError("the demo's training failed", path=run_path)
    records = database.read(RunFolder(run_path).records)
    if records.attempts[-1].reason != "finished":
        raise DragomanError("the demo was stopped", path=run_path, hint="dragoman demo continues it")
    data = DataSet(data_path)
    reporter.note("Scoring the test sentences")
    held_out = heldout.of_part(data, "test")
    translations = system.find(run_path, held_out, system.DecodingOptions()).translations
    write.write(records, explain(records), run_path)
    lines = [*_shown(held_out, translations), "", *_scores(held_out, translations, job.train[0]), ""]
    return "\n".join([*lines, f"Run: {run_path}", f"Report: {run_path / write.PAGE_FILE}"])


def _shown(held_out: HeldOut, translations: Sequence[str]) -> list[str]:
    lines = ["Held-out sentences, translated:"]
    for i in (np.arange(_SHOWN) * len(translations) // _SHOWN).tolist():
        lines += [
            "",
            f"  source       {held_out.sources[i]}",
            f"  translation  {translations[i]}",
            f"  reference    {held_out.references[0][i]}",
        ]
    return lines


def _scores(held_out: HeldOut, translations: Sequence[str], training: Corpus) -> list[str]:
    """BLEU of the model and of two baselines that learn nothing, on the same sentences."""
    sources, references = held_out.sources, held_out.references[0]
    score = bleu(translations, references)
    gloss = bleu([grammar.word_by_word(source) for source in sources], references)
    files_ = training.files[0]
    assert files_.target
    train_sources, train_targets = (
        path.read_text(encoding="utf-8").splitlines() for path in (files_.source, files_.target)
    )
    nearest = Nearest(train_sources)
    copied = bleu([train_targets[nearest(source)] for source in sources], references)
    return [
        f"BLEU on {len(sources):,} held-out sentences ({score.signature}):",
        f"  {score.value:5.1f}  this model",
        f"  {copied.value:5.1f}  the target of the nearest training sentence",
        f"  {gloss.value:5.1f}  word by word from the grammar's own lexicon",
    ]
