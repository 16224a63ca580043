"""Checkpoints: a folder each, whole or not there, with a manifest that tells damage from soundness.

    step-00001000/
      model.safetensors       weights: all that a translation needs, with config and vocabulary
      optimizer.safetensors   the optimizer's moments: to go on training
      outer.safetensors       DiLoCo only: the outer momentum
      state.json              step, data position, evaluations so far
      config.toml             the run's settings
      vocabulary.model        SentencePiece
      manifest.json           size, checksum and purpose of each file

Random states need no file: weights, order of pairs and dropout follow from the seed, the step and the
microbatch. Nothing here is ever unpickled. With DiLoCo every replica but the first keeps its own
optimizer.safetensors and state.json, in a folder of the same kind on its own host (rundir.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from safetensors.torch import load_file
from torch import Tensor

from dragoman import atomic, config
from dragoman.data.batches import Position
from dragoman.data.store import VOCABULARY_FILE
from dragoman.errors import DataError
from dragoman.measure.quality import Evaluation
from dragoman.model import weights
from dragoman.sync.choice import Choice
from dragoman.train import optimizer
from dragoman.train.state import State

MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
OUTER_FILE = "outer.safetensors"
STATE_FILE = "state.json"
PURPOSES = {
    MODEL_FILE: "weights; needed to translate, to serve and to go on",
    OPTIMIZER_FILE: "the optimizer's moments; needed to go on training only",
    OUTER_FILE: "DiLoCo's outer momentum; needed to go on training only",
    STATE_FILE: "step, data position and evaluations so far; needed to go on training only",
    "config.toml": "the run's settings; needed to build the model",
    VOCABULARY_FILE: "subwords; needed to read and write text",
}
REQUIRED = PURPOSES.keys() - {OUTER_FILE}
REQUIRED_TO_TRANSLATE = {MODEL_FILE, "config.toml", VOCABULARY_FILE}
REQUIRED_OF_REPLICA = {OPTIMIZER_FILE, STATE_FILE}

Contents = Mapping[str, dict[str, Tensor] | bytes]  # of each file


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
    loss_scale: dict[str, int | float] = {}
    choice: Choice | None = None
    replicas: list[int] = []
    world_size: int
    data_fingerprint: str


class ReplicaState(BaseModel):
    """state.json of a replica: what is its own, beside the moments."""

    schema_version: int = 1
    step: int
    loss_scale: dict[str, int | float] = {}


@dataclass(frozen=True)
class Loaded:
    """A checkpoint in memory."""

    state: SavedState
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    outer: dict[str, Tensor]


def contents(state: State, vocabulary: bytes, world_size: int, data_fingerprint: str) -> Contents:
    """A checkpoint of this moment: tensors are copied, so that training can go on."""
    own = {name: getattr(state, name) for name in SavedState.model_fields if hasattr(state, name)}
    saved = SavedState(**own, world_size=world_size, data_fingerprint=data_fingerprint)
    outer = {OUTER_FILE: _copies(state.outer)} if state.outer else {}
    return {
        MODEL_FILE: _copies(state.model.state_dict()),
        OPTIMIZER_FILE: _copies(optimizer.state(state.optimizer, state.model)),
        **outer,
        STATE_FILE: saved.model_dump_json(indent=1).encode(),
        "config.toml": config.text(state.config).encode(),
        VOCABULARY_FILE: vocabulary,
    }


def replica_contents(state: State) -> Contents:
    """What a replica beside the first has for itself at this moment."""
    own = ReplicaState(step=state.step, loss_scale=state.loss_scale)
    return {
        OPTIMIZER_FILE: _copies(optimizer.state(state.optimizer, state.model)),
        STATE_FILE: own.model_dump_json(indent=1).encode(),
    }


def write(path: Path, step: int, files: Contents) -> Manifest:
    """The folder appears whole, or not at all."""
    with atomic.appearing(path) as folder:
        for name, content in files.items():
            if isinstance(content, bytes):
                (folder / name).write_bytes(content)
            else:
                weights.save(content, folder / name)
        manifest = Manifest(step=step, files={name: _facts(folder / name) for name in files})
        (folder / "manifest.json").write_text(manifest.model_dump_json(indent=1))
    return manifest


def load(path: Path) -> Loaded:
    """A checkpoint whole, not checked: `verify` does that."""
    return Loaded(
        saved_state(path),
        load_file(path / MODEL_FILE),
        load_file(path / OPTIMIZER_FILE),
        load_file(path / OUTER_FILE) if (path / OUTER_FILE).exists() else {},
    )


def saved_state(path: Path) -> SavedState:
    return SavedState.model_validate_json((path / STATE_FILE).read_text())


def load_replica(path: Path) -> tuple[ReplicaState, dict[str, Tensor]]:
    """What a replica kept for itself, not checked."""
    state = ReplicaState.model_validate_json((path / STATE_FILE).read_text())
    return state, load_file(path / OPTIMIZER_FILE)


def verify(path: Path, required: Set[str] = REQUIRED) -> Manifest:
    """Every file is there and is what was written."""
    manifest = _manifest(path, required)
    _check(path, manifest.files)
    return manifest


def verify_replica(path: Path) -> Manifest:
    return verify(path, REQUIRED_OF_REPLICA)


def verify_model(path: Path) -> None:
    """What a translation needs is sound. The rest may be gone: it is two thirds of the bytes."""
    files = _manifest(path, REQUIRED_TO_TRANSLATE).files
    _check(path, {name: files[name] for name in REQUIRED_TO_TRANSLATE})


def _manifest(path: Path, required: Set[str]) -> Manifest:
    try:
        manifest = Manifest.model_validate_json((path / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"no sound checkpoint: {str(error).splitlines()[0]}", path=path) from None
    if lacking := required - manifest.files.keys():
        raise DataError(f"damaged checkpoint: {min(lacking)} is not in its manifest", path=path)
    return manifest


def _check(path: Path, files: Mapping[str, ManifestFile]) -> None:
    for name, expected in files.items():
        try:
            found = _facts(path / name)
        except OSError as error:
            raise DataError(f"damaged checkpoint: {error.strerror}", path=path / name) from None
        if found.sha256 != expected.sha256:
            raise DataError("damaged checkpoint: not the content that was written", path=path / name)


def _facts(path: Path) -> ManifestFile:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ManifestFile(bytes=path.stat().st_size, sha256=digest, purpose=PURPOSES[path.name])


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the host, apart from what training goes on to change. Waits for the device."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
