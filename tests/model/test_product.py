import pytest
import torch
from torch import Tensor, nn

from dragoman.model import product
from dragoman.model.product import HalfLinear, Linear, add_product_, multiply, rounded_rows

CPU = torch.device("cpu")
LEFT, RIGHT = torch.randn(37, 24), torch.randn(24, 53)


@pytest.mark.parametrize("left", [LEFT, LEFT.t().contiguous().t()], ids=["rows", "columns"])
@pytest.mark.parametrize("right", [RIGHT, RIGHT.t().contiguous().t()], ids=["rows", "columns"])
def test_a_product_is_torchs_whatever_the_layout(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(multiply(left, right), left @ right)
    total = torch.ones(37, 53)
    add_product_(total, left, right)
    torch.testing.assert_close(total, 1 + left @ right)


def test_bf16_products_are_added_up_in_float32() -> None:
    total = torch.ones(37, 53)
    add_product_(total, LEFT.bfloat16(), RIGHT.bfloat16())
    assert total.dtype == torch.float32
    torch.testing.assert_close(total, 1 + LEFT @ RIGHT, rtol=0.05, atol=0.2)


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_and_its_gradients_equal_torchs(bias: bool) -> None:
    ours, theirs = Linear(24, 53, bias=bias), nn.Linear(24, 53, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x, weights = torch.randn(37, 24, requires_grad=True), torch.randn(37, 53)
    outputs = ours(x), theirs(x)
    torch.testing.assert_close(*outputs)
    found = [
        torch.autograd.grad((output * weights).sum(), (x, *layer.parameters()))
        for output, layer in zip(outputs, (ours, theirs), strict=True)
    ]
    torch.testing.assert_close(*found)


@pytest.mark.skipif(not product._HAS_ONEDNN, reason="no oneDNN in this torch, or not an x86 processor")
def test_training_multiplies_by_onednn_and_a_search_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    by_onednn, shapes = product._onednn, []

    def noted(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
        shapes.append((*left.shape, right.shape[1]))
        return by_onednn(left, right, bias)

    monkeypatch.setattr(product, "_onednn", noted)
    layer = Linear(24, 53)
    with torch.no_grad():
        layer(LEFT)
    assert not shapes
    layer(LEFT.clone().requires_grad_()).sum().backward()
    assert shapes == [(37, 24, 53), (37, 53, 24), (53, 37, 24)]


def test_a_linear_layer_in_16_bits_has_torchs_gradients() -> None:
    x, weight = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((7, 5), (3, 5)))
    assert torch.autograd.gradcheck(lambda x, weight: HalfLinear.apply(x, weight, torch.float64), (x, weight))
    rounded = HalfLinear.apply(x.float(), weight.float(), torch.bfloat16)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.double(), x @ weight.t(), rtol=0.05, atol=0.05)
    for gradient in torch.autograd.grad(rounded.sum(), (x, weight)):
        assert gradient.dtype == torch.float64


def test_a_linear_layer_follows_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert Linear(24, 53)(LEFT).dtype == torch.bfloat16


def test_sizes_are_few_and_at_most_a_fifteenth_larger() -> None:
    sizes = [rounded_rows(rows, CPU) for rows in range(1, 5000)]
    assert all(rows <= size <= rows * 16 / 15 for rows, size in enumerate(sizes, start=1))
    assert all(rounded_rows(size, CPU) == size for size in sizes), "a size is its own"
    for least in (100, 777, 1024, 2000):
        assert len({rounded_rows(rows, CPU) for rows in range(least, 2 * least)}) <= 18
