import numpy as np
import pytest
import torch

from dragoman.model.packing import Packing, on_host

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


def test_spare_rows_are_in_no_sentence_and_get_no_gradient() -> None:
    packing = Packing.of(np.array([3, 1]), rows=6)
    rows = torch.randn(6, 3 * HEADS * CHANNELS, requires_grad=True)
    grids = packing.split_heads(rows, 3, HEADS)
    for grid, alone in zip(grids, Packing.of(np.array([3, 1])).split_heads(rows[:4], 3, HEADS), strict=True):
        assert torch.equal(grid, alone)
    joined = packing.join_heads(sum(grids))
    assert joined.shape == (6, HEADS * CHANNELS)
    joined[:4].sum().backward()
    assert torch.equal(rows.grad[:4], torch.ones(4, 3 * HEADS * CHANNELS))
    assert not rows.grad[4:].any()
    assert packing.fill(torch.tensor([7, 8, 9, 7])).tolist()[:4] == [7, 8, 9, 7]
    assert len(packing.positions_N) == len(packing.fill(torch.zeros(4))) == 6


def test_what_the_host_reads_in_one_go_is_exact() -> None:
    numbers = torch.tensor([[-torch.inf, 1 / 3, 3e38], [torch.nan, -1e-45, 0]])
    indices = torch.tensor([[0, 2**53 - 1, 7], [1, 2, 3]])
    read_numbers, read_indices = on_host(numbers, indices)
    np.testing.assert_array_equal(read_numbers, numbers.numpy())
    np.testing.assert_array_equal(read_indices, indices.numpy())
    assert (read_numbers.dtype, read_indices.dtype) == (np.float32, np.int64)
