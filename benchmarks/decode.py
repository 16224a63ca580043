"""Measures how fast sentences are translated, and whether both engines give the same translations.

    DRAGOMAN_DATA=FOLDER python benchmarks/decode.py [--trained RUN]

FOLDER/multi30k holds Multi30k as train.en.gz and so on; the sentences are its 2016 test set.

- Speed: Transformer-base with 32,768 pieces, beam 4, on 1 core and on all. Three methods take turns in one
  run: our search, CTranslate2 through us, and CTranslate2 called directly with the same settings, text to
  text. The weights are random and never end a sentence, so each translation is cut after 15 tokens, the mean
  length of the German references. Figures are medians over the rounds; ratios are taken within a round.
- Agreement: a small model trained on Multi30k (RUN; without it one is trained first, which takes minutes).
  Greedy translations of 1,000 sentences by both engines in float32, and BLEU with beam 4; int8 for
  comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

HERE = Path(__file__).parent
ROUNDS = 10  # many short ones, because the speed of a shared machine changes from minute to minute
SPEED_SENTENCES = 125  # every eighth of the test set
AGREEMENT_SENTENCES = 1_000
TOKENS = 15
BATCH = 32
TRAINING_STEPS = 900
GOAL_RATIO, GOAL_SAME, GOAL_BLEU = 0.95, 0.995, 0.1


def text(name: str) -> list[str]:
    from dragoman.data import files

    path = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k" / f"{name}.gz"
    return [line.decode() for line in islice(files.lines(path), AGREEMENT_SENTENCES)]


# --- speed ------------------------------------------------------------------------------------------------

Translate = Callable[[Sequence[str]], list[str]]


def methods(folder: Path, cores: int) -> dict[str, Translate]:
    """The methods to time, by name."""
    import torch

    from dragoman.config import Model, VocabularySettings
    from dragoman.data.tokens import learn
    from dragoman.decode import Options
    from dragoman.decode.ctranslate2_engine import CTranslate2Engine
    from dragoman.decode.torch_engine import TorchEngine
    from dragoman.export import ctranslate2 as export
    from dragoman.model import Transformer

    tokenizer = learn(training_text(), VocabularySettings(size=32_768))
    torch.set_num_threads(cores)
    torch.manual_seed(1)
    model = Transformer(Model(), len(tokenizer))
    export.write(folder, model, tokenizer)
    options = Options(max_length=TOKENS)

    def through_us(engine: TorchEngine | CTranslate2Engine) -> Translate:
        return lambda texts: [translations[0].text for translations in engine.translate(texts, options)]

    timed: dict[str, Translate] = {"torch float32": through_us(TorchEngine(model, tokenizer))}
    for precision in ("float32", "int8"):
        timed[f"through us {precision}"] = through_us(CTranslate2Engine(folder, precision, cores))
        timed[f"directly {precision}"] = directly(folder, precision, cores)
    return timed


def directly(folder: Path, precision: str, cores: int) -> Translate:
    """CTranslate2 as its documentation shows it: pieces, translate_batch, pieces to text."""
    import ctranslate2
    import sentencepiece

    translator = ctranslate2.Translator(
        str(folder), compute_type=precision, inter_threads=cores, intra_threads=1
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocabulary.model"))

    def translate(texts: Sequence[str]) -> list[str]:
        results = translator.translate_batch(
            pieces.encode(list(texts), out_type=str),
            beam_size=4,
            length_penalty=0.6,
            max_batch_size=BATCH,
            max_decoding_length=TOKENS,
        )
        return pieces.decode([result.hypotheses[0] for result in results])

    return translate


def training_text() -> list[str]:
    from dragoman.data import files

    folder = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
    return [line.decode() for side in ("en", "de") for line in files.lines(folder / f"train.{side}.gz")]


def measure_speed(cores: int) -> dict[str, list[float]]:
    """Sentences per second of each method, round by round; every method is warmed up first."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    sentences = text("test_2016_flickr.en")[:: AGREEMENT_SENTENCES // SPEED_SENTENCES]
    speeds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        timed = methods(Path(folder), cores)
        for translate in timed.values():
            translate(sentences[:BATCH])
        for number in range(ROUNDS):
            # The order alternates, so that no method always follows the same one.
            for name in list(timed)[:: 1 if number % 2 else -1]:
                translate = timed[name]
                began = time.perf_counter()
                assert len(translate(sentences)) == len(sentences)
                speeds.setdefault(name, []).append(len(sentences) / (time.perf_counter() - began))
    return speeds


