"""Writes checkpoints in the background and keeps the newest and the best. Format: dragoman/checkpoint."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from torch import Tensor

from dragoman import atomic, config, terminal
from dragoman.checkpoint import saved_state
from dragoman.checkpoint.saved_state import Contents
from dragoman.config import Training
from dragoman.data.store import VOCABULARY_FILE
from dragoman.errors import DragomanError
from dragoman.measure import clock
from dragoman.measure.quality import Evaluation
from dragoman.rundir import RunFolder, StepFolders
from dragoman.sync.shards import is_sharded, whole
from dragoman.sync.world import World
from dragoman.train import optimizer
from dragoman.train.state import State


class Written(NamedTuple):
    """When a checkpoint was written."""

    step: int
    began: float  # a reading of the clock
    seconds: float


class Saver:
    """Writes nothing, as on most ranks."""

    failure: DragomanError | None = None  # why the last checkpoint could not be written
    files: list[dict[str, object]] = []  # name, bytes and purpose of each file of the newest checkpoint

    @property
    def has_failed(self) -> bool:
        return self.failure is not None

    def save(self, state: State) -> None:
        """Begins to write a checkpoint of the state as it is now. Collective with shards: rank 0 gathers."""
        if is_sharded(state.model):
            for tensors in _tensors(state):
                for tensor in tensors.values():
                    whole(tensor)

    def wait(self) -> None:
        """Waits until the checkpoint under way is on disk."""

    def take_written(self) -> list[Written]:
        """The checkpoints written since the last call."""
        return []


class FolderSaver(Saver):
    """Writes in the background: training waits only while tensors are copied.

    A failure is kept, not raised, because no rank may leave the loop alone. The loop checks `has_failed`.
    """

    def __init__(
        self,
        folders: StepFolders,
        contents: Callable[[State], Contents],
        best: Path | None = None,
        is_spare: bool = False,
    ):
        """`contents` gives the files of a checkpoint when called; `best` is the link to the best one.

        A spare saver keeps a second copy, on another host. Its failure does not stop the run.
        """
        self._folders = folders
        self._contents = contents
        self._best = best
        self._is_spare = is_spare
        self._gave_up = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None
        self._written: SimpleQueue[Written] = SimpleQueue()

    def save(self, state: State) -> None:
        self.wait()
        files = self._contents(state)  # before any decision: collective with shards
        # After a failure there is no second try; a resumed run without steps left has nothing new.
        if not self.has_failed and not self._gave_up and not self._folders.at(state.step).exists():
            self._begin(state, files)

    @property
    def has_failed(self) -> bool:
        if self._pending and self._pending.done():
            self.wait()
        return self.failure is not None

    def wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending and (error := pending.exception()):
            if not isinstance(error, OSError):
                raise error
            self._fail(error.strerror or str(error))

    def take_written(self) -> list[Written]:
        return [self._written.get() for _ in range(self._written.qsize())]

    def _begin(self, state: State, files: Contents) -> None:
        if lacking := self._lacking_space(files):
            self._fail(lacking)
            return
        self._pending = self._thread.submit(self._write, state.config, state.step, list(state.history), files)

    def _write(self, settings: Training, step: int, history: list[Evaluation], files: Contents) -> None:
        began = clock.seconds()
        manifest = saved_state.write(self._folders.at(step), step, files)
        self.files = [
            {"name": name, "bytes": facts.bytes, "purpose": facts.purpose}
            for name, facts in manifest.files.items()
        ]
        tidy(self._folders, settings, history, self._best)
        self._written.put(Written(step, began, clock.seconds() - began))

    def _lacking_space(self, files: Contents) -> str:
        """Why the disk has no room, found before a byte is written: half a checkpoint is useless."""
        tensors = [each for file in files.values() if not isinstance(file, bytes) for each in file.values()]
        needed = sum(tensor.numel() * tensor.element_size() for tensor in tensors) + (1 << 20)
        atomic.make_folder(self._folders.path)
        free = shutil.disk_usage(self._folders.path).free
        return f"{needed / 1e6:,.0f} MB are needed, {free / 1e6:,.0f} MB are free" if free < needed else ""

    def _fail(self, why: str) -> None:
        failure = self._failed(why)
        if self._is_spare:
            self._gave_up = True
            terminal.warn(f"warning: no second copy of the checkpoints from here on: {failure}")
        else:
            self.failure = failure

    def _failed(self, why: str) -> DragomanError:
        steps = self._folders.steps()
        earlier = (
            f"the checkpoint of step {steps[-1]:,} is intact" if steps else "there is no earlier checkpoint"
        )
        return DragomanError(
            f"the checkpoint could not be written: {why}; {earlier}",
            path=self._folders.path,
            hint="free some space (or lower checkpoint.keep_last and keep_best), then run the command again",
        )


class SeveralSavers(Saver):
    """Writes what each of them writes."""

    def __init__(self, savers: Sequence[Saver]):
        self._savers = savers

    @property
    def failure(self) -> DragomanError | None:  # type: ignore[override]
        return next((saver.failure for saver in self._savers if saver.failure), None)

    @property
    def has_failed(self) -> bool:
        return any([saver.has_failed for saver in self._savers])

    @property
    def files(self) -> list[dict[str, object]]:  # type: ignore[override]
        return self._savers[0].files

    def save(self, state: State) -> None:
        for saver in self._savers:
            saver.save(state)

    def wait(self) -> None:
        for saver in self._savers:
            saver.wait()

    def take_written(self) -> list[Written]:
        return self._savers[0].take_written()


def main_saver(
    folder: RunFolder, vocabulary: bytes, world: World, data_fingerprint: str, replica: int = 0
) -> FolderSaver:
    """The saver of rank 0; on another rank a spare one, with the moments of that rank's replica."""

    def now(state: State) -> Contents:
        return contents(state, vocabulary, world.size, data_fingerprint, replica)

    return FolderSaver(folder.checkpoint_folders, now, folder.best, is_spare=not world.is_main)


