import numpy as np
import pytest
import torch

from dragoman.model.packing import Packing

HEADS, CHANNELS = 2, 3


@pytest.mark.parametrize("lengths", [[3, 1, 2], [2, 2], [4]])
@pytest.mark.parametrize("projections", [1, 3])
def test_heads_of_each_sentence_stand_in_its_slots(lengths: list[int], projections: int) -> None:
    rows = torch.randn(sum(lengths), projections * HEADS * CHANNELS)
    grids = Packing.of(np.array(lengths)).split_heads(rows, projections, HEADS)
    assert len(grids) == projections
    pieces = rows.view(-1, projections, HEADS, CHANNELS)
    starts = np.cumsum([0, *lengths])
    for projection, grid in enumerate(grids):
        assert grid.shape == (len(lengths), HEADS, max(lengths), CHANNELS)
        for sentence, length in enumerate(lengths):
            expected = pieces[starts[sentence] : starts[sentence] + length, projection].transpose(0, 1)
            assert torch.equal(grid[sentence, :, :length], expected)


@pytest.mark.parametrize("lengths", [[3, 1, 2], [2, 2], [4]])
def test_joining_heads_undoes_splitting_them_and_so_do_gradients(lengths: list[int]) -> None:
    packing = Packing.of(np.array(lengths))
    rows = torch.randn(sum(lengths), HEADS * CHANNELS, requires_grad=True)
    (grid,) = packing.split_heads(rows, 1, HEADS)
    again = packing.join_heads(grid)
    assert torch.equal(again, rows)
    again.backward(rows.detach())
    assert torch.equal(rows.grad, rows.detach())


def test_padding_gets_zero_gradient() -> None:
    grid = torch.ones(2, HEADS, 2, CHANNELS, requires_grad=True)
    Packing.of(torch.tensor([2, 1])).join_heads(grid).sum().backward()
    assert grid.grad[:, 0, :, 0].tolist() == grid.grad[:, 1, :, 2].tolist() == [[1, 1], [1, 0]]


def test_positions_and_mask_follow_the_lengths() -> None:
    packing = Packing.of(np.array([3, 1]))
    assert packing.positions_N.tolist() == [0, 1, 2, 0]
    assert packing.starts_B.tolist() == [0, 3]
    assert packing.mask_B11L[:, 0, 0].tolist() == [[0, 0, 0], [0, -np.inf, -np.inf]]


def test_equal_lengths_need_no_mask() -> None:
    assert Packing.of(np.array([2, 2])).mask_B11L is None
