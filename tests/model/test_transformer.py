import pytest
import torch
from torch import Tensor

from dragoman.config import Model
from dragoman.cost.size import parameters
from dragoman.data.tokens import EOS
from dragoman.errors import ConfigError
from dragoman.model import Transformer
from dragoman.model.transformer import shift_right, sinusoids
from tests.model import reference

VOCABULARY = 40
SMALL = Model(
    width=16,
    heads=4,
    encoder_layers=2,
    decoder_layers=2,
    feedforward=24,
    dropout=0.0,
    attention_dropout=0.0,
    feedforward_dropout=0.0,
)
DROPPING = SMALL.model_copy(update={"dropout": 0.1, "attention_dropout": 0.1, "feedforward_dropout": 0.1})
UNEVEN = ([5, 3, 7, 4], [4, 6, 2, 6])
EVEN = ([5, 5, 5], [4, 4, 4])
MANY = ([9, 8, 10, 7, 11] * 3, [9, 8, 10, 6, 10] * 3)  # 135 and 129 rows, which are rounded to 136 and 136


def build(config: Model = SMALL, seed: int = 1) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(config, VOCABULARY)


def sentences(lengths: list[int], seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(3, VOCABULARY, (length,), generator=generator) for length in lengths]
    for row in rows:
        row[-1] = EOS
    return rows


def loss(model: Transformer, sources: list[Tensor], targets: list[Tensor], smoothing: float = 0.1) -> Tensor:
    source_lengths, target_lengths = (torch.tensor([len(s) for s in side]) for side in (sources, targets))
    return model(torch.cat(sources), source_lengths, torch.cat(targets), target_lengths, smoothing)


@pytest.mark.parametrize(
    ("config", "vocabulary", "expected"),
    [
        (Model(), 32_768, 60_880_896),
        (SMALL, VOCABULARY, None),
        (Model(decoder_layers=2, feedforward=8), 50, None),
    ],
)
def test_parameter_count_is_exact(config: Model, vocabulary: int, expected: int | None) -> None:
    with torch.device("meta"):
        model = Transformer(config, vocabulary)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == parameters(config, vocabulary)
    assert expected in (None, count)


def test_every_parameter_is_initialised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "empty_like", lambda like, **how: torch.full(like.shape, torch.nan))
    assert all(parameter.isfinite().all() for parameter in Transformer(SMALL, VOCABULARY).parameters())


@pytest.mark.parametrize("lengths", [UNEVEN, EVEN, MANY], ids=["uneven", "even", "with spare rows"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_packed_model_equals_a_padded_one_in_loss_and_gradients(
    lengths: tuple[list[int], list[int]], smoothing: float
) -> None:
    model = build()
    sources, targets = sentences(lengths[0], 1), sentences(lengths[1], 2)
    packed = loss(model, sources, targets, smoothing)
    gradients = torch.autograd.grad(packed, list(model.parameters()))
    padded = reference.loss_sum(model, sources, targets, smoothing)
    torch.testing.assert_close(packed, padded)
    for ours, theirs in zip(gradients, torch.autograd.grad(padded, list(model.parameters())), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_attention_with_dropout_equals_the_fused_kernel_when_all_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The written-out attention of training, with its masks replaced by "keep all"."""
    monkeypatch.setattr("dragoman.model.grid.dropout", lambda x, rate: x)
    config = SMALL.model_copy(update={"attention_dropout": 0.1})
    model, fused = build(config), build(SMALL)
    sources, targets = sentences(UNEVEN[0], 1), sentences(UNEVEN[1], 2)
    torch.testing.assert_close(loss(model, sources, targets), loss(fused, sources, targets))


def test_a_pairs_loss_does_not_depend_on_its_company() -> None:
    model = build()
    sources, targets = sentences(UNEVEN[0], 1), sentences(UNEVEN[1], 2)
    alone = [loss(model, [s], [t]) for s, t in zip(sources, targets, strict=True)]
    torch.testing.assert_close(loss(model, sources, targets), torch.stack(alone).sum())
    torch.testing.assert_close(loss(model, sources[::-1], targets[::-1]), torch.stack(alone).sum())
    torch.testing.assert_close(loss(model, sources[1:3], targets[1:3]), alone[1] + alone[2])


def test_later_target_tokens_do_not_change_earlier_rows() -> None:
    model = build(DROPPING)
    sources, targets = sentences([5, 3], 1), sentences([6, 4], 2)
    changed = [targets[0].clone(), targets[1]]
    changed[0][4] = (changed[0][4] + 1) % VOCABULARY  # read by rows 5 on, predicted by row 4
    rows = []

    def keep(module: torch.nn.Module, args: object, output: Tensor) -> None:
        rows.append(output.detach().clone())

    with model.decoder.norm.register_forward_hook(keep):
        for side in (targets, changed):
            torch.manual_seed(3)  # the same dropout
            loss(model, sources, side)
    before, after = rows
    assert torch.equal(before[:5], after[:5])
    assert not torch.equal(before[5], after[5])
    assert torch.equal(before[6:], after[6:])  # the other pair


def test_decoder_reads_bos_and_each_target_without_its_last_token() -> None:
    target, starts = torch.tensor([7, 8, 1, 9, 1]), torch.tensor([0, 3])
    assert shift_right(target, starts).tolist() == [2, 7, 8, 2, 9]


def test_sinusoids_follow_the_formula() -> None:
    torch.testing.assert_close(sinusoids(30, 16), reference.positions(30, 16))
    assert sinusoids(1, 8)[0, 0] == pytest.approx(0.841471)  # sin(1): positions count from 1


def test_a_seed_decides_weights_and_dropout() -> None:
    sources, targets = sentences(UNEVEN[0], 1), sentences(UNEVEN[1], 2)
    losses = []
    for dropout_seed in (5, 5, 6):
        model = build(DROPPING, seed=4)
        torch.manual_seed(dropout_seed)
        losses.append(loss(model, sources, targets).item())
    assert losses[0] == losses[1] != losses[2]


def test_dropout_is_off_in_evaluation_mode() -> None:
    sources, targets = sentences(UNEVEN[0], 1), sentences(UNEVEN[1], 2)
    torch.testing.assert_close(
        loss(build(DROPPING).eval(), sources, targets), loss(build(SMALL), sources, targets)
    )


def test_every_parameter_gets_a_gradient() -> None:
    model = build(DROPPING)
    loss(model, sentences([4], 1), sentences([3], 2)).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_bf16_autocast_stays_near_float32() -> None:
    model = build(DROPPING)
    sources, targets = sentences(UNEVEN[0], 1), sentences(UNEVEN[1], 2)
    torch.manual_seed(3)
    exact = loss(model, sources, targets)
    torch.manual_seed(3)  # the same dropout
    with torch.autocast("cpu", torch.bfloat16):
        rough = loss(model, sources, targets)
    rough.backward()
    torch.testing.assert_close(rough, exact, rtol=0.02, atol=0.0)
    assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())


@pytest.mark.parametrize("width", [18, 9])
def test_a_width_that_does_not_fit_the_heads_is_refused(width: int) -> None:
    with pytest.raises(ConfigError, match="model.width"):
        Transformer(SMALL.model_copy(update={"width": width}), VOCABULARY)
