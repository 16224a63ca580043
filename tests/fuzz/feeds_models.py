"""Models: checkpoints, what stands beside them, and folders for CTranslate2."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import torch

from dragoman import engines
from dragoman.checkpoint import saved_model, saved_state
from dragoman.data.tokens import Tokenizer
from dragoman.explain.run import explain
from dragoman.measure import database
from dragoman.model import Transformer
from dragoman.report import write
from dragoman.rundir import RunFolder
from dragoman.sync.topology import Placement, Topology
from dragoman.sync.world import World
from dragoman.train import optimizer, resume
from dragoman.train.state import State
from tests.fuzz import seeds
from tests.fuzz.feeds import Opened, is_one_of_many


class _Alone(World):
    """A world of one, without connections."""

    def sum_(self, tensor: torch.Tensor) -> None:
        pass

    def broadcast_(self, tensor: torch.Tensor) -> None:
        pass

    def broadcast_bytes(self, content: bytes, source: int = 0) -> bytes:
        return content


def saved(name: str, shared: Path, own: Path) -> Opened:
    """One file of a checkpoint; the manifest agrees with its checksum."""
    torch.set_num_threads(1)
    run = RunFolder(own / "run")
    shutil.copytree(shared / "run", run.path)
    folder = run.checkpoint(1)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]  # else nothing behind its own checksum is reached
    (folder / "manifest.json").write_text(json.dumps(manifest))
    model = Transformer(seeds.SETTINGS.model, len(Tokenizer.load(folder / "vocabulary.model")))
    state = State(seeds.SETTINGS, model, optimizer.build(model, seeds.SETTINGS.train))

    def feed(data: bytes) -> None:
        (folder / name).write_bytes(data)
        if name != "manifest.json":
            manifest["files"][name] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            (folder / "manifest.json").write_text(json.dumps(manifest))
        _translate_with(run)
        _resume(run, state)

    return [(folder / name).read_bytes()], feed


def _translate_with(run: RunFolder) -> None:
    saved_model.load_weights(run.path, average=1)
    (best,) = saved_model.find_several(run.path, 1, "best")
    saved_model.load([best], torch.device("cpu"))


def _resume(run: RunFolder, state: State) -> None:
    saved_state.verify(run.checkpoint(1))
    alone = _Alone(0, 1, 0, 1, torch.device("cpu"))
    resume.restore(state, run, 1, Placement(alone, Topology(["here"], [0], ["lo"])))
    state.best()


def languages(shared: Path, own: Path) -> Opened:
    """provenance.json, beside the model of whose languages it tells and in its report."""
    run = RunFolder(own / "run")
    shutil.copytree(shared / "run", run.path)
    records = database.read(run.records)
    findings = explain(records)

    def feed(data: bytes) -> None:
        run.provenance.write_bytes(data)
        saved_model.load_weights(run.path)
        if is_one_of_many(data):
            write.write(records, findings, run.path)

    return [run.provenance.read_bytes()], feed


def exported(shared: Path, own: Path) -> Opened:
    """The config.json of a folder for CTranslate2."""
    folder = own / "ct2"
    shutil.copytree(shared / "ct2", folder)

    def feed(data: bytes) -> None:
        (folder / "config.json").write_bytes(data)
        engines.load(folder, threads=1).translate(["a red dog"])

    return [(folder / "config.json").read_bytes()], feed
