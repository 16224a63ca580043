"""fairseq 0.12.2 on Python 3.11 and numpy 2, under a stop-watch. In an environment that has fairseq:

python run_fairseq.py preprocess ...            as fairseq-preprocess
python run_fairseq.py train OUT STEPS ...       as fairseq-train, for so many steps
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from typing import Any

import numpy
from stopwatch import Stopwatch


def make_it_run() -> None:
    """Dataclass instances as defaults must be hashable since Python 3.11; numpy 2 dropped old names."""
    plain = dataclasses.dataclass

    def hashable(cls: Any = None, /, **named: Any) -> Any:
        if cls is None:
            return functools.partial(hashable, **named)
        if "__hash__" not in vars(cls):
            named.setdefault("unsafe_hash", True)
        return plain(cls, **named)

    dataclasses.dataclass = hashable
    for name, kind in (("float", float), ("int", int), ("object", object)):
        setattr(numpy, name, kind)


def count_targets(stopwatch: Stopwatch) -> None:
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion as Loss

    forward = Loss.forward

    def counted(self: Any, model: Any, sample: Any, reduce: bool = True) -> Any:
        stopwatch.count(sample["target"], self.padding_idx)
        return forward(self, model, sample, reduce)

    Loss.forward = counted


def main() -> None:
    make_it_run()
    what, *words = sys.argv[1:]
    if what == "preprocess":
        from fairseq_cli.preprocess import cli_main
    else:
        from fairseq_cli.train import cli_main

        out, steps, *words = words
        count_targets(Stopwatch(out, int(steps)))
    sys.argv = [f"fairseq-{what}", *words]
    cli_main()


if __name__ == "__main__":
    main()
