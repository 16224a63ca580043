"""Logs of runs that never were, line by line as OpenSeq2Seq and its surroundings print them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

HEAD = """\
[a1:00292] WARNING: local probe returned unhandled shell:unknown assuming bash
*** Using horovod
*** Starting training from scratch
*** Training config:
{'batch_size_per_gpu': 256,
 'data_layer': <class 'open_seq2seq.data.text2text.text2text.ParallelTextDataLayer'>,
 'data_layer_params': {'delimiter': ' ',
                       'max_length': 56,
                       'source_file': '/data/train.en',
                       'target_file': '/data/train.de'},
 'decoder_params': {'END_SYMBOL': 1,
                    'filter_size': 2048,
                    'hidden_size': 512,
                    'num_hidden_layers': 6},
 'dtype': 'mixed',
 'encoder_params': {'attention_dropout': 0.1,
                    'encoder_layers': 6,
                    'filter_size': 2048,
                    'hidden_size': 512},
 'eval_steps': 401,
 'lr_policy': <function transformer_policy at 0x7f10f18900d0>,
 'lr_policy_params': {'d_model': 512,
                      'learning_rate': 2.0,
                      'warmup_steps': 8000},
 'max_steps': 5000,
 'num_gpus': 1,
 'print_loss_steps': 100,
 'use_horovod': True}
*** Evaluation config:
{'batch_size_per_gpu': 16,
 'dtype': 'mixed',
 'max_steps': 9}
*** Building graph in Horovod rank: 3
*** Building graph in Horovod rank: 0
*** Trainable variables:
***   ForwardPass/transformer_encoder/layer_0/kernel:0
*** Total trainable parameters: 60880896
2020-06-26 15:36:43.272081: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1432] Found device 0:
name: Tesla V100-PCIE-16GB major: 7 minor: 0 memoryClockRate(GHz): 1.38
"""
NCCL = """\
a1:298:374 [0] NCCL INFO NET : Using interface eth0:10.0.0.1<0>
a1:298:374 [0] NCCL INFO rank 0 nranks 4
a1:299:375 [1] NCCL INFO NET : Using interface eth0:10.0.0.1<0>
a1:299:375 [1] NCCL INFO rank 1 nranks 4
b2:279:352 [1] NCCL INFO NET : Using interface eth0:10.0.0.2<0>
b2:279:352 [1] NCCL INFO rank 3 nranks 4
b2:278:355 [0] NCCL INFO rank 2 nranks 4
"""
EXAMPLE = """\
***     Train Source[0]:     <s> ▁The ▁feeling ▁is ▁mutual . </s>
***     Train Target[0]:     <s> ▁Das ▁beruht ▁auf ▁Gegen seitigkeit . </s>
***     Train Prediction[0]: <s> ▁Die ▁Sie . </s>
"""
EVAL_EXAMPLE = "***     *****EVAL Source[0]:     <s> ▁You ▁have ▁no ▁money ? </s> Error: not one\n"


def evaluation(loss: float, score: float) -> str:
    text = f"*** Running evaluation on a validation set:\n{EVAL_EXAMPLE}"
    return f"{text}***     Validation loss: {loss:.4f} \n***     Eval BLUE score: {score:.4f}\n"


def pace(step: int, seconds: float, loss: float = 3.0) -> str:
    time = f"time per step = 0:00:{seconds:.3f}\n"
    return f"*** Global step {step}: ***     Train loss: {loss:.4f} \n{time}{EXAMPLE}"


def openseq2seq(
    steps: int = 2000,
    seconds: Callable[[int], float] = lambda step: 1.7,
    nccl: str = NCCL,
    head: str = HEAD,
    end: str = "",
) -> str:
    """Evaluations of 20 s at every 401st step, in the interval after it; the first before step 0."""
    parts = [head, nccl, evaluation(9.5, 0.95), pace(0, 0.881, 9.47)]
    for step in range(100, steps + 1, 100):
        due = (step - 1) // 401
        has_evaluation = due > 0 and due * 401 > step - 100
        if has_evaluation:
            parts.append(evaluation(1.5 + 4 / due, 0.3))
        parts.append(pace(step, seconds(step) + 0.2 * has_evaluation, 9 - step / 1000))
    return "".join(parts) + end


def written(folder: Path, text: str | bytes, name: str = "nohup.out", packed: bool = False) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path = folder / name
    path.write_bytes(gzip.compress(data) if packed else data)
    return path
