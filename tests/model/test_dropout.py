from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from dragoman.model.dropout import add_dropped, dropout, relu_dropped

FORMS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "dropout": dropout,
    "add_dropped": lambda x, rate: add_dropped(torch.zeros_like(x), x, rate),
    "relu_dropped": lambda x, rate: relu_dropped(x.clone(), rate),
}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


@forms
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3, 0.5, 0.9])
def test_rate_and_expected_value_are_kept(form: Callable[[Tensor, float], Tensor], rate: float) -> None:
    torch.manual_seed(1)
    out = form(torch.ones(1_000, 203), rate)
    assert (out == 0).float().mean().item() == pytest.approx(rate, abs=1 / 256 + 0.005)
    assert out.mean().item() == pytest.approx(1.0, abs=0.02)
    assert out.unique().numel() == 2


@forms
def test_every_byte_of_a_word_drops_alike(form: Callable[[Tensor, float], Tensor]) -> None:
    torch.manual_seed(1)
    dropped = (form(torch.ones(100_000, 8), 0.1) == 0).float()
    torch.testing.assert_close(dropped.mean(0), torch.full((8,), 13 / 128), rtol=0, atol=0.005)
    correlation = torch.corrcoef(dropped.T) - torch.eye(8)
    assert correlation.abs().max() < 0.02


@forms
def test_seed_repeats_the_mask_and_another_changes_it(form: Callable[[Tensor, float], Tensor]) -> None:
    x = torch.ones(50, 7)
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(form(x, 0.5))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


@forms
def test_gradient_flows_where_values_do(form: Callable[[Tensor, float], Tensor]) -> None:
    x = torch.rand(50, 7).add_(0.1).requires_grad_()
    out = form(x, 0.5)
    out.sum().backward()
    torch.testing.assert_close(x.grad, out.detach() / x.detach())


def test_residual_is_added_whole_and_gets_the_whole_gradient() -> None:
    residual, x = torch.randn(40, 5, requires_grad=True), torch.zeros(40, 5, requires_grad=True)
    out = add_dropped(residual, x, 0.5)
    assert torch.equal(out, residual)
    out.sum().backward()
    assert torch.equal(residual.grad, torch.ones(40, 5))


def test_relu_passes_no_gradient_below_zero() -> None:
    x = torch.full((30,), -1.0, requires_grad=True)
    relu_dropped(x * 1, 0.5).sum().backward()
    assert torch.equal(x.grad, torch.zeros(30))


@forms
def test_rate_zero_changes_nothing(form: Callable[[Tensor, float], Tensor]) -> None:
    x = torch.rand(9, 3)
    assert torch.equal(form(x, 0.0), x)
