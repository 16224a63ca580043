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

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from dragoman import atomic
from dragoman.checkpoint import manifest
from dragoman.checkpoint.manifest import Manifest
from dragoman.data.batches import Position
from dragoman.data.store import VOCABULARY_FILE
from dragoman.errors import CheckpointError, reading
from dragoman.measure.quality import Evaluation
from dragoman.model import weights
from dragoman.sync.choice import Choice

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

Shapes = dict[str, tuple[int, ...]]  # of tensors by name
Contents = Mapping[str, dict[str, Tensor] | bytes]  # of each file


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


def write(path: Path, step: int, files: Contents) -> Manifest:
    """The folder appears whole, or not at all."""
    with atomic.appearing(path) as folder:
        for name, content in files.items():
            if isinstance(content, bytes):
                (folder / name).write_bytes(content)
            else:
                weights.save(content, folder / name)
        return manifest.write(folder, {name: PURPOSES[name] for name in files}, step)


def load(path: Path) -> Loaded:
    """A checkpoint whole, not checked: `verify` does that."""
    has_outer = OUTER_FILE in manifest.read(path, PURPOSES).files
    return Loaded(
        saved_state(path),
        _tensors(path / MODEL_FILE),
        _tensors(path / OPTIMIZER_FILE),
        _tensors(path / OUTER_FILE) if has_outer else {},
    )


def load_replica(path: Path) -> tuple[ReplicaState, dict[str, Tensor]]:
    """What a replica kept for itself, not checked."""
    return _replica_state(path), _tensors(path / OPTIMIZER_FILE)


def saved_state(path: Path) -> SavedState:
    with reading(path / STATE_FILE, CheckpointError):
        return SavedState.model_validate_json((path / STATE_FILE).read_bytes())


def is_scored(path: Path) -> bool:
    """Was this step evaluated? One whose state cannot be read says nothing."""
    try:
        state = saved_state(path)
    except (CheckpointError, OSError):
        return True
    return any(evaluation.step == state.step for evaluation in state.history)


def _replica_state(path: Path) -> ReplicaState:
    with reading(path / STATE_FILE, CheckpointError):
        return ReplicaState.model_validate_json((path / STATE_FILE).read_bytes())


def _tensors(path: Path) -> dict[str, Tensor]:
    with reading(path, CheckpointError):
        return load_file(path)


def weight_shapes(path: Path) -> Shapes:
    """Of a checkpoint's weights, from the head of their file alone. A weight of another type is refused."""
    file = path / MODEL_FILE
    with reading(file, CheckpointError), safe_open(file, "pt") as opened:
        slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118  no mapping
        for name, part in slices.items():
            if part.get_dtype() != "F32":
                raise CheckpointError(f"{name} is {part.get_dtype()}, F32 was expected", path=file)
        return {name: tuple(part.get_shape()) for name, part in slices.items()}


def shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def check_shapes(file: Path, found: Shapes, expected: Shapes) -> None:
    """The file holds the tensors that this model has, and no others."""
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            raise CheckpointError(
                f"{name} has shape {found.get(name)}, expected was {expected.get(name)}", path=file
            )


def finite_weights(path: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint: numbers, every one of them."""
    weights = _tensors(path / MODEL_FILE)
    with reading(path / MODEL_FILE, CheckpointError):
        # A sum of numbers may be too large to be one; with anything else among them it never is one. So one
        # pass without a copy is enough for nearly all.
        doubtful = [name for name, tensor in weights.items() if not tensor.sum().isfinite()]
        if wrong := [name for name in doubtful if not weights[name].isfinite().all()]:
            raise CheckpointError(
                f"{wrong[0]} holds weights that are not finite numbers",
                path=path / MODEL_FILE,
                hint="an earlier checkpoint: training had diverged when this one was saved",
            )
    return weights


def verify(path: Path) -> Manifest:
    """Every file is there and is what was written, and training can go on from it."""
    found = _verified(path, REQUIRED)
    saved_state(path)
    finite_weights(path)
    return found


def verify_replica(path: Path) -> Manifest:
    found = _verified(path, REQUIRED_OF_REPLICA)
    _replica_state(path)
    return found


def verify_only(path: Path, names: Set[str]) -> None:
    """These files are sound. The rest may be gone: what a translation needs is a third of the bytes."""
    _verified(path, names, names)


def _verified(path: Path, required: Set[str], checked: Set[str] = PURPOSES.keys()) -> Manifest:
    found = manifest.read(path, PURPOSES)
    if lacking := required - found.files.keys():
        raise CheckpointError(f"damaged: {min(lacking)} is not in it", path=path / manifest.MANIFEST_FILE)
    manifest.check(path, {name: facts for name, facts in found.files.items() if name in checked})
    return found
