"""`train.deterministic` on a GPU: no operator of a step is one that torch would refuse."""

from typing import Any

import pytest

from tests.fake_cuda.conftest import Answer

# What raises under torch.use_deterministic_algorithms on CUDA tensors, by its documentation, as far as a text
# model might use it. (Others, such as scatter_add_ and index_add_, have a deterministic variant.)
REFUSED = {
    "cumsum", "cumsum_", "put_", "histc", "bincount", "median", "kthvalue", "scatter_reduce",
    "scatter_reduce_", "nll_loss_forward", "nll_loss2d_forward", "nll_loss2d_backward", "_ctc_loss_backward",
    "_embedding_bag_backward", "_embedding_bag_dense_backward", "grid_sampler_2d_backward",
}  # fmt: skip
ATTENTION = {"bf16": "_flash_attention_backward", "fp16": "_efficient_attention_backward"}


@pytest.fixture(scope="module")
def operators(answer: Answer) -> Any:
    return answer("tests.fake_cuda.deterministic")


def test_a_step_uses_no_operator_that_torch_would_refuse(operators: Any) -> None:
    assert set(operators) == {f"{p} {o}" for p in ("fp32", "bf16", "fp16") for o in ("adam", "muon")}
    for way, used in operators.items():
        assert not REFUSED & set(used), way


def test_the_attention_of_these_steps_has_a_deterministic_backward_pass(operators: Any) -> None:
    """Both kernels ask torch's switch. cuDNN's attention is never used."""
    for precision, kernel in ATTENTION.items():
        used = operators[f"{precision} adam"]
        assert kernel in used
        assert not [name for name in used if "cudnn" in name]
