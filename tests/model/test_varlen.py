"""Attention on rows, by kernels that know where sentences begin: here a plain emulation, and fake tensors."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dragoman.config import Model
from dragoman.model import Transformer, transformer, varlen
from dragoman.model.attention import CrossAttention, SelfAttention
from dragoman.model.packing import Packing
from dragoman.model.varlen import efficient, flash, kernel_for

WIDTH, HEADS = 24, 3
SOURCE, TARGET = np.array([3, 1, 7, 2]), np.array([2, 5, 1, 1])
CUDA = torch.device("cuda", 0)


def by_sentence(
    query: Tensor, key: Tensor, value: Tensor, queries: Packing, keys: Packing, rate: float, causal: bool
) -> Tensor:
    """What a kernel computes, as torch documents its arguments: one sentence after the other."""
    assert rate == 0
    places = (zip(packing.bounds[:-1], packing.bounds[1:], strict=True) for packing in (queries, keys))
    mixed = []
    for (begin, end), (key_begin, key_end) in zip(*places, strict=True):
        assert end - begin <= queries.longest and key_end - key_begin <= keys.longest
        scores = torch.einsum("lhc,shc->hls", query[begin:end], key[key_begin:key_end])
        scores = scores / query.shape[-1] ** 0.5
        if causal:
            allowed = torch.ones(scores.shape[1:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~allowed, -torch.inf)
        mixed.append(torch.einsum("hls,shc->lhc", scores.softmax(-1), value[key_begin:key_end]))
    return torch.cat(mixed)


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(varlen, "kernel_for", lambda device, dtype, channels: by_sentence)
    monkeypatch.setattr(transformer, "rounded_rows", lambda rows, device: rows)
    yield


def gradients(output: Tensor, module: nn.Module, *inputs: Tensor) -> list[Tensor]:
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view(output.shape)
    return [output, *torch.autograd.grad((output * weights).sum(), (*inputs, *module.parameters()))]


def self_attention(causal: bool) -> list[Tensor]:
    torch.manual_seed(1)
    layer = SelfAttention(WIDTH, HEADS, 0.0).double()
    x = torch.randn(SOURCE.sum(), WIDTH, dtype=torch.float64, requires_grad=True)
    return gradients(layer(x, Packing.of(SOURCE), causal), layer, x)


def cross_attention() -> list[Tensor]:
    torch.manual_seed(1)
    layer = CrossAttention(WIDTH, HEADS, 0.0).double()
    x, memory = (
        torch.randn(lengths.sum(), WIDTH, dtype=torch.float64, requires_grad=True)
        for lengths in (TARGET, SOURCE)
    )
    return gradients(layer(x, Packing.of(TARGET), memory, Packing.of(SOURCE)), layer, x, memory)


def losses() -> list[Tensor]:
    torch.manual_seed(1)
    sizes = {"width": WIDTH, "heads": HEADS, "encoder_layers": 2, "decoder_layers": 2, "feedforward": 32}
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "feedforward_dropout": 0.0}
    model = Transformer(Model.model_validate(sizes | rates), 50).double()
    source, target = (torch.randint(4, 50, (lengths.sum(),)) for lengths in (SOURCE, TARGET))
    return gradients(model(source, SOURCE, target, TARGET, 0.1), model)


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_on_rows_equals_that_on_a_grid(causal: bool, request: pytest.FixtureRequest) -> None:
    on_a_grid = self_attention(causal)
    request.getfixturevalue("emulated")
    torch.testing.assert_close(self_attention(causal), on_a_grid, rtol=1e-10, atol=1e-12)


def test_cross_attention_on_rows_equals_that_on_a_grid(request: pytest.FixtureRequest) -> None:
    on_a_grid = cross_attention()
    request.getfixturevalue("emulated")
    torch.testing.assert_close(cross_attention(), on_a_grid, rtol=1e-10, atol=1e-12)


def test_a_model_on_rows_has_the_loss_and_gradients_of_one_on_a_grid(request: pytest.FixtureRequest) -> None:
    on_a_grid = losses()
    request.getfixturevalue("emulated")
    torch.testing.assert_close(losses(), on_a_grid, rtol=1e-5, atol=1e-6)  # the loss itself is in float32


def test_on_rows_nothing_is_padded(emulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a grid was built")

    monkeypatch.setattr(Packing, "split_heads", refuse)
    monkeypatch.setattr(Packing, "join_heads", refuse)
    losses()


@pytest.mark.parametrize(
    "capability, dtype, channels, has_flash, kernel",
    [
        ((9, 0), torch.bfloat16, 64, True, flash),
        ((8, 0), torch.float16, 64, True, flash),
        ((8, 0), torch.bfloat16, 64, False, efficient),
        ((8, 0), torch.float32, 64, True, efficient),
        ((7, 5), torch.float16, 64, True, efficient),
        ((7, 0), torch.float32, 64, True, efficient),
        ((7, 0), torch.bfloat16, 64, True, None),
        ((8, 0), torch.bfloat16, 12, True, None),
        ((8, 0), torch.bfloat16, 256, True, None),
    ],
)
def test_each_card_gets_a_kernel_that_it_has(
    capability: tuple[int, int],
    dtype: torch.dtype,
    channels: int,
    has_flash: bool,
    kernel: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: has_flash)
    assert kernel_for(CUDA, dtype, channels) is kernel


def test_a_cpu_keeps_its_grid() -> None:
    assert kernel_for(torch.device("cpu"), torch.float32, 64) is None
