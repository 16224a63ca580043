"""Code whose cost is known, on the pretended GPU: what the counts must say. Run by test_counting.py."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dragoman.model.packing import on_device
from tests.fake_cuda import card

WAITING: dict[str, Callable[[Tensor], object]] = {
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x[0, 0]),
    "truth": lambda x: bool(x.sum() > 0),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "copy into memory of the host": lambda x: torch.empty(4, 4).copy_(x),
    "memory that is not pinned": lambda x: torch.zeros(3).to(x.device),
    "not pinned, although it need not block": lambda x: torch.zeros(3).to(x.device, non_blocking=True),
    "pinned, but blocking": lambda x: torch.zeros(3).pin_memory().to(x.device),
    "a list": lambda x: torch.tensor([1.0, 2.0], device=x.device),
    "index on the host": lambda x: x[torch.tensor([0, 1])],
    "event": lambda x: torch.cuda.Event().synchronize(),
    "synchronize": lambda x: torch.cuda.synchronize(),
}
FREE: dict[str, Callable[[Tensor], object]] = {
    "pinned upload": lambda x: on_device(np.zeros(3), x.device),
    "views": lambda x: x.t()[1:].unsqueeze(0).expand(2, 3, 4).detach(),
    "room": lambda x: torch.empty_like(x),
}


def main() -> None:
    found: dict[str, object] = {"waits": {}, "free": {}}
    with card.pretended() as counts:
        x = torch.ones(4, 4, device=card.DEVICE)
        for kind, cases in (("waits", WAITING), ("free", FREE)):
            for name, case in cases.items():
                counts.clear()
                case(x)
                found[kind][name] = [counts.waits.total(), counts.launches]  # type: ignore[index]
        counts.clear()
        x.half().float().add_(1).matmul(x)
        torch._foreach_mul_([x, x], 2.0)
        found["operators"], found["casts"] = dict(counts.operators), counts.casts
        weight = torch.ones(4, 4, device=card.DEVICE, requires_grad=True)
        counts.clear()
        (weight @ x).sum().backward()
        found["backward"], found["gradient"] = counts.operators["mm"], str(weight.grad.device)  # type: ignore[union-attr]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
