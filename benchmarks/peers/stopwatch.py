"""A peer's steps: when each ended and how many target tokens it held, a JSON line each.

Runs in the peer's own environment, where dragoman is not installed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


class Stopwatch:
    """Ends the process after so many steps: no validation, no checkpoint."""

    def __init__(self, path: str, steps: int):
        torch.set_num_threads(1)
        self._file = open(path, "w")  # noqa: SIM115  for as long as the process lives
        self._steps_left = steps
        self._tokens = self._slots = 0
        register_optimizer_step_post_hook(self._step_ended)

    def count(self, target: torch.Tensor, pad: int) -> None:
        """The targets of a microbatch as the loss gets them, padding and all."""
        self._tokens += int((target != pad).sum())
        self._slots += target.numel()

    def _step_ended(self, *_: Any) -> None:
        step = {"ended": time.time(), "target_tokens": self._tokens, "target_slots": self._slots}
        print(json.dumps(step), file=self._file, flush=True)
        self._tokens = self._slots = 0
        self._steps_left -= 1
        if not self._steps_left:
            sys.stdout.flush()
            os._exit(0)
