"""Forks for every line of its input: `python -m tests.fake_cuda.server SECONDS`; see `tests.fake_cuda.run`.

A line is a JSON list: a module, its arguments, and the files for what it prints and complains of. The answer
is the exit code. A module may take so many seconds.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys

import torch
import torch._dynamo  # noqa: F401  torch imports it when the first optimizer is made

import tests.fake_cuda.parts  # noqa: F401
from tests.fake_cuda import card


def answer(line: str, seconds: int) -> int:
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    *sys.argv, out, err = json.loads(line)
    for descriptor, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    signal.alarm(seconds)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    sys.exit()


def warm_up() -> None:
    """What the first fake tensors need is imported, too. No backward pass: that would start threads."""
    with card.pretended():
        torch.ones(4, 4, device=card.DEVICE).half().float().add_(1).sum()


if __name__ == "__main__":
    warm_up()
    for given in sys.stdin:
        print(answer(given, int(sys.argv[1])), flush=True)
