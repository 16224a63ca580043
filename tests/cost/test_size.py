"""cost/size.py: the count of a model that was not built, against one that was."""

from typing import get_args

import pytest

from dragoman.config import Model, Train
from dragoman.cost import size
from dragoman.model import Transformer
from dragoman.train import optimizer

SMALL = Model(width=16, heads=4, encoder_layers=2, decoder_layers=3, feedforward=24)


@pytest.mark.parametrize("config", [SMALL, Model(width=32, heads=2, encoder_layers=1, decoder_layers=1)])
def test_tensors_are_those_of_the_model_in_its_own_order(config: Model) -> None:
    built = [parameter.numel() for parameter in Transformer(config, 50).parameters()]
    assert size.tensors(config, 50) == built
    assert size.parameters(config, 50) == sum(built)


@pytest.mark.parametrize("name", get_args(size.OptimizerName))
def test_moments_are_those_that_the_optimizer_keeps(name: size.OptimizerName) -> None:
    model = Transformer(SMALL, 50)
    kept = optimizer.empty_state(optimizer.build(model, Train.model_validate({"optimizer": name})), model)
    assert (
        size.moments(SMALL, 50, name) == sum(moment.numel() for moment in kept.values()) - 1
    )  # and a counter


def test_the_base_model_has_as_many_parameters_as_the_public_runs() -> None:
    assert size.parameters(Model(), 32_768) == 60_880_896
