"""Checkpoints: a folder each, whole or not there, with a manifest that tells damage from soundness.

    step-00001000/
      model.safetensors       weights: all that a translation needs, with config and vocabulary
      optimizer.safetensors   Adam's moments: to go on training
      state.json              step, data position, evaluations so far
      config.toml             the run's settings
      vocabulary.model        SentencePiece
      manifest.json           size, checksum and purpose of each file

Random states need no file: weights, order of pairs and dropout follow from the seed, the step and the
microbatch. Nothing here is ever unpickled.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dragoman import atomic, config
from dragoman.config import Training
from dragoman.data.batches import Position
from dragoman.data.store import VOCABULARY_FILE
from dragoman.errors import DataError, DragomanError
from dragoman.measure.quality import Evaluation
from dragoman.rundir import RunFolder
from dragoman.train import optimizer
from dragoman.train.state import State

MODEL_FILE = "model.safetensors"
PURPOSES = {
    MODEL_FILE: "weights; needed to translate, to serve and to go on",
    "optimizer.safetensors": "the optimizer's moments; needed to go on training only",
    "state.json": "step, data position and evaluations so far; needed to go on training only",
    "config.toml": "the run's settings; needed to build the model",
    VOCABULARY_FILE: "subwords; needed to read and write text",
}


class ManifestFile(BaseModel):
    bytes: int
    sha256: str
    purpose: str


class Manifest(BaseModel):
    schema_version: int = 1
    step: int
    files: dict[str, ManifestFile]


class SavedState(BaseModel):
    """state.json"""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    schema_version: int = 1
    step: int
    position: Position
    history: list[Evaluation]
    bad_steps: int
    bad_in_a_row: int
    seconds: float
    target_tokens: int
    pairs: int
    loss_scale: dict[str, float] = {}
    world_size: int
    data_fingerprint: str


@dataclass(frozen=True)
class Loaded:
    """A checkpoint in memory."""

    state: SavedState
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]


class Saver:
    """Saves nothing: what ranks other than 0 have."""

    failure: DragomanError | None = None  # why the last checkpoint could not be written
    files: list[dict[str, object]] = []  # name, bytes and purpose of each file of the newest one

    @property
    def has_failed(self) -> bool:
        return self.failure is not None

    def save(self, state: State) -> None:
        """Begins to write a checkpoint of this moment."""

    def wait(self) -> None:
        """Until the checkpoint under way is on disk."""


class FolderSaver(Saver):
    """Writes in the background: a step is held up only while tensors are copied.

    A failure is kept, not raised: rank 0 must not leave the loop alone. The loop looks at `has_failed`.
    """

    def __init__(self, folder: RunFolder, vocabulary: bytes, world_size: int, data_fingerprint: str):
        self._folder = folder
        self._vocabulary = vocabulary
        self._world_size = world_size
        self._data_fingerprint = data_fingerprint
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def save(self, state: State) -> None:
        self.wait()
        # After a failure there is no second try; a run that goes on with no step left has nothing new.
        if not self.has_failed and not self._folder.checkpoint(state.step).exists():
            self._begin(state)

    @property
    def has_failed(self) -> bool:
        if self._pending and self._pending.done():
            self.wait()
        return self.failure is not None

    def wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending and (error := pending.exception()):
            if not isinstance(error, OSError | SafetensorError):
                raise error
            self.failure = self._failed(str(error))

    def _begin(self, state: State) -> None:
        if lacking := self._lacking_space(state):
            self.failure = self._failed(lacking)
            return
        model = _copies(state.model.state_dict())
        moments = _copies(optimizer.state(state.optimizer, state.model))
        self._pending = self._thread.submit(self._write, state.config, self._saved(state), model, moments)

    def _saved(self, state: State) -> SavedState:
        own = {name: getattr(state, name) for name in SavedState.model_fields if hasattr(state, name)}
        return SavedState(**own, world_size=self._world_size, data_fingerprint=self._data_fingerprint)

    def _write(
        self, settings: Training, saved: SavedState, model: dict[str, Tensor], moments: dict[str, Tensor]
    ) -> None:
        with atomic.appearing(self._folder.checkpoint(saved.step)) as folder:
            save_file(model, folder / MODEL_FILE)
            save_file(moments, folder / "optimizer.safetensors")
            for path in folder.iterdir():
                path.chmod(0o644)  # safetensors writes files that nobody else may read
            (folder / "state.json").write_text(saved.model_dump_json(indent=1))
            config.write(settings, folder / "config.toml")
            (folder / VOCABULARY_FILE).write_bytes(self._vocabulary)
            manifest = Manifest(step=saved.step, files={name: _facts(folder / name) for name in PURPOSES})
            (folder / "manifest.json").write_text(manifest.model_dump_json(indent=1))
        self.files = [
            {"name": name, "bytes": facts.bytes, "purpose": facts.purpose}
            for name, facts in manifest.files.items()
        ]
        self._tidy(settings, saved)

    def _tidy(self, settings: Training, saved: SavedState) -> None:
        """Points `best` at the best, and removes what is neither among the newest nor among the best."""
        steps = self._folder.checkpoint_steps()
        metric = settings.evaluate.metric
        scored = [evaluation for evaluation in saved.history if evaluation.step in steps]
        ranking = sorted(scored, key=lambda evaluation: evaluation.goodness(metric), reverse=True)
        best = [evaluation.step for evaluation in ranking[: settings.checkpoint.keep_best]]
        if best:
            link = self._folder.best.with_name(f"best{atomic.UNFINISHED}")
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.relpath(self._folder.checkpoint(best[0]), self._folder.path))
            link.replace(self._folder.best)
        for step in set(steps) - set(best) - set(steps[-settings.checkpoint.keep_last :]):
            _remove(self._folder.checkpoint(step))

    def _lacking_space(self, state: State) -> str:
        """Why there is no room, before a byte is written: half a checkpoint is of no use."""
        parameters = sum(p.numel() * p.element_size() for p in state.model.parameters())
        needed = 3 * parameters + (1 << 20)  # weights and two moments, and a little
        self._folder.checkpoints.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self._folder.checkpoints).free
        return f"{needed / 1e6:,.0f} MB are needed, {free / 1e6:,.0f} MB are free" if free < needed else ""

    def _failed(self, why: str) -> DragomanError:
        steps = self._folder.checkpoint_steps()
        kept = (
            f"the checkpoint of step {steps[-1]:,} is intact" if steps else "there is no earlier checkpoint"
        )
        return DragomanError(
            f"the checkpoint could not be written: {why}; {kept}",
            path=self._folder.checkpoints,
            hint="make room (or lower checkpoint.keep_last and keep_best) and run the same command again",
        )


def newest(folder: RunFolder) -> tuple[Loaded | None, list[str]]:
    """The newest sound checkpoint, or None; and a line about each that was damaged and set aside."""
    for leftover in folder.checkpoints.glob(f"*{atomic.UNFINISHED}"):
        shutil.rmtree(leftover)
    damaged: list[tuple[Path, DataError]] = []
    for step in reversed(folder.checkpoint_steps()):
        path = folder.checkpoint(step)
        try:
            loaded = load(path)
        except DataError as error:
            damaged.append((path, error))
        else:
            return loaded, [_set_aside(path, error) for path, error in damaged]
    if damaged:  # to begin anew is not ours to decide: hours of training may be on another disk
        raise DataError(
            f"no checkpoint is sound; of the newest: {damaged[0][1].where}: {damaged[0][1].what}",
            path=folder.checkpoints,
            hint="put a sound copy back, or remove this folder to begin at step 0",
        )
    return None, []


def _set_aside(path: Path, error: DataError) -> str:
    aside = path.with_name(path.name + ".damaged")
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    return f"{error.where}: {error.what}; set aside as {aside.name}, taking the one before"


def load(path: Path) -> Loaded:
    """A checkpoint whole, checked against its manifest."""
    verify(path)
    return Loaded(
        SavedState.model_validate_json((path / "state.json").read_text()),
        load_file(path / MODEL_FILE),
        load_file(path / "optimizer.safetensors"),
    )


def verify(path: Path) -> Manifest:
    """Every file is there and is what was written."""
    try:
        manifest = Manifest.model_validate_json((path / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"no sound checkpoint: {str(error).splitlines()[0]}", path=path) from None
    if lacking := PURPOSES.keys() - manifest.files.keys():
        raise DataError(f"damaged checkpoint: {min(lacking)} is not in its manifest", path=path)
    for name, expected in manifest.files.items():
        try:
            found = _facts(path / name)
        except OSError as error:
            raise DataError(f"damaged checkpoint: {error.strerror}", path=path / name) from None
        if found.sha256 != expected.sha256:
            raise DataError("damaged checkpoint: not the content that was written", path=path / name)
    return manifest


def _facts(path: Path) -> ManifestFile:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ManifestFile(bytes=path.stat().st_size, sha256=digest, purpose=PURPOSES[path.name])


def _copies(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """On the host, apart from what training goes on to change. Waits for the device."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


def _remove(path: Path) -> None:
    """Under another name first: a half-removed folder must not pass for a checkpoint."""
    doomed = path.with_name(path.name + atomic.UNFINISHED)
    path.rename(doomed)
    shutil.rmtree(doomed)
