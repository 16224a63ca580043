"""Keeps a translation from repeating itself over and over.

Shape letters: R rows (one per hypothesis), V vocabulary, T tokens so far.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from dragoman.data.tokens import EOS
from dragoman.model.packing import on_device


def forbid_repeats(logits_RV: Tensor, tokens_RT: np.ndarray, size: int) -> None:
    """Rule out, in place, every token that would repeat an earlier sequence of `size` tokens.

    EOS is never ruled out, so there is always a token left.
    """
    length = tokens_RT.shape[1]
    if length < size:
        return
    windows_RWS = sliding_window_view(tokens_RT, size, axis=1)
    newest_R1S = tokens_RT[
        :, None, length - size + 1 :
    ]  # the last size - 1; if size is 1, none, and all match
    is_repeat_RW = (windows_RWS[:, :, :-1] == newest_R1S).all(2) & (windows_RWS[:, :, -1] != EOS)
    rows, places = np.nonzero(is_repeat_RW)
    device = logits_RV.device
    forbidden = on_device(windows_RWS[rows, places, -1], device)
    logits_RV[on_device(rows, device), forbidden] = -torch.inf
