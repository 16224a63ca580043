"""Writes tensors to a safetensors file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

_SYSTEM_ERROR = re.compile(r"os error (\d+)")  # Rust's wording


def save(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Writes the file with the mode that the umask leaves; safetensors by itself would make it 0600.

    A system error, such as a full disk, becomes an OSError that names the file.
    """
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(dict(tensors), path, metadata)
    except SafetensorError as error:
        if not (match := _SYSTEM_ERROR.search(str(error))):
            raise
        number = int(match[1])
        raise OSError(number, os.strerror(number), str(path)) from None
    path.chmod(mode)
