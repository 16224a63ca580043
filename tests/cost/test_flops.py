"""cost/flops.py: operations counted against a count by hand."""

import pytest

from dragoman.config import Model
from dragoman.cost import flops


def test_each_weight_costs_two_per_token_it_meets() -> None:
    model = flops.Shape(width=4, encoder_layers=1, decoder_layers=1, feedforward=8)
    encoder = 4 * 16 + 2 * 4 * 8  # q, k, v, output and feed-forward
    decoder = 4 * 16 + 2 * 16 + 2 * 4 * 8 + 10 * 4  # the same, cross q and output, and 10 pieces
    cross_keys_values = 2 * 16
    scores = 4 * 4 * (3 * 3 + 2 * (2 + 3))  # one pair: 3 source tokens, 2 target tokens
    expected = 2 * 3 * (encoder + cross_keys_values) + 2 * 2 * decoder + scores
    assert flops.forward(model, 10, source_tokens=3, target_tokens=2, pairs=1) == expected


def test_backward_costs_twice_the_forward() -> None:
    model = Model()
    forward = flops.forward(model, 32_768, 25_000, 25_000, 900)
    assert flops.step(model, 32_768, 25_000, 25_000, 900) == 3 * forward


def test_recomputing_repeats_the_layers_and_not_the_projection() -> None:
    model, tokens = Model(), (25_000.0, 20_000.0, 900.0)
    projection = 2 * 20_000 * 32_768 * model.width
    once = flops.forward(model, 32_768, *tokens)
    assert flops.recomputed(model, *tokens) == pytest.approx(once - projection)
    assert flops.backward_share(False) == pytest.approx(2 / 3)
    assert flops.backward_share(True) == pytest.approx(3 / 4)


def test_base_model_is_near_six_per_parameter_and_token() -> None:
    # The rule of thumb: half the tokens meet the encoder, half the decoder and the output.
    parameters = 60_880_896
    count = flops.step(Model(), 32_768, 25_000, 25_000, 900)
    assert count == pytest.approx(6 * parameters * 25_000, rel=0.1)


def test_shape_comes_from_settings() -> None:
    settings = {f"model.{name}": value for name, value in Model().model_dump().items()}
    model = flops.Shape.of(settings)
    assert flops.step(model, 100, 10, 10, 1) == flops.step(Model(), 100, 10, 10, 1)
    with pytest.raises(KeyError):
        flops.Shape.of({})


def test_nothing_costs_nothing() -> None:
    assert flops.step(Model(), 32_768, 0, 0, 0) == 0
