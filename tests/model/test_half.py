"""The parts of a layer in 16 bits, which are for GPUs: their arithmetic on a CPU, in float64 and in bf16."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import Model
from dragoman.model import Transformer, half
from dragoman.model.transformer import FeedForward, Norm

DOUBLE = torch.float64
ROWS, WIDTH, INNER, RATE = 7, 6, 11, 0.4


def rows(*, seed: int = 1, width: int = WIDTH, count: int = ROWS) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, width, dtype=DOUBLE, generator=generator, requires_grad=True)


def check_gradients(compute: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> None:
    """Against finite differences, with the same masks of dropout in every call."""

    def seeded(*given: Tensor) -> Tensor | tuple[Tensor, ...]:
        torch.manual_seed(3)
        return compute(*given)

    assert torch.autograd.gradcheck(seeded, inputs)


def a_norm() -> Norm:
    norm = Norm(WIDTH).double()
    for parameter, values in zip(norm.parameters(), rows(seed=2), strict=False):
        parameter.data.copy_(values)
    return norm


def test_a_branch_is_its_input_and_the_layer_norm_of_it() -> None:
    x, norm = rows(), a_norm()
    again, normed = half.branch(x, norm, DOUBLE)
    assert torch.equal(again, x)
    torch.testing.assert_close(normed, norm(x))
    given = (x, norm.weight, norm.bias)
    weights = rows(seed=4).detach()
    for found, expected in ((again + normed * weights, x + norm(x) * weights), (normed, norm(x))):
        torch.testing.assert_close(
            torch.autograd.grad((found * weights).sum(), given, retain_graph=True),
            torch.autograd.grad((expected * weights).sum(), given),
        )


def test_dropped_rows_are_added_and_the_gradient_knows_which() -> None:
    residual, x = rows(), rows(seed=2, count=ROWS)
    torch.manual_seed(3)
    change = (half.add_dropped(residual, x, RATE) - residual).detach()
    kept = change != 0
    assert 0 < kept.sum() < kept.numel()
    torch.testing.assert_close(change[kept], x.detach()[kept] / (1 - RATE))
    check_gradients(lambda *given: half.add_dropped(*given, RATE), residual, x)


def test_half_of_the_elements_are_dropped_at_a_rate_of_a_half() -> None:
    ones = torch.ones(400, 500)
    assert float(half.add_dropped(torch.zeros_like(ones), ones, 0.5).mean()) == pytest.approx(1, abs=0.01)
    block = FeedForward(Model(width=8, heads=1, feedforward=400))
    nn.init.zeros_(block.inner.weight), nn.init.ones_(block.inner.bias)
    nn.init.ones_(block.outer.weight), nn.init.zeros_(block.outer.bias)
    out = half.feedforward(torch.zeros(500, 8), block.inner, block.outer, 0.5, torch.float32)
    assert out.mean().item() == pytest.approx(400, rel=0.01)


@pytest.mark.parametrize("rate", [0.0, RATE])
def test_a_feed_forward_block_has_the_right_gradients(rate: float) -> None:
    inner, outer = nn.Linear(WIDTH, INNER).double(), nn.Linear(INNER, WIDTH).double()

    def compute(x: Tensor, *_: Tensor) -> Tensor:
        return half.feedforward(x, inner, outer, rate, DOUBLE)

    if not rate:
        x = rows()
        torch.testing.assert_close(compute(x), outer(F.relu(inner(x))))
    check_gradients(compute, rows(), *inner.parameters(), *outer.parameters())


def gradient(model: Transformer, dtype: torch.dtype | None) -> dict[str, Tensor]:
    random = np.random.default_rng(0)
    lengths = [random.integers(3, 20, 30) for _ in range(2)]
    tokens = [torch.from_numpy(random.integers(4, 500, each.sum())) for each in lengths]
    model.zero_grad()
    with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
        loss = model(tokens[0], lengths[0], tokens[1], lengths[1], 0.1)
    (loss / len(tokens[1])).backward()
    return {name: weight.grad.double().clone() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bits_cost_about_the_precision_that_autocast_costs(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "feedforward_dropout": 0.0}
    sizes = {"width": 64, "heads": 4, "encoder_layers": 3, "decoder_layers": 3, "feedforward": 256}
    model = Transformer(Model.model_validate(sizes | rates), 500)
    exact, plain = gradient(model, None), gradient(model, dtype)
    calls: list[torch.dtype] = []

    def dtype_for(x: Tensor) -> torch.dtype | None:
        calls.append(dtype)
        return dtype if torch.is_autocast_enabled("cpu") else None

    monkeypatch.setattr(half, "dtype_for", dtype_for)
    ours = gradient(model, dtype)
    assert len(calls) == 3 * 3 + 3 * 4 + 1, "each norm and each feed-forward block asked"

    def error(found: dict[str, Tensor]) -> float:
        return sum(float((found[name] - exact[name]).square().sum()) for name in exact) ** 0.5

    assert 0 < error(ours) < 1.5 * error(plain)
