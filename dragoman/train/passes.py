"""Microbatches that a rank computes together. A GPU is at its best when its memory is nearly full.

A pass is a forward and a backward. Computing several microbatches in one changes neither the step nor its
pairs: only the masks of dropout, which are drawn per pass, and the order in which gradients are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

_FILLED = 0.85  # of free memory: longer sentences, fragments, and the search of an evaluation need some


def together(microbatches: Sequence[int], tokens: Sequence[int], most_tokens: int) -> list[list[int]]:
    """Neighbouring microbatches grouped into passes of at most this many tokens; 0: each is a pass.

    `tokens` are those of all the step's microbatches.
    """
    passes: list[list[int]] = []
    held = 0
    for microbatch in microbatches:
        held += tokens[microbatch]
        if not passes or held > most_tokens:
            passes.append([])
            held = tokens[microbatch]
        passes[-1].append(microbatch)
    return passes


def tokens_that_fit(device: torch.device, later_bytes: float, compute: Callable[[], int]) -> int:
    """How many tokens a pass may hold, by the memory that `compute` needs for the tokens it returns.

    `later_bytes` will be needed for other things. The estimate is careful: it takes all memory as
    growing with the tokens.
    """
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    tokens = compute()
    needed = torch.cuda.max_memory_allocated(device) - before
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return max(0, int((_FILLED * (free + unused) - later_bytes) / needed * tokens))
