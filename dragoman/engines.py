"""Opens a MODEL as users name it with the engine that suits it; the only module that knows both engines."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import torch

from dragoman import temporary, terminal
from dragoman.checkpoint import saved_model
from dragoman.checkpoint.saved_model import LoadedModel
from dragoman.cost import capability
from dragoman.data.parallel import cores
from dragoman.decode.engine import CTRANSLATE2_FILE, Engine
from dragoman.decode.torch_engine import TorchEngine
from dragoman.errors import UsageError
from dragoman.export import contents
from dragoman.model import kernels

EngineName = Literal["auto", "ctranslate2", "torch"]
Precision = Literal["auto", "int8", "int8_float32", "float32"]
_MOST_THREADS = 256


def load(
    model: Path,
    engine: EngineName = "auto",
    precision: Precision = "auto",
    average: int = 1,
    of: Literal["last", "best"] = "last",
    threads: int | None = None,
) -> Engine:
    """Load a run, its best, a checkpoint or a folder in CTranslate2's format, ready to translate.

    The `auto` engine is CTranslate2 where it is installed. The `auto` precision is the one the folder was
    stored in, float32 for a run: int8 is faster but may cost quality, so the user must choose it. `threads`
    defaults to all cores. If `average` is above 1, that many checkpoints are averaged.
    """
    if threads is not None and not 1 <= threads <= _MOST_THREADS:
        raise UsageError(f"{threads:,} threads, expected 1 to {_MOST_THREADS}")
    contents.verify(model)
    if os.path.lexists(model / CTRANSLATE2_FILE):
        _check_folder_fits(model, engine, average)
        return _open_ctranslate2(model, precision, threads, None, model)
    if engine == "auto":
        engine = "ctranslate2" if find_spec("ctranslate2") else "torch"
    if engine == "torch" and precision not in ("auto", "float32"):
        raise UsageError(
            f"the torch engine computes in float32, not in {precision}", hint="--engine ctranslate2"
        )
    loaded, languages = saved_model.load_weights(model, average, of)
    if engine == "ctranslate2":
        return _converted(loaded, languages, precision, threads, model)
    torch.set_num_threads(threads or cores())
    kernels.avoid_cudnn_attention()
    return TorchEngine(loaded.model.to(_device()), loaded.tokenizer, languages, model)


def _device() -> torch.device:
    """The first GPU if torch has kernels for it, else the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    own = torch.cuda.get_device_capability()
    if capability.has_kernels(own, torch.cuda.get_arch_list()):
        return torch.device("cuda")
    terminal.warn(
        f"note: this torch has no kernels for {torch.cuda.get_device_name()}: translating on the CPU\n"
        f"  to use the GPU: {capability.torch_that_fits(own)}"
    )
    return torch.device("cpu")


def _check_folder_fits(model: Path, engine: EngineName, average: int) -> None:
    if engine == "torch":
        raise UsageError(
            "a folder in CTranslate2's format, which the torch engine cannot run",
            path=model,
            hint="--engine ctranslate2, or the run it was exported from",
        )
    if average > 1:
        raise UsageError(
            "an exported model has no checkpoints to average",
            path=model,
            hint="the run itself, or export it again with --average",
        )


def _converted(
    loaded: LoadedModel,
    languages: tuple[str, str] | None,
    precision: Precision,
    threads: int | None,
    model: Path,
) -> Engine:
    """Open our weights with CTranslate2, through a temporary folder: this takes a second for a base model."""
    from dragoman.export import ctranslate2 as export

    with temporary.folder("dragoman-") as folder:
        export.write(folder, loaded.model, loaded.tokenizer)
        return _open_ctranslate2(folder, precision, threads, languages, model)


def _open_ctranslate2(
    folder: Path,
    precision: Precision,
    threads: int | None,
    languages: tuple[str, str] | None,
    model: Path,
) -> Engine:
    try:
        from dragoman.decode.ctranslate2_engine import CTranslate2Engine
    except ImportError:
        raise UsageError("CTranslate2 is not installed", hint="pip install ctranslate2") from None
    return CTranslate2Engine(folder, precision, threads or cores(), languages, model)
