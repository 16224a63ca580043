"""The run that a model belongs to: whose held-out text it is scored on, and who keeps its scores."""

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
    """Of a run, by its step."""

    run: Path
    step: int


def find(model: Path) -> ScoredStep | None:
    """The checkpoint that MODEL names; None for models without a run and for files."""
    if not model.is_dir() or (model / CTRANSLATE2_FILE).exists():
        return None
    try:
        checkpoint = saved_model.find(model).resolve()
    except DragomanError:  # no model at all, which is said where it is opened
        return None
    run = RunFolder(checkpoint.parents[1])
    step = run.checkpoint_folders.step_of(checkpoint)
    return ScoredStep(run.path, step) if checkpoint.parent == run.checkpoints and step is not None else None


def data(model: Path) -> DataSet:
    """The data set that a run was trained on."""
    if not (found := find(model)):
        raise UsageError(
            "what to translate is not clear, and this is no run that could say it",
            path=model,
            hint="one of: --data DATA; --source FILE --reference FILE; --test-set NAME --languages en-de",
        )
    facts = provenance.load(RunFolder(found.run).provenance)
    path = Path(str(facts.get("data", "")))
    hint = "say where it is: --data DATA"
    if not facts.get("data") or not path.is_dir():
        raise UsageError(f"the data set of this run is not here: {path}", path=found.run, hint=hint)
    data = DataSet(path)
    if data.card.fingerprint != facts.get("data_fingerprint"):
        raise DataSetError(
            "this is not the data set any more that the run was trained on", path=path, hint=hint
        )
    return data


def keep(evaluated: Evaluated, paths: Sequence[Path], scored_ones: Sequence[ScoredStep | None]) -> list[str]:
    """The scores of each system beside the records of its run, for the report; tells what prevented it."""
    obstacles = []
    for path, system, checkpoint in zip(paths, evaluated.systems, scored_ones, strict=True):
        if checkpoint is None:
            continue
        if find(path) != checkpoint:
            obstacles.append(f"{path} named another checkpoint before the scores were there")
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
        except OSError as error:  # a read-only disk is no reason to answer nothing
            obstacles.append(f"{checkpoint.run}: {error.strerror}")
    return obstacles