def speed(cores: int) -> bool:
    """Measure in a separate process, because threads use the cores they see when they start."""
    command = [sys.executable, __file__, "--cores", str(cores)]
    speeds = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(
        f"\n{cores} core{'s' if cores > 1 else ''}: sentences per second (base, beam 4, {TOKENS} tokens each)"
    )
    for name, rounds in speeds.items():
        print(f"  {statistics.median(rounds):7.2f}  {name}  ({min(rounds):.2f} to {max(rounds):.2f})")
    reached = []
    for precision in ("float32", "int8"):
        pairs = zip(speeds[f"through us {precision}"], speeds[f"directly {precision}"], strict=True)
        ratios = [ours / theirs for ours, theirs in pairs]
        print(f"  speed through us over directly, {precision}: {statistics.median(ratios):.3f}", flush=True)
        reached.append(statistics.median(ratios) >= GOAL_RATIO)
    return all(reached)


# --- agreement --------------------------------------------------------------------------------------------


def train(folder: Path) -> Path:
    """Train a small model that translates well enough to compare."""
    data = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
    dragoman = [sys.executable, "-m", "dragoman"]
    files = [f"{side}={data / f'train.{side}.gz'}" for side in ("en", "de")]
    dev = [word for side in ("en", "de") for word in ("--dev", f"{side}={data / f'val.{side}.gz'}")]
    size = ["--set", "vocabulary.size=8000"]
    subprocess.run([*dragoman, "prepare", *files, *dev, *size, "-o", str(folder / "data")], check=True)
    settings = [
        f"train.steps={TRAINING_STEPS}",
        "train.warmup_steps=300",
        "train.rate=0.004",
        "model.dropout=0.1",
        f"evaluate.every={TRAINING_STEPS}",
        "evaluate.beam=1",
    ]
    words = ["train", str(HERE.parent / "configs" / "transformer-tiny.toml"), "--data", str(folder / "data")]
    words += ["--run", str(folder / "run"), *(word for setting in settings for word in ("--set", setting))]
    subprocess.run([*dragoman, *words, "--workers", str(len(os.sched_getaffinity(0)))], check=True)
    return folder / "run"


def agreement(run: Path) -> bool:
    from dragoman import engines
    from dragoman.decode import Options
    from dragoman.measure.quality import bleu

    sources, references = text("test_2016_flickr.en"), text("test_2016_flickr.de")
    results: dict[tuple[str, int], list[str]] = {}
    for name, engine, precision in (
        ("torch float32", "torch", "float32"),
        ("ctranslate2 float32", "ctranslate2", "float32"),
        ("ctranslate2 int8", "ctranslate2", "int8"),
    ):
        loaded = engines.load(run, engine, precision)  # type: ignore[arg-type]
        for beam in (1, 4):
            translations = loaded.translate(sources, Options(beam=beam))
            results[name, beam] = [best[0].text for best in translations]
    scores = {key: bleu(translations, references) for key, translations in results.items()}
    print(f"\n{len(sources):,} sentences of Multi30k ({scores['torch float32', 4].signature})")
    same = {}
    for (name, beam), score in scores.items():
        pairs = zip(results[name, beam], results["torch float32", beam], strict=True)
        same[name, beam] = sum(ours == theirs for ours, theirs in pairs) / len(sources)
        print(f"  {name}, beam {beam}: BLEU {score.value:.2f}, {100 * same[name, beam]:.1f} % same as torch")
    difference = scores["torch float32", 4].value - scores["ctranslate2 float32", 4].value
    return same["ctranslate2 float32", 1] >= GOAL_SAME and abs(difference) <= GOAL_BLEU


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trained", type=Path, metavar="RUN", help="run of a Multi30k en-de model")
    parser.add_argument("--cores", type=int, help="only measure speed on this many cores, as JSON")
    arguments = parser.parse_args()
    if arguments.cores:
        print(json.dumps(measure_speed(arguments.cores)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        agree = agreement(arguments.trained or train(Path(folder)))
    fast = [speed(cores) for cores in sorted({1, len(os.sched_getaffinity(0))})]
    return 0 if agree and all(fast) else 1


if __name__ == "__main__":
    sys.exit(main())
