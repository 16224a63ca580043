"""The run a model belongs to, which names the held-out text and keeps the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.checkpoint import saved_model
from dragoman.data.store import DataSet
from dragoman.decode.engine import CTRANSLATE2_FILE
from dragoman.errors import DataSetError, DragomanError, UsageError
from dragoman.evaluate.run import Evaluated
from dragoman.measure import provenance, scored
from dragoman.measure.scored import Scored
from dragoman.rundir import RunFolder


@dataclass(frozen=True)
class ScoredStep:
    """A checkpoint of a run, by its step."""

    run: Path
    step: int


def find(model: Path) -> ScoredStep | None:
    """The checkpoint that MODEL names; None for models without a run and for files."""
    if not model.is_dir() or (model / CTRANSLATE2_FILE).exists():
        return None
    try:
        checkpoint = saved_model.find(model).resolve()
    except DragomanError:  # not a model; opening it will say so
        return None
    run = RunFolder(checkpoint.parents[1])
    step = run.checkpoint_folders.step_of(checkpoint)
    return ScoredStep(run.path, step) if checkpoint.parent == run.checkpoints and step is not None else None


def data(model: Path) -> DataSet:
    """The data set that a run was trained on."""
    if not (checkpoint := find(model)):
        raise UsageError(
            "no text to translate is given, and this is not a run that names one",
            path=model,
            hint="one of: --data DATA; --source FILE --reference FILE; --test-set NAME --languages en-de",
        )
    facts = provenance.load(RunFolder(checkpoint.run).provenance)
    name = facts.get("data")
    path = Path(str(name))
    hint = "name the data set with --data DATA"
    if not name or not path.is_dir():
        what = (
            f"this run's data set is missing: {path}" if name else "this run does not say which data it used"
        )
        raise UsageError(what, path=checkpoint.run, hint=hint)
    data = DataSet(path)
    if data.card.fingerprint != facts.get("data_fingerprint"):
        raise DataSetError("this data set has changed since the run was trained on it", path=path, hint=hint)
    return data


def keep(evaluated: Evaluated, paths: Sequence[Path], checkpoints: Sequence[ScoredStep | None]) -> list[str]:
    """Store each system's scores beside its run's records, for the report; returns what prevented it."""
    obstacles = []
    for path, system, checkpoint in zip(paths, evaluated.systems, checkpoints, strict=True):
        if checkpoint is None:
            continue
        if find(path) != checkpoint:
            obstacles.append(f"{path} now names another checkpoint than the one scored")
            continue
        row = Scored(
            step=checkpoint.step,
            held_out=evaluated.held_out,
            sentences=evaluated.sentences,
            made=system.made,
            scores=system.scores,
        )
        try:
            scored.add(RunFolder(checkpoint.run).scores, row)
        except OSError as error:  # a read-only disk must not withhold the answer
            obstacles.append(f"{checkpoint.run}: {error.strerror}")
    return obstacles
