"""`dragoman export`: writes our model in another tool's format, completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from dragoman import atomic
from dragoman.checkpoint import exportable
from dragoman.checkpoint.saved_model import load_weights
from dragoman.errors import UsageError
from dragoman.export import contents, huggingface

Target = Literal["ctranslate2", "huggingface"]


def export(
    model: Path,
    to: Target,
    out: Path,
    precision: str = "auto",
    average: int = 1,
    of: Literal["last", "best"] = "last",
) -> dict[str, int]:
    """Write the folder `out`, which must be new or empty; returns each file's bytes. `auto` is float32."""
    out = atomic.destination(out)
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise UsageError("already exists", path=out, hint="another -o, or remove it first")
    if to == "huggingface" and precision not in ("auto", "float32"):
        raise UsageError(f"exports to huggingface are float32, not {precision}", hint="leave out --precision")
    loaded, languages = load_weights(model, average, of)
    exportable.check(loaded.tokenizer, to)
    with atomic.appearing(out) as folder:
        if to == "huggingface":
            huggingface.write(folder, loaded.model, loaded.tokenizer, languages)
        else:
            from dragoman.export import ctranslate2

            ctranslate2.write(
                folder, loaded.model, loaded.tokenizer, precision.replace("auto", "float32"), languages
            )
        contents.describe(folder)
    return {path.name: path.stat().st_size for path in sorted(out.iterdir())}
