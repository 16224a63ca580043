"""Writes a folder that CTranslate2 can load, with the vocabulary beside the weights."""

from __future__ import annotations

from pathlib import Path

import ctranslate2
import numpy as np
import sentencepiece
from ctranslate2.specs import TransformerSpec
from torch import Tensor, nn

from dragoman.data.store import VOCABULARY_FILE
from dragoman.data.tokens import BOS, EOS, UNK, Tokenizer
from dragoman.model import Transformer
from dragoman.model.attention import CrossAttention, SelfAttention
from dragoman.model.transformer import Block, DecoderLayer


def write(
    folder: Path,
    model: Transformer,
    tokenizer: Tokenizer,
    precision: str = "float32",
    languages: tuple[str, str] | None = None,
) -> None:
    """Fill an existing folder; a precision below float32 also makes the file smaller."""
    spec = _spec(model)
    pieces = _pieces(tokenizer)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = (pieces[i] for i in (BOS, EOS, UNK))
    spec.config.decoder_start_token = pieces[BOS]
    spec.config.add_source_eos = True
    if languages:
        spec.config.add_attribute("source_lang", languages[0])
        spec.config.add_attribute("target_lang", languages[1])
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    spec.save(str(folder))
    (folder / VOCABULARY_FILE).write_bytes(tokenizer.model)


def _pieces(tokenizer: Tokenizer) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    return [processor.id_to_piece(number) for number in range(len(tokenizer))]


def _spec(model: Transformer) -> TransformerSpec:
    """Our model as CTranslate2's specification; it computes the same position signals, so none are stored."""
    config = model.config
    spec = TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers), config.heads, pre_norm=True
    )
    embedding = _array(model.embedding.weight)
    spec.encoder.embeddings[0].weight = embedding
    spec.decoder.embeddings.weight = embedding
    spec.decoder.projection.weight = embedding
    for ours, theirs in ((model.encoder, spec.encoder), (model.decoder, spec.decoder)):
        _set_norm(theirs.layer_norm, ours.norm)
        for layer, layer_spec in zip(ours.layers, theirs.layer, strict=True):
            _set_layer(layer_spec, layer)
    return spec


def _set_layer(spec: ctranslate2.specs.LayerSpec, layer: Block) -> None:
    _set_norm(spec.self_attention.layer_norm, layer.attention_norm)
    _set_attention(spec.self_attention, layer.attention)
    _set_norm(spec.ffn.layer_norm, layer.feedforward_norm)
    _set_linear(spec.ffn.linear_0, layer.feedforward.inner)
    _set_linear(spec.ffn.linear_1, layer.feedforward.outer)
    if isinstance(layer, DecoderLayer):
        _set_norm(spec.attention.layer_norm, layer.cross_attention_norm)
        _set_attention(spec.attention, layer.cross_attention)


def _set_attention(spec: ctranslate2.specs.LayerSpec, attention: SelfAttention | CrossAttention) -> None:
    """Copy the projections; both formats join those with the same input in one weight, in the same order."""
    if isinstance(attention, SelfAttention):
        linears = [attention.query_key_value, attention.output]
    else:
        linears = [attention.query, attention.key_value, attention.output]
    for linear_spec, linear in zip(spec.linear, linears, strict=True):
        _set_linear(linear_spec, linear)


def _set_linear(spec: ctranslate2.specs.LayerSpec, linear: nn.Linear) -> None:
    spec.weight = _array(linear.weight)
    if linear.bias is not None:
        spec.bias = _array(linear.bias)


def _set_norm(spec: ctranslate2.specs.LayerSpec, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(weight: Tensor) -> np.ndarray:
    return weight.detach().cpu().float().numpy()
