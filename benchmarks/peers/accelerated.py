"""Hugging Face accelerate and its MarianMT model, for slow_link_peers.py; started by torchrun on every host.

    accelerated.py TASK CLOCK STEPS [fp16|local]

The loop is the one of accelerate's documentation. fp16: its own hook that halves what is exchanged (its bf16
hook asks for NCCL). local: its LocalSGD, which averages the weights every 16 steps.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import torch
from accelerate import Accelerator, DataLoaderConfiguration, DDPCommunicationHookType
from accelerate.local_sgd import LocalSGD
from accelerate.utils import DistributedDataParallelKwargs
from task import Clock, Task
from torch.utils.data import DataLoader
from transformers import MarianConfig, MarianMTModel

PAD, EOS, BOS = 0, 1, 2
NO_LABEL = -100  # what the loss of transformers leaves out
LOCAL_STEPS = 16

Pair = tuple[list[int], list[int]]


def pairs_of(task: Task) -> list[Pair]:
    source, target = (task.sentences(f"train.{side}") for side in ("source", "target"))
    return [(one + [EOS], other + [EOS]) for one, other in zip(source, target, strict=True)]


def batches(pairs: list[Pair], tokens: int) -> list[list[int]]:
    """Pairs of like length together, each batch with about so many tokens of the target, in any order."""
    order = sorted(range(len(pairs)), key=lambda row: (len(pairs[row][1]), len(pairs[row][0])))
    cut: list[list[int]] = [[]]
    size = 0
    for row in order:
        if size >= tokens:
            cut.append([])
            size = 0
        cut[-1].append(row)
        size += len(pairs[row][1])
    Random(1).shuffle(cut)
    return cut


def padded(rows: list[list[int]], value: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def collated(pairs: list[Pair]) -> dict[str, torch.Tensor]:
    source = padded([one for one, _ in pairs], PAD)
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "labels": padded([other for _, other in pairs], NO_LABEL),
    }


def model_of(task: Task) -> MarianMTModel:
    size = task.model
    return MarianMTModel(
        MarianConfig(
            vocab_size=task.vocabulary,
            d_model=size["width"],
            encoder_layers=size["encoder_layers"],
            decoder_layers=size["decoder_layers"],
            encoder_attention_heads=size["heads"],
            decoder_attention_heads=size["heads"],
            encoder_ffn_dim=size["feedforward"],
            decoder_ffn_dim=size["feedforward"],
            dropout=task.dropout,
            attention_dropout=task.dropout,
            activation_dropout=task.dropout,
            max_position_embeddings=256,
            scale_embedding=True,
            use_cache=False,
            pad_token_id=PAD,
            eos_token_id=EOS,
            bos_token_id=BOS,
            decoder_start_token_id=PAD,
            forced_eos_token_id=EOS,
        )
    )


def main() -> None:
    task, way = Task.load(Path(sys.argv[1])), sys.argv[4:]
    torch.manual_seed(1)
    hook = DDPCommunicationHookType.FP16 if way == ["fp16"] else DDPCommunicationHookType.NO
    accelerator = Accelerator(
        cpu=True,
        dataloader_config=DataLoaderConfiguration(even_batches=False),  # batches of unequal numbers of pairs
        kwargs_handlers=[DistributedDataParallelKwargs(comm_hook=hook)],
    )
    pairs = pairs_of(task)
    model = model_of(task)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    clock = Clock(Path(sys.argv[2]), int(sys.argv[3]), trained)
    optimizer = torch.optim.AdamW(model.parameters(), lr=task.rate)
    loader = DataLoader(pairs, batch_sampler=batches(pairs, task.tokens), collate_fn=collated)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with LocalSGD(accelerator, model, LOCAL_STEPS, enabled=way == ["local"]) as local:
        for batch in loader:
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()
            local.step()
            clock.step(int((batch["labels"] != NO_LABEL).sum()))
            if clock.is_over:
                break
    accelerator.end_training()


if __name__ == "__main__":
    main()
