"""`dragoman export`: a model of ours in another tool's format, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from safetensors import SafetensorError

from dragoman import atomic
from dragoman.engines import load_weights
from dragoman.errors import DragomanError, UsageError
from dragoman.export import contents, fit, huggingface

Target = Literal["ctranslate2", "huggingface"]


def export(
    model: Path,
    to: Target,
    out: Path,
    precision: str = "auto",
    average: int = 1,
    of: Literal["last", "best"] = "last",
) -> dict[str, int]:
    """Writes the folder `out`, which must be free; its files with their bytes. `auto` is float32."""
    out = atomic.destination(out)
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise UsageError("is there already", path=out, hint="another -o, or remove it first")
    if to == "huggingface" and precision not in ("auto", "float32"):
        raise UsageError(f"huggingface gets float32, not {precision}", hint="leave --precision out")
    loaded, languages = load_weights(model, average, of)
    fit.check(loaded.tokenizer, to)
    with _writing(out), atomic.appearing(out) as folder:
        if to == "huggingface":
            huggingface.write(folder, loaded.model, loaded.tokenizer, languages)
        else:
            from dragoman.export import ctranslate2

            ctranslate2.write(
                folder, loaded.model, loaded.tokenizer, precision.replace("auto", "float32"), languages
            )
        contents.describe(folder)
    return {path.name: path.stat().st_size for path in sorted(out.iterdir())}


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """A full disk is said with the place: neither library that writes there names it."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise DragomanError(
            f"could not be written: {getattr(error, 'strerror', None) or error}",
            path=out,
            hint="look at the free space and the permissions of that place",
        ) from error
