"""Many inputs for every entrance; exit code 1 if there are finds."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.fuzz import driver, finds
from tests.fuzz.child import OUTCOMES, Find
from tests.fuzz.driver import Tally
from tests.fuzz.entrances import ENTRANCES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    names = [entrance.name for entrance in ENTRANCES]
    parser.add_argument(
        "--entrance", action="append", choices=names, metavar="NAME", help="several; else all"
    )
    parser.add_argument("--count", type=int, default=1_000, help="inputs for each entrance")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seconds", type=float, help="at most, for each entrance")
    parser.add_argument("--keep", action="store_true", help="the input of each distinct find, as a test")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the folder goes with us
    inputs = range(asked.first, asked.first + asked.count)
    tallies: list[Tally] = []
    with driver.workspace() as folder:
        for entrance in ENTRANCES:
            if asked.entrance and entrance.name not in asked.entrance:
                continue
            for said in driver.run(entrance, inputs, folder, asked.seconds):
                if isinstance(said, Find):
                    print(f"FIND {said}", flush=True)
                    if asked.keep:
                        finds.keep(said)
                else:
                    tallies.append(said)
                    print(f"{_row(said)}", file=sys.stderr, flush=True)
    show(tallies)
    sys.exit(any(tally.finds for tally in tallies))


def _row(tally: Tally) -> str:
    counts = " ".join(f"{count:>9,}" for count in tally.counts.values())
    return f"{tally.name:<34} {tally.inputs:>9,} {counts} {len(tally.finds):>8} {tally.seconds:>8.0f}"


def show(tallies: list[Tally]) -> None:
    outcomes = " ".join(f"{name:>9}" for name in OUTCOMES)
    print(f"{'entrance':<34} {'inputs':>9} {outcomes} distinct  seconds")
    for tally in tallies:
        print(_row(tally))
    whole = Tally("all")
    for tally in tallies:
        for name, count in tally.counts.items():
            whole.counts[name] += count
        whole.finds |= tally.finds
        whole.seconds += tally.seconds
    print(_row(whole))


if __name__ == "__main__":
    main()
