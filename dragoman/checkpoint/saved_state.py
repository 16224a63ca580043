"""Checkpoints: one folder each, complete or absent, with a manifest that reveals damage.

    step-00001000/
      model.safetensors       weights: with config and vocabulary, all that a translation needs
      optimizer.safetensors   the optimizer's moments: to resume training
      outer.safetensors       DiLoCo only: the outer momentum
      state.json              step, data position, evaluations so far
      config.toml             the run's settings
      vocabulary.model        SentencePiece
      manifest.json           size, checksum and purpose of each file

Random states need no file: initial weights, order of pairs and dropout follow from the seed, the step and the
microbatch. Nothing here is ever unpickled. With DiLoCo every replica except the first keeps its own
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
    MODEL_FILE: "weights; needed to translate, serve and resume training",
    OPTIMIZER_FILE: "the optimizer's moments; needed only to resume training",
    OUTER_FILE: "DiLoCo's outer momentum; needed only to resume training",
    STATE_FILE: "step, data position and evaluations so far; needed only to resume training",
    "config.toml": "the run's settings; needed to build the model",
    VOCABULARY_FILE: "subwords; needed to read and write text",
}
REQUIRED = PURPOSES.keys() - {OUTER_FILE}
REQUIRED_TO_TRANSLATE = {MODEL_FILE, "config.toml", VOCABULARY_FILE}
REQUIRED_OF_REPLICA = {OPTIMIZER_FILE, STATE_FILE}

Shapes = dict[str, tuple[int, ...]]  # by tensor name
Contents = Mapping[str, dict[str, Tensor] | bytes]  # by file name


class SavedState(BaseModel):
    """state.json"""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    schema_version: int = 1
    attempt: int = 0  # the start of the run that made it
    step: int
    position: Position
    history: list[Evaluation]
    bad_steps: int
    bad_in_a_row: int
    seconds: float
    target_tokens: int
    pairs: int
    loss_scale: dict[str, int | float] = {}
    pass_tokens: int = 0
    choice: Choice | None = None
    replicas: list[int] = []
    moments_of: int = 0  # DiLoCo: the replica; not 0 in the copy that a second host keeps
    world_size: int
    data_fingerprint: str


class ReplicaState(BaseModel):
    """A replica's state.json: what it keeps for itself besides the moments."""

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
    """Writes a checkpoint. Its folder appears complete, or not at all."""
    with atomic.appearing(path) as folder:
        for name, content in files.items():
            if isinstance(content, bytes):
                (folder / name).write_bytes(content)
            else:
                weights.save(content, folder / name)
        return manifest.write(folder, {name: PURPOSES[name] for name in files}, step)


def load(path: Path) -> Loaded:
    """A whole checkpoint, unchecked: `verify` does that."""
    has_outer = OUTER_FILE in manifest.read(path, PURPOSES).files
    return Loaded(
        saved_state(path),
        _tensors(path / MODEL_FILE),
        _tensors(path / OPTIMIZER_FILE),
        _tensors(path / OUTER_FILE) if has_outer else {},
    )


def load_replica(path: Path) -> tuple[ReplicaState, dict[str, Tensor]]:
    """What a replica keeps for itself, unchecked."""
    return _replica_state(path), _tensors(path / OPTIMIZER_FILE)


def saved_state(path: Path) -> SavedState:
    with reading(path / STATE_FILE, CheckpointError):
        return SavedState.model_validate_json((path / STATE_FILE).read_bytes())


def is_scored(path: Path) -> bool:
    """Was this step evaluated? True also if its state cannot be read, so that no note is made of it."""
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
    """The shapes of a checkpoint's weights, read from the file's header. Raises unless all are F32."""
    file = path / MODEL_FILE
    with reading(file, CheckpointError), safe_open(file, "pt") as opened:
        slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118  no mapping
        for name, part in slices.items():
            if part.get_dtype() != "F32":
                raise CheckpointError(f"{name} is {part.get_dtype()}, expected F32", path=file)
        return {name: tuple(part.get_shape()) for name, part in slices.items()}


def shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def check_shapes(file: Path, actual: Shapes, expected: Shapes) -> None:
    """Raises unless the file holds exactly the tensors that this model has."""
    for name in sorted(actual.keys() | expected.keys()):
        if actual.get(name) != expected.get(name):
            raise CheckpointError(
                f"{name} has shape {actual.get(name)}, expected {expected.get(name)}", path=file
            )


def finite_weights(path: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint. Raises if any of them is not a finite number."""
    weights = _tensors(path / MODEL_FILE)
    with reading(path / MODEL_FILE, CheckpointError):
        # The sum is not finite if one weight is not, or if it overflows. So for nearly every tensor one pass
        # without a copy is enough.
        doubtful = [name for name, tensor in weights.items() if not tensor.sum().isfinite()]
        if wrong := [name for name in doubtful if not weights[name].isfinite().all()]:
            raise CheckpointError(
                f"{wrong[0]} holds weights that are not finite numbers",
                path=path / MODEL_FILE,
                hint="use an earlier checkpoint: training had diverged when this one was saved",
            )
    return weights


def verify(path: Path) -> Manifest:
    """Raises unless every file is there and undamaged, so that training can resume from the checkpoint."""
    verified = _verified(path, REQUIRED)
    saved_state(path)
    finite_weights(path)
    return verified


def verify_replica(path: Path) -> Manifest:
    verified = _verified(path, REQUIRED_OF_REPLICA)
    _replica_state(path)
    return verified


def verify_only(path: Path, names: Set[str]) -> None:
    """Raises unless these files are undamaged. To translate, a third of a checkpoint's bytes is enough."""
    _verified(path, names, names)


def _verified(path: Path, required: Set[str], checked: Set[str] = PURPOSES.keys()) -> Manifest:
    listed = manifest.read(path, PURPOSES)
    if missing := required - listed.files.keys():
        raise CheckpointError(f"damaged: {min(missing)} is not in it", path=path / manifest.MANIFEST_FILE)
    manifest.check(path, {name: facts for name, facts in listed.files.items() if name in checked})
    return listed
