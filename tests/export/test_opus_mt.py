"""Models in the manner of OPUS-MT, converted by CTranslate2's own converter, run as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from ctranslate2.converters import TransformersConverter
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from dragoman import engines
from dragoman.decode import Options
from tests.decode.models import SENTENCES, vocabulary

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
FILES = ["source.spm", "target.spm", "tokenizer_config.json"]


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian model of Transformers with one SentencePiece model for each side."""
    folder = tmp_path_factory.mktemp("marian")
    source, target = vocabulary(100), vocabulary(120)
    (folder / "source.spm").write_bytes(source.model)
    (folder / "target.spm").write_bytes(target.model)
    pieces = dict.fromkeys(
        tokenizer._processor.id_to_piece(number)
        for tokenizer in (source, target)
        for number in range(4, len(tokenizer))
    )
    names = ["</s>", "<unk>", *pieces, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    tokenizer = MarianTokenizer(
        str(folder / "source.spm"),
        str(folder / "target.spm"),
        str(folder / "vocab.json"),
        source_lang="en",
        target_lang="de",
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    sizes = {"d_model": 32, "max_position_embeddings": 128, "vocab_size": len(names)}
    layers = {f"{side}_layers": 2 for side in ("encoder", "decoder")}
    layers |= {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    layers |= {f"{side}_ffn_dim": 48 for side in ("encoder", "decoder")}
    ids = {"pad_token_id": len(names) - 1, "decoder_start_token_id": len(names) - 1, "eos_token_id": 0}
    model = MarianMTModel(MarianConfig(**sizes, **layers, **ids, forced_eos_token_id=None)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "embed_positions" not in name:
                weight.copy_(torch.randn_like(weight) * 0.5)
        # As in OPUS-MT: decoding starts from zeros under the name of padding, which is never said.
        model.get_input_embeddings().weight[-1] = 0
        model.final_logits_bias[0, -1] = -1e9
    model.save_pretrained(folder)
    return folder


def test_a_converted_folder_translates_as_the_model_it_was_made_from(marian: Path, tmp_path: Path) -> None:
    converted = tmp_path / "ct2"
    TransformersConverter(str(marian), copy_files=FILES).convert(str(converted))
    engine = engines.load(converted, precision="float32", threads=1)
    assert engine.languages == ("en", "de")
    found = engine.translate(SENTENCES, Options(beam=1, max_length=20))
    tokenizer, model = MarianTokenizer.from_pretrained(marian), MarianMTModel.from_pretrained(marian)
    assert len({ours[0].text for ours in found}) > 5  # or equality says little
    for text, ours in zip(SENTENCES, found, strict=True):
        with torch.no_grad():
            tokens = model.generate(**tokenizer(text, return_tensors="pt"), num_beams=1, max_new_tokens=20)
        theirs = tokenizer.decode(tokens[0], skip_special_tokens=True)
        assert ours[0].text.replace(" ⁇ ", "").split() == theirs.split()
