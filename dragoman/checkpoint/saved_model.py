"""A MODEL as users name it: a run, its best, a checkpoint; one of them, or several averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from dragoman import config, kinds, terminal
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
    """The folder with the weights: a checkpoint itself; of a run, its best or else its newest one."""
    if (path / MODEL_FILE).exists():
        return _linked(path)
    folder = RunFolder(path)
    if folder.best.exists():
        return _linked(folder.best)
    if steps := folder.checkpoint_steps():
        return folder.checkpoint(steps[-1])
    raise kinds.refused(path, "model")


def note_on_newer(path: Path) -> list[str]:
    """A line that says so if a run has a newer checkpoint than the one used, which nothing scored."""
    folder = RunFolder(path)
    steps = folder.checkpoint_steps()
    if (path / MODEL_FILE).exists() or not steps:
        return []
    used, newest = find(path), folder.checkpoint(steps[-1])
    if used == newest or saved_state.is_scored(newest):
        return []
    return [
        f"note: {used.name} is used, the best that was scored; {newest.name} is newer and was not scored"
        f"\n  to use that: {newest}"
    ]


def _linked(path: Path) -> Path:
    """What `best` names now: a run that goes on may have it name another checkpoint at any moment."""
    return path.parent / path.readlink() if path.is_symlink() else path


def find_several(path: Path, count: int, which: Literal["last", "best"]) -> list[Path]:
    """The newest or the best `count` checkpoints of a run, to be averaged."""
    folder = RunFolder(path)
    steps = folder.checkpoint_steps()
    if which == "best" and steps:
        steps = _worst_to_best(folder.checkpoint(steps[-1]), steps)
    if len(steps) < count:
        raise UsageError(
            f"has {len(steps)} such checkpoints, {count} are to be averaged",
            path=path,
            hint=f"a lower --average; checkpoint.keep_{which} decides how many a run keeps",
        )
    return [folder.checkpoint(step) for step in steps[-count:]]


def _worst_to_best(newest: Path, steps: Sequence[int]) -> list[int]:
    """Steps that were evaluated, by the run's metric; the newest checkpoint knows all evaluations."""
    saved_state.verify_only(newest, {STATE_FILE, "config.toml"})
    history = saved_state.saved_state(newest).history
    metric = own_settings(newest).evaluate.metric
    scored = {evaluation.step: evaluation.goodness(metric) for evaluation in history}
    return sorted((step for step in steps if step in scored), key=lambda step: scored[step])


def load(paths: Sequence[Path], device: torch.device) -> LoadedModel:
    """A model in evaluation mode; the mean of several."""
    folders = [_verified(path) for path in paths]
    settings = own_settings(folders[0])
    tokenizer = Tokenizer.load(folders[0] / VOCABULARY_FILE, CheckpointError)
    model = _without_weights(folders, settings.model, len(tokenizer))
    model.to_empty(device=torch.device("cpu")).load_state_dict(_mean(folders))
    return LoadedModel(model.to(device).eval(), tokenizer, settings)


def load_weights(
    model: Path, average: int = 1, of: Literal["last", "best"] = "last"
) -> tuple[LoadedModel, tuple[str, str] | None]:
    """A model that we trained, on the CPU; and its languages, if its run is there to tell."""
    if (model / "config.json").is_file():
        raise UsageError(
            "a folder in the format of Hugging Face's transformers, which is not run here",
            path=model,
            hint="the run that it was made from, or what ct2-transformers-converter makes of it",
        )
    paths = find_several(model, average, of) if average > 1 else [model]
    for note in note_on_newer(model) if average == 1 else ():
        terminal.warn(note)
    return load(paths, torch.device("cpu")), _languages(find(paths[0]))


def _languages(folder: Path) -> tuple[str, str] | None:
    """Of the run that a checkpoint stands in."""
    facts = provenance.load(RunFolder(folder.resolve().parent.parent).provenance)
    source, target = facts.get("source_language"), facts.get("target_language")
    return (str(source), str(target)) if source and target else None


def own_settings(folder: Path) -> Training:
    """Of the run that a checkpoint is from."""
    try:
        return config.load(Training, folder / "config.toml")
    except ConfigError as error:  # not one that the user wrote
        raise CheckpointError(error.what, path=error.path, line=error.line) from None


def _verified(path: Path) -> Path:
    """The folder with the weights, sound: nothing in it is used before."""
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
    """The model that a config describes, if the folders hold its weights: takes no memory for them."""
    path, held = folders[0] / "config.toml", [saved_state.weight_shapes(folder) for folder in folders]
    layers = measures.encoder_layers + measures.decoder_layers
    if layers > len(held[0]):  # else it may take minutes to make them
        raise CheckpointError(f"{layers:,} layers, but {MODEL_FILE} has {len(held[0]):,} tensors", path=path)
    with reading(path, CheckpointError), torch.device("meta"):
        model = Transformer(measures, vocabulary)
    for folder, found in zip(folders, held, strict=True):
        saved_state.check_shapes(folder / MODEL_FILE, found, saved_state.shapes(model.state_dict()))
    return model


def check_fits(path: Path, wanted: Model, tokenizer: Tokenizer) -> None:
    """Can these weights begin a run of this shape, with this vocabulary?"""
    folder = _verified(path)
    other = Tokenizer.load(folder / VOCABULARY_FILE, CheckpointError)
    if other.sha256 != tokenizer.sha256:
        raise DataError(
            f"its vocabulary ({len(other):,} pieces) is not that of the data set ({len(tokenizer):,} pieces)",
            path=folder,
            hint=f"prepare the data with --vocab {folder / VOCABULARY_FILE}",
        )
    own = own_settings(folder).model
    rates = {"dropout", "attention_dropout", "feedforward_dropout"}  # no weight depends on them
    shapes = dict(config.flat(own)), dict(config.flat(wanted))
    differing = [key for key in shapes[0] if key not in rates and shapes[0][key] != shapes[1][key]]
    if differing:
        what = ", ".join(f"model.{key} is {shapes[0][key]} there, {shapes[1][key]} here" for key in differing)
        raise DataError(f"its shape differs: {what}", path=folder, hint="take over its [model] section")
