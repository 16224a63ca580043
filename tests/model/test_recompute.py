"""train.recompute: layers that are computed again in the backward pass give the same bits, in less memory."""

from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import Tensor

from dragoman.config import Model
from dragoman.model import Transformer
from tests.model.test_transformer import DROPPING, UNEVEN, VOCABULARY, loss, sentences

DEEP = DROPPING.model_copy(update={"encoder_layers": 8, "decoder_layers": 8})


def build(recompute: bool, config: Model = DROPPING) -> Transformer:
    torch.manual_seed(1)
    return Transformer(config, VOCABULARY, recompute)


def computed(model: Transformer, context: AbstractContextManager[object]) -> list[Tensor]:
    """Loss and gradients of two microbatches that add up, and the random state afterwards."""
    losses = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        with context:
            losses.append(loss(model, sentences(UNEVEN[0], seed), sentences(UNEVEN[1], seed)))
        losses[-1].backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    return [*losses, *(gradient for gradient in gradients if gradient is not None), torch.get_rng_state()]


@pytest.mark.parametrize("precision", [None, torch.bfloat16, torch.float16], ids=str)
def test_loss_gradients_and_random_state_are_the_same_bit_for_bit(precision: torch.dtype | None) -> None:
    def context() -> AbstractContextManager[object]:
        return torch.autocast("cpu", precision) if precision else nullcontext()

    kept, again = computed(build(False), context()), computed(build(True), context())
    assert len(kept) == 2 + len(list(build(False).parameters())) + 1
    assert all(torch.equal(one, other) for one, other in zip(kept, again, strict=True))


def test_evaluation_computes_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.model.transformer.checkpoint", None)
    model = build(True).eval()
    with torch.no_grad():
        loss(model, sentences([4], 1), sentences([3], 2))


def test_autograd_keeps_what_one_layer_needs_and_not_what_all_do() -> None:
    kept = {}
    for recompute in (False, True):
        sizes: list[int] = []

        def note(tensor: Tensor, sizes: list[int] = sizes) -> Tensor:
            sizes.append(tensor.numel() * tensor.element_size())
            return tensor

        model = build(recompute, DEEP)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            loss(model, sentences(UNEVEN[0], 1), sentences(UNEVEN[1], 2))
        kept[recompute] = sum(sizes)
    assert kept[True] < kept[False] / 10