def replica_saver(folder: RunFolder, replica: int) -> FolderSaver:
    """The saver of the first rank of each of DiLoCo's other replicas."""
    return FolderSaver(folder.replica(replica), replica_contents)


def contents(
    state: State, vocabulary: bytes, world_size: int, data_fingerprint: str, replica: int = 0
) -> Contents:
    """A checkpoint of the state as it is now; tensors are copied, so that training can continue."""
    names = [name for name in saved_state.SavedState.model_fields if hasattr(state, name)]
    values = {name: getattr(state, name) for name in names}
    saved = saved_state.SavedState(
        **values, world_size=world_size, data_fingerprint=data_fingerprint, moments_of=replica
    )
    model, moments = map(_copies, _tensors(state))
    outer = {saved_state.OUTER_FILE: _copies(state.outer)} if state.outer else {}
    return {
        saved_state.MODEL_FILE: model,
        saved_state.OPTIMIZER_FILE: moments,
        **outer,
        saved_state.STATE_FILE: saved.model_dump_json(indent=1).encode(),
        "config.toml": config.text(state.config).encode(),
        VOCABULARY_FILE: vocabulary,
    }


def replica_contents(state: State) -> Contents:
    """The own state of a replica other than the first, as it is now."""
    saved = saved_state.ReplicaState(step=state.step, loss_scale=state.loss_scale)
    return {
        saved_state.OPTIMIZER_FILE: _copies(optimizer.state(state.optimizer, state.model)),
        saved_state.STATE_FILE: saved.model_dump_json(indent=1).encode(),
    }


def tidy(folders: StepFolders, settings: Training, history: Iterable[Evaluation], best: Path | None) -> None:
    """Points `best` at the best checkpoint, and removes those neither among the newest nor the best."""
    kept = link_best(folders, settings, history, best)
    steps = folders.steps()
    for step in set(steps) - set(kept) - set(steps[-settings.checkpoint.keep_last :]):
        _remove(folders.at(step))


def remove_newer(folders: StepFolders, step: int) -> None:
    """Removes checkpoints after this step: a run that continues here makes them anew, perhaps differently."""
    for newer in folders.steps():
        if newer > step:
            _remove(folders.at(newer))


def link_best(
    folders: StepFolders, settings: Training, history: Iterable[Evaluation], best: Path | None
) -> list[int]:
    """Points `best` at the best checkpoint on disk; returns the steps of all kept as the best."""
    steps, metric = folders.steps(), settings.evaluate.metric
    scored = [evaluation for evaluation in history if evaluation.step in steps]
    ranking = sorted(scored, key=lambda evaluation: evaluation.goodness(metric), reverse=True)
    kept = [evaluation.step for evaluation in ranking[: settings.checkpoint.keep_best]]
    if best and kept:
        atomic.link(best, os.path.relpath(folders.at(kept[0]), best.parent))
    return kept


def _remove(path: Path) -> None:
    """Removes a checkpoint, renamed first: a half-removed folder must not pass for a checkpoint.

    Not even after a power cut: the new name is on the disk before a file is gone.
    """
    doomed = path.with_name(path.name + atomic.UNFINISHED)
    path.rename(doomed)
    atomic.sync(path.parent)
    shutil.rmtree(doomed)


def _tensors(state: State) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """The weights and the moments, in the same order on every rank."""
    return state.model.state_dict(), optimizer.state(state.optimizer, state.model)


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of whole tensors in host memory, which training does not change. Waits for the device.

    Collective with shards: one tensor at a time is gathered.
    """
    return {
        name: whole(tensor.detach()).to("cpu", copy=True).contiguous() for name, tensor in tensors.items()
    }
