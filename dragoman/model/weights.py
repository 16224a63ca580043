"""Tensors as a safetensors file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

_REFUSAL = re.compile(r"os error (\d+)")  # as Rust words it


def save(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Writes the file with the mode that the umask leaves: safetensors alone makes it 0600.

    What the system refuses, such as room on a full disk, is an OSError that names the file.
    """
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(dict(tensors), path, metadata)
    except SafetensorError as error:
        if not (refusal := _REFUSAL.search(str(error))):
            raise
        number = int(refusal[1])
        raise OSError(number, os.strerror(number), str(path)) from None
    path.chmod(mode)
