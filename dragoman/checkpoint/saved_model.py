"""Loads a MODEL as users name it: a run, its best, a checkpoint, or the average of several checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from dragoman import config, format_units, kinds, terminal
from dragoman.checkpoint import saved_state
from dragoman.checkpoint.saved_state import MODEL_FILE, REQUIRED_TO_TRANSLATE, STATE_FILE
from dragoman.config import Model, Training
from dragoman.data.store import VOCABULARY_FILE
from dragoman.data.tokens import Tokenizer
from dragoman.errors import CheckpointError, ConfigError, DataError, UsageError, reading
from dragoman.measure import provenance
from dragoman.model import Transformer
from dragoman.rundir import RunFolder


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to translate."""

    model: Transformer
    tokenizer: Tokenizer
    settings: Training


def find(path: Path) -> Path:
    """The folder with the weights: a checkpoint itself, or a run's best or else newest checkpoint."""
    if (path / MODEL_FILE).exists():
        return _follow_link(path)
    folder = RunFolder(path)
    if folder.best.exists():
        return _follow_link(folder.best)
    if steps := folder.checkpoint_steps():
        return folder.checkpoint(steps[-1])
    raise kinds.refused(path, "model")


def note_on_newer(path: Path) -> list[str]:
    """A note for the user if a run's newest checkpoint is neither the one used nor scored; else nothing."""
    folder = RunFolder(path)
    steps = folder.checkpoint_steps()
    if (path / MODEL_FILE).exists() or not steps:
        return []
    used, newest = find(path), folder.checkpoint(steps[-1])
    if used == newest or saved_state.is_scored(newest):
        return []
    return [
        f"note: using {used.name}, the best scored checkpoint; {newest.name} is newer but was not scored"
        f"\n  to use the newer one, name {newest}"
    ]


def _follow_link(path: Path) -> Path:
    """The checkpoint that `best` points at now: a run in progress may change it at any moment."""
    return path.parent / path.readlink() if path.is_symlink() else path


def find_several(path: Path, count: int, which: Literal["last", "best"]) -> list[Path]:
    """The newest or the best `count` checkpoints of a run, for averaging."""
    folder = RunFolder(path)
    steps = folder.checkpoint_steps()
    if which == "best" and steps:
        steps = _worst_to_best(folder.checkpoint(steps[-1]), steps)
    if len(steps) < count:
        kind = "scored checkpoint" if which == "best" else "checkpoint"
        raise UsageError(
            f"has {format_units.counted(len(steps), kind)}, fewer than the {count} to be averaged",
            path=path,
            hint=f"give a lower --average; checkpoint.keep_{which} sets how many a run keeps",
        )
    return [folder.checkpoint(step) for step in steps[-count:]]


def _worst_to_best(newest: Path, steps: Sequence[int]) -> list[int]:
    """The evaluated steps, sorted by the run's metric. The newest checkpoint holds all evaluations."""
    saved_state.verify_only(newest, {STATE_FILE, "config.toml"})
    history = saved_state.saved_state(newest).history
    metric = run_settings(newest).evaluate.metric
    scored = {evaluation.step: evaluation.goodness(metric) for evaluation in history}
    return sorted((step for step in steps if step in scored), key=lambda step: scored[step])


def load(paths: Sequence[Path], device: torch.device) -> LoadedModel:
    """A model in evaluation mode. Several checkpoints are averaged."""
    folders = [_verified(path) for path in paths]
    settings = run_settings(folders[0])
    tokenizer = Tokenizer.load(folders[0] / VOCABULARY_FILE, CheckpointError)
    model = _without_weights(folders, settings.model, len(tokenizer))
    model.to_empty(device=torch.device("cpu")).load_state_dict(_mean(folders))
    return LoadedModel(model.to(device).eval(), tokenizer, settings)


def load_weights(
    model: Path, average: int = 1, of: Literal["last", "best"] = "last"
) -> tuple[LoadedModel, tuple[str, str] | None]:
    """A model trained by dragoman, on the CPU, and its source and target language if its run still exists."""
    if (model / "config.json").is_file():
        raise UsageError(
            "this model is in the format of Hugging Face's transformers, which dragoman does not run",
            path=model,
            hint="give the run it was made from, or convert it with ct2-transformers-converter",
        )
    paths = find_several(model, average, of) if average > 1 else [model]
    for note in note_on_newer(model) if average == 1 else ():
        terminal.warn(note)
    return load(paths, torch.device("cpu")), _languages(find(paths[0]))


def _languages(folder: Path) -> tuple[str, str] | None:
    """The source and target language of the run that a checkpoint is in."""
    facts = provenance.load(RunFolder(folder.resolve().parent.parent).provenance)
    source, target = facts.get("source_language"), facts.get("target_language")
    return (str(source), str(target)) if source and target else None


def run_settings(folder: Path) -> Training:
    """The settings of the run that a checkpoint is from."""
    try:
        return config.load(Training, folder / "config.toml")
    except ConfigError as error:  # the user did not write this file
        raise CheckpointError(error.what, path=error.path, line=error.line) from None


def _verified(path: Path) -> Path:
    """The folder with the weights, after its files are checked: nothing is used before."""
    folder = find(path)
    saved_state.verify_only(folder, REQUIRED_TO_TRANSLATE)
    return folder


def _mean(folders: Sequence[Path]) -> dict[str, Tensor]:
    total: dict[str, Tensor] = {}
    for folder in folders:
        for name, tensor in saved_state.finite_weights(folder).items():
            total[name] = total[name] + tensor if name in total else tensor
    return {name: tensor / len(folders) for name, tensor in total.items()} if len(folders) > 1 else total


def _without_weights(folders: Sequence[Path], measures: Model, vocabulary: int) -> Transformer:
    """The model that a config describes, without memory for its weights, which every folder must have."""
    path, saved = folders[0] / "config.toml", [saved_state.weight_shapes(folder) for folder in folders]
    layers = measures.encoder_layers + measures.decoder_layers
    if layers > len(saved[0]):  # building so large a model may take minutes
        raise CheckpointError(f"{layers:,} layers, but {MODEL_FILE} has {len(saved[0]):,} tensors", path=path)
    with reading(path, CheckpointError), torch.device("meta"):
        model = Transformer(measures, vocabulary)
    for folder, shapes in zip(folders, saved, strict=True):
        saved_state.check_shapes(folder / MODEL_FILE, shapes, saved_state.shapes(model.state_dict()))
    return model


def check_fits(path: Path, wanted: Model, tokenizer: Tokenizer) -> None:
    """Raises unless a run of this shape and vocabulary can start from these weights."""
    folder = _verified(path)
    other = Tokenizer.load(folder / VOCABULARY_FILE, CheckpointError)
    if other.sha256 != tokenizer.sha256:
        raise DataError(
            f"its vocabulary ({len(other):,} pieces) is not the data set's ({len(tokenizer):,} pieces)",
            path=folder,
            hint=f"prepare the data with --vocab {folder / VOCABULARY_FILE}",
        )
    rates = {"dropout", "attention_dropout", "feedforward_dropout"}  # no weight depends on them
    theirs, ours = dict(config.flat(run_settings(folder).model)), dict(config.flat(wanted))
    differing = [key for key in theirs if key not in rates and theirs[key] != ours[key]]
    if differing:
        what = ", ".join(f"model.{key} is {theirs[key]} there, {ours[key]} here" for key in differing)
        raise DataError(
            f"its shape differs: {what}",
            path=folder,
            hint=f"copy the [model] section of {folder / 'config.toml'} into your config",
        )
