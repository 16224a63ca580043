"""What fairseq and eole are told so that they train what our config says, on the pieces of our data set.

Each runs in an environment of its own; benchmarks/peers/README.md says how to make them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import sentencepiece

from dragoman.config import Training
from dragoman.data.store import VOCABULARY_FILE, DataSet, Side
from dragoman.data.tokens import BOS, EOS, PAD, UNK

HERE = Path(__file__).resolve().parent
STEP_TOKENS = 4096
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Freed memory is kept and used again, in huge pages.
MEMORY_REUSED = (
    "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"
)


def write_pieces(data: Path, folder: Path) -> None:
    """Pairs as pieces separated by blanks, and the vocabulary in the form that each peer reads."""
    folder.mkdir(parents=True)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(data / VOCABULARY_FILE))
    for name, part in DataSet(data).parts.items():
        for language, side in (("en", part.source), ("de", part.target)):
            with open(folder / f"{name}.{language}", "w", encoding="utf-8") as file:
                file.writelines(" ".join(pieces.id_to_piece(row)) + "\n" for row in _rows(side))
    own = [id for id in range(len(pieces)) if id not in (PAD, EOS, BOS, UNK)]
    for name, separator in (("fairseq.vocabulary", " "), ("eole.vocabulary", "\t")):
        lines = (f"{pieces.id_to_piece(id)}{separator}100\n" for id in own)
        (folder / name).write_text("".join(lines), encoding="utf-8")


def _rows(side: Side) -> Iterator[list[int]]:
    """Without their EOS, which the peers add themselves."""
    offsets = side.offsets.tolist()
    for begin, end in zip(offsets, offsets[1:], strict=False):
        yield side.tokens[begin : end - 1].tolist()


def environment(tunables: str | None) -> dict[str, str]:
    """One thread; the allocator's tunables, or none."""
    kept = {name: value for name, value in os.environ.items() if name not in ("GLIBC_TUNABLES", "PYTHONPATH")}
    wanted = {name: "1" for name in _THREADS} | ({"GLIBC_TUNABLES": tunables} if tunables else {})
    return kept | wanted


def fairseq_preprocess(python: Path, pieces: Path) -> list[str]:
    words = ["--source-lang", "en", "--target-lang", "de", "--trainpref", str(pieces / "train")]
    words += ["--validpref", str(pieces / "dev")]  # it insists on one, though it is told not to validate
    words += ["--srcdict", str(pieces / "fairseq.vocabulary"), "--joined-dictionary"]
    return [
        str(python),
        str(HERE / "run_fairseq.py"),
        "preprocess",
        *words,
        "--destdir",
        str(pieces / "fairseq"),
    ]


def fairseq(python: Path, settings: Training, pieces: Path, out: Path, steps: int) -> list[str]:
    model, train = settings.model, settings.train
    options = {
        "arch": "transformer",
        "optimizer": "adam",
        "adam-betas": f"({train.beta1},{train.beta2})",
        "lr": 1e-4,
        "lr-scheduler": "fixed",
        "clip-norm": train.clip_norm,
        "criterion": "label_smoothed_cross_entropy",
        "label-smoothing": train.label_smoothing,
        "max-tokens": STEP_TOKENS,
        "num-workers": 0,
        "max-update": steps + 1,
        "log-format": "simple",
        "encoder-layers": model.encoder_layers,
        "decoder-layers": model.decoder_layers,
        "dropout": model.dropout,
        "attention-dropout": model.attention_dropout,
        "activation-dropout": model.feedforward_dropout,
    }
    for side in ("encoder", "decoder"):
        options |= {f"{side}-embed-dim": model.width, f"{side}-ffn-embed-dim": model.feedforward}
        options |= {f"{side}-attention-heads": model.heads}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    words += ["--share-all-embeddings", "--cpu", "--no-save", "--disable-validation"]
    words += ["--encoder-normalize-before", "--decoder-normalize-before"]  # as ours and eole
    return [
        str(python),
        str(HERE / "run_fairseq.py"),
        "train",
        str(out),
        str(steps),
        str(pieces / "fairseq"),
        *words,
    ]


def eole(python: Path, settings: Training, pieces: Path, out: Path, steps: int) -> list[str]:
    config = out.with_suffix(".eole.yaml")
    config.write_text(json.dumps(_eole_config(settings, pieces, out.with_suffix(""), steps)))  # JSON is YAML
    rate = str(settings.model.feedforward_dropout)
    return [str(python), str(HERE / "run_eole.py"), str(out), str(steps), rate, str(config)]


def _eole_config(settings: Training, pieces: Path, folder: Path, steps: int) -> dict[str, object]:
    model, train = settings.model, settings.train
    vocabulary = str(pieces / "eole.vocabulary")
    corpus = {"path_src": str(pieces / "train.en"), "path_tgt": str(pieces / "train.de"), "transforms": []}
    return {
        "data": {"corpus_1": corpus},
        "src_vocab": vocabulary,
        "tgt_vocab": vocabulary,
        "share_vocab": True,
        "src_vocab_size": 100_000,  # at most: all of it
        "tgt_vocab_size": 100_000,
        "vocab_size_multiple": 1,
        "overwrite": True,
        "report_every": 10,
        "seed": 1,
        "model": {
            "architecture": "transformer",
            "layers": model.encoder_layers,
            "heads": model.heads,
            "hidden_size": model.width,
            "transformer_ff": model.feedforward,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_ffnbias": True,
            "embeddings": {"word_vec_size": model.width, "position_encoding_type": "SinusoidalInterleaved"},
        },
        "training": {
            "model_path": str(folder),
            "compute_dtype": "fp32",
            "param_init_method": "xavier_uniform",
            "train_steps": steps + 1,
            "valid_steps": 10 * steps,
            "save_checkpoint_steps": 10 * steps,
            "batch_type": "tokens",
            "batch_size": STEP_TOKENS,
            "normalization": "tokens",
            "accum_count": [1],
            "accum_steps": [0],
            "bucket_size": 29_000,  # the whole corpus is sorted by length
            "num_workers": 0,
            "optim": "adam",
            "adam_beta2": train.beta2,
            "learning_rate": 1e-4,
            "decay_method": "none",
            "max_grad_norm": train.clip_norm,
            "label_smoothing": train.label_smoothing,
            "dropout": [model.dropout],
            "attention_dropout": [model.attention_dropout],
            "dropout_steps": [0],
            "world_size": 1,
            "gpu_ranks": [],
        },
    }
