"""Muon: matrices of layers move along orthogonal directions, everything else as with AdamW."""

import pytest
import torch
from torch import Tensor

from dragoman.config import Model, Train
from dragoman.model import Transformer
from dragoman.train import optimizer
from dragoman.train.muon import orthogonal

WIDTH, RATE = 32, 0.01


def built(name: str, weight_decay: float = 0.0) -> tuple[Transformer, torch.optim.Optimizer]:
    """A model with a gradient, and its optimizer."""
    torch.manual_seed(1)
    shape = {"width": WIDTH, "heads": 4, "encoder_layers": 1, "decoder_layers": 1, "feedforward": 2 * WIDTH}
    model = Transformer(Model(**shape), 100)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    made = optimizer.build(model, Train(optimizer=name, weight_decay=weight_decay))
    optimizer.set_learning_rate(made, RATE)
    return model, made


def changes(name: str, weight_decay: float = 0.0) -> dict[str, Tensor]:
    """What one step does to each parameter."""
    model, made = built(name, weight_decay)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    made.step()
    return {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 16, 48), (2, 48, 16)])
def test_singular_values_end_near_one(shape: tuple[int, ...]) -> None:
    left, values, right = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    uneven = left @ torch.diag_embed(values.clamp_min(0.05 * values.amax())) @ right
    found = torch.linalg.svdvals(orthogonal(uneven))
    assert found.min() > 0.6
    assert found.max() < 1.25


def test_each_projection_of_a_weight_is_a_matrix_of_its_own() -> None:
    name = "encoder.layers.0.attention.query_key_value.weight"
    change, gradient = changes("muon")[name], built("muon")[0].get_parameter(name).grad
    assert gradient is not None
    for projection, direction in zip(change.split(WIDTH), gradient.split(WIDTH), strict=True):
        expected = -RATE * 0.2 * WIDTH**0.5 * orthogonal(direction[None])[0]
        torch.testing.assert_close(projection, expected, rtol=1e-3, atol=1e-6)


def test_an_update_has_a_fifth_of_the_rate_as_root_mean_square() -> None:
    for name, change in changes("muon").items():
        if "embedding" not in name and change.dim() > 1:
            assert change.square().mean().sqrt() == pytest.approx(0.2 * RATE, rel=0.3), name


@pytest.mark.parametrize("weight_decay", [0.0, 5.0])
def test_several_steps_follow_torchs_own_muon(weight_decay: float) -> None:
    model, made = built("muon", weight_decay)
    ours = model.encoder.layers[0].attention.output.weight
    theirs = ours.detach().clone().requires_grad_()
    torchs = torch.optim.Muon([theirs], lr=RATE, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
    before = ours.detach().clone()
    for _ in range(4):
        ours.grad = torch.randn_like(ours)
        theirs.grad = ours.grad.clone()
        made.step(), torchs.step()
    moved = ours.detach() - before
    assert (theirs.detach() - ours.detach()).norm() < 0.02 * moved.norm()  # torch's computes in bf16


def test_embeddings_norms_and_biases_follow_adamw() -> None:
    with_adamw, with_muon = changes("adamw", 0.1), changes("muon", 0.1)
    alike = {name for name in with_adamw if torch.equal(with_adamw[name], with_muon[name])}
    assert alike == {name for name in with_adamw if "embedding" in name or with_adamw[name].dim() == 1}


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_weight_decay_shrinks_matrices_and_nothing_else(name: str) -> None:
    weights = dict(built(name)[0].named_parameters())
    plain, decayed = changes(name), changes(name, 2.0)
    for key, weight in weights.items():
        shrunk = 2.0 * RATE * weight.detach() if weight.dim() > 1 else torch.zeros_like(weight)
        torch.testing.assert_close(plain[key] - decayed[key], shrunk, rtol=1e-3, atol=1e-6)


def test_a_matrix_has_one_moment_everything_else_two() -> None:
    model, made = built("muon")
    made.step()
    kept = optimizer.state(made, model)
    second = {name.removeprefix("exp_avg_sq.") for name in kept if name.startswith("exp_avg_sq.")}
    assert second == {name for name, p in model.named_parameters() if "embedding" in name or p.dim() == 1}
    assert kept["updates"] == 1
