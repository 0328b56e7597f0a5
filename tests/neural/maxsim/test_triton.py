"""The fused kernel gives what the plain one gives, forward and backward. Needs a GPU, or Triton's interpreter:

TRITON_INTERPRET=1 pytest tests/test_fused.py
"""

import os

import pytest
import torch

from idiograph.neural.maxsim.padded import fusible, plain_maxsim

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_triton = pytest.mark.skipif(
    not (INTERPRETED or torch.cuda.is_available()), reason="no GPU here, and TRITON_INTERPRET=1 is not set"
)


def texts(sizes: list[int], dim: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    rows = torch.nn.functional.normalize(torch.randn(len(sizes), max(sizes), dim), dim=-1)
    mask = torch.arange(max(sizes))[None] < torch.tensor(sizes)[:, None]
    kind = torch.float32 if INTERPRETED else torch.bfloat16
    return rows.to(DEVICE, kind).requires_grad_(), mask.to(DEVICE)


@needs_triton
@pytest.mark.parametrize("dim", [64, 256, 768])
@pytest.mark.parametrize("mean", [False, True])
def test_scores_and_gradients_are_those_of_the_plain_product(dim: int, mean: bool):
    from idiograph.neural.maxsim.triton import fused_maxsim

    (a, am), (b, bm) = texts([37, 20, 1], dim, 0), texts([70, 64, 3, 65], dim, 1)
    weight = torch.randn(3, 4, device=DEVICE)
    score = fused_maxsim(a, am, b, bm, mean)
    score.backward(weight)
    plain = [x.detach().double().requires_grad_() for x in (a, b)]
    wanted = plain_maxsim(plain[0], am, plain[1], bm, mean)
    wanted.backward(weight.double())
    near = {"rtol": 0, "atol": 1e-5 if INTERPRETED else 2e-2}
    assert torch.allclose(score.double(), wanted, **near)
    for ours, theirs in zip((a, b), plain, strict=True):
        assert torch.allclose(ours.grad.double(), theirs.grad, **near)
        assert not ours.grad.isnan().any()


def test_a_machine_without_a_gpu_takes_the_plain_one():
    assert not fusible(torch.zeros(1, 4, 32, dtype=torch.bfloat16))
