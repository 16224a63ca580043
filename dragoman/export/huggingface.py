"""Writes a folder that Hugging Face's `transformers` can load: an M2M100 model and a fast tokenizer.

Like our model, M2M100 is pre-norm with sinusoidal positions that start after the padding id. Its attention
also has biases, which are zeros here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.checkpoint import exportable
from dragoman.data.tokens import BOS, EOS, PAD, UNK, Tokenizer
from dragoman.export import tokenizer_json
from dragoman.model import Transformer, weights
from dragoman.model.transformer import Block, DecoderLayer

_LONGEST = 1024  # tokens; only a hint to users: transformers computes longer position signals as needed
_SPECIAL_IDS = {"pad_token_id": PAD, "eos_token_id": EOS, "bos_token_id": BOS, "decoder_start_token_id": BOS}


def write(
    folder: Path, model: Transformer, tokenizer: Tokenizer, languages: tuple[str, str] | None = None
) -> None:
    """Fill an existing folder."""
    weights.save(dict(_weights(model)), folder / "model.safetensors", {"format": "pt"})
    for name, content in (
        ("config.json", _config(model, len(tokenizer))),
        ("generation_config.json", _generation()),
        ("tokenizer.json", tokenizer_json.build(tokenizer)),
        ("tokenizer_config.json", _tokenizer_config(tokenizer, languages)),
    ):
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _config(model: Transformer, vocabulary: int) -> dict[str, Any]:
    config = model.config
    return {
        "architectures": ["M2M100ForConditionalGeneration"],
        "model_type": "m2m_100",
        "is_encoder_decoder": True,
        "vocab_size": vocabulary,
        "d_model": config.width,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.feedforward,
        "decoder_ffn_dim": config.feedforward,
        "activation_function": "relu",
        "scale_embedding": True,
        "tie_word_embeddings": True,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.feedforward_dropout,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "max_position_embeddings": _LONGEST,
        "torch_dtype": "float32",
        **_SPECIAL_IDS,
    }


def _generation() -> dict[str, Any]:
    return {"num_beams": 4, "length_penalty": 0.6, "max_new_tokens": 256, **_SPECIAL_IDS}


def _tokenizer_config(tokenizer: Tokenizer, languages: tuple[str, str] | None) -> dict[str, Any]:
    pieces = exportable.parse(tokenizer).pieces
    names = {"pad_token": PAD, "eos_token": EOS, "bos_token": BOS, "unk_token": UNK}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": _LONGEST,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # </s> in a text is four characters of that text
        **{name: pieces[number].piece for name, number in names.items()},
        **({"source_lang": languages[0], "target_lang": languages[1]} if languages else {}),
    }


def _weights(model: Transformer) -> Iterator[tuple[str, Tensor]]:
    yield "model.shared.weight", model.embedding.weight.detach().cpu().float().contiguous()
    for name, side in (("encoder", model.encoder), ("decoder", model.decoder)):
        yield from _both(f"model.{name}.layer_norm", side.norm)
        for number, layer in enumerate(side.layers):
            yield from _layer(f"model.{name}.layers.{number}", layer)


def _layer(name: str, layer: Block) -> Iterator[tuple[str, Tensor]]:
    query, key, value = layer.attention.query_key_value.weight.chunk(3)
    yield from _attention(f"{name}.self_attn", query, key, value, layer.attention.output)
    yield from _both(f"{name}.self_attn_layer_norm", layer.attention_norm)
    if isinstance(layer, DecoderLayer):
        cross = layer.cross_attention
        key, value = cross.key_value.weight.chunk(2)
        yield from _attention(f"{name}.encoder_attn", cross.query.weight, key, value, cross.output)
        yield from _both(f"{name}.encoder_attn_layer_norm", layer.cross_attention_norm)
    yield from _both(f"{name}.fc1", layer.feedforward.inner)
    yield from _both(f"{name}.fc2", layer.feedforward.outer)
    yield from _both(f"{name}.final_layer_norm", layer.feedforward_norm)


def _attention(
    name: str, query: Tensor, key: Tensor, value: Tensor, output: nn.Linear
) -> Iterator[tuple[str, Tensor]]:
    for projection, weight in (("q", query), ("k", key), ("v", value), ("out", output.weight)):
        yield f"{name}.{projection}_proj.weight", weight.detach().cpu().float().contiguous()
        yield f"{name}.{projection}_proj.bias", torch.zeros(len(weight))


def _both(name: str, module: nn.Linear | nn.LayerNorm) -> Iterator[tuple[str, Tensor]]:
    yield f"{name}.weight", module.weight.detach().cpu().float().contiguous()
    yield f"{name}.bias", module.bias.detach().cpu().float().contiguous()
