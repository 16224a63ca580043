from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.model.loss import cpu_chunk, cross_entropy_sum, gpu_chunk


def inputs(rows: int = 23, width: int = 8, vocabulary: int = 31) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(rows, width, generator=generator, requires_grad=True)
    weight = torch.randn(vocabulary, width, generator=generator, requires_grad=True)
    return hidden, weight, torch.randint(vocabulary, (rows,), generator=generator)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk_rows", [1, 4, 23, 100])
def test_loss_equals_cross_entropy_on_full_logits(smoothing: float, chunk_rows: int) -> None:
    hidden, weight, target = inputs()
    ours = cross_entropy_sum(hidden, weight, target, smoothing, chunk_rows)
    theirs = F.cross_entropy(hidden @ weight.T, target, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs)
    # A scaled loss, as when it is divided by the step's tokens.
    torch.testing.assert_close(
        torch.autograd.grad(ours / 7, (hidden, weight)), torch.autograd.grad(theirs / 7, (hidden, weight))
    )


@pytest.mark.parametrize("chunk_rows", [4, 21, 100])
def test_rows_without_a_target_do_not_count(chunk_rows: int) -> None:
    hidden, weight, target = inputs()
    with_spare = cross_entropy_sum(hidden, weight, target[:18], 0.1, chunk_rows)
    without = cross_entropy_sum(hidden[:18], weight, target[:18], 0.1, chunk_rows)
    torch.testing.assert_close(with_spare, without)
    torch.testing.assert_close(
        torch.autograd.grad(with_spare, (hidden, weight)), torch.autograd.grad(without, (hidden, weight))
    )


@pytest.mark.parametrize("chunk", [cpu_chunk, gpu_chunk])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("targets", [600, 512])
def test_a_chunk_is_right_to_the_last_digit_of_its_type_on_either_device(
    chunk: Callable[..., tuple[Tensor, Tensor]], dtype: torch.dtype, targets: int
) -> None:
    hidden, weight, target = inputs(600)
    z = (4 * hidden @ weight.T).detach()
    z[torch.arange(0, 600, 2), target[::2]] += 12  # half of them are learnt: p[t] is close to 1
    z, target_T1 = z.to(dtype), target[:targets, None]
    exact = z[:targets].double().requires_grad_()
    # Without the mean over the vocabulary, which is not the chunk's.
    expected = exact.logsumexp(1).sum() - 0.9 * exact.gather(1, target_T1).sum()
    (slope,) = torch.autograd.grad(expected, exact)
    found, grad = chunk(z.clone(), target_T1, 0.1, True)
    assert grad.dtype == dtype
    assert float(found) == pytest.approx(expected.item(), rel=1e-4 if dtype == torch.bfloat16 else 1e-6)
    steps = 64 if dtype == torch.float32 else 1  # a logit's own last digit is that much of its exponential
    rounding = steps * torch.finfo(dtype).eps * (slope.abs() + exact.detach().softmax(1))
    assert ((grad[:targets].double() - slope).abs() <= rounding + torch.finfo(dtype).smallest_normal).all()
    without, _ = chunk(z.clone(), target_T1, 0.1, False)
    assert float(without) == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_hopeless_target_has_a_finite_loss_on_a_gpu(dtype: torch.dtype) -> None:
    z = torch.zeros(1, 31, dtype=dtype)
    z[0, 0] = 200
    loss, _ = gpu_chunk(z, torch.tensor([[1]]), 0.0, True)
    assert loss.isfinite()
    assert float(loss) > 80


def test_large_logits_stay_finite() -> None:
    hidden, weight, target = inputs()
    ours = cross_entropy_sum(hidden * 1e3, weight, target, 0.1)
    theirs = F.cross_entropy(hidden @ weight.T * 1e3, target, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(ours, theirs)


def test_no_gradient_is_computed_where_none_is_wanted() -> None:
    hidden, weight, target = inputs()
    with torch.no_grad():
        without = cross_entropy_sum(hidden, weight, target, 0.1)
    assert not without.requires_grad
    torch.testing.assert_close(without, cross_entropy_sum(hidden, weight, target, 0.1).detach())


def test_a_second_backward_is_an_error_not_a_wrong_gradient() -> None:
    hidden, weight, target = inputs()
    loss = cross_entropy_sum(hidden, weight, target)
    (loss * 2).backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
