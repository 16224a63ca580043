"""eole 0.6.4 under a stop-watch. In an environment that has eole:

    python run_eole.py OUT STEPS FEEDFORWARD_DROPOUT CONFIG

eole has one rate for the dropout inside the feed-forward blocks and at their ends; the former is set here.
"""

from __future__ import annotations

import sys
from typing import Any

from eole.bin.main import main as eole
from eole.modules.transformer_mlp import MLP
from eole.utils.loss import LossCompute
from stopwatch import Stopwatch


def count_targets(stopwatch: Stopwatch) -> None:
    forward = LossCompute.forward

    def counted(self: Any, batch: Any, *others: Any, **named: Any) -> Any:
        stopwatch.count(batch["tgt"][:, 1:], self.padding_idx)
        return forward(self, batch, *others, **named)

    LossCompute.forward = counted


def set_feedforward_dropout(rate: float) -> None:
    build = MLP.__init__

    def built(self: Any, *given: Any, **named: Any) -> None:
        build(self, *given, **named)
        self.dropout_1.p = rate

    MLP.__init__ = built


def main() -> None:
    out, steps, rate, config = sys.argv[1:]
    set_feedforward_dropout(float(rate))
    count_targets(Stopwatch(out, int(steps)))
    sys.argv = ["eole", "train", "-c", config]
    eole()


if __name__ == "__main__":
    main()
