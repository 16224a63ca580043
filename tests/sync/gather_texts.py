"""A rank that tells every other a text of its own: `python -m tests.sync.gather_texts`."""

import json

from dragoman.sync import world as worlds

TEXTS = ["", "é" * 1_000, "ab"]

if __name__ == "__main__":
    with worlds.join(60) as world:
        print(json.dumps(world.gather_text(TEXTS[world.rank])))
