"""Muon's steps against what linear algebra says they should be."""

import pytest
import torch
from torch import nn

from anyorder.inference import seeded
from anyorder.training.optimizer import KERNEL_RATE, Descent, orthogonal


@pytest.mark.parametrize("shape", [(1, 4, 9), (3, 8, 8), (2, 12, 5), (1, 1, 1)])
def test_singular_values_become_about_one_and_directions_stay(shape):
    matrices = torch.randn(shape, generator=seeded(), dtype=torch.float64)
    u, s, vt = torch.linalg.svd(matrices, full_matrices=False)
    found = u.mT @ orthogonal(matrices) @ vt.mT
    values = found.diagonal(dim1=1, dim2=2)
    large = s > 0.05 * s.amax(1, keepdim=True)
    assert ((values > 0.6) & (values < 1.25))[large].all()
    off = found - torch.diag_embed(values)
    assert off.abs().max() < 1e-9


def test_a_kernel_moves_as_far_in_every_direction_and_all_else_follows_adam():
    rng = seeded()
    kernel = nn.Parameter(torch.randn(6, 4, 3, 3, generator=rng))
    plain = nn.Parameter(torch.randn(5, generator=rng))
    twin = nn.Parameter(plain.detach().clone())
    before = kernel.detach().clone()
    descent = Descent([kernel, plain], [kernel], rate=0.01, decay=0.0)
    adam = torch.optim.AdamW([twin], lr=0.005, weight_decay=0.0)
    kernel.grad = torch.randn(kernel.shape, generator=rng)
    plain.grad = torch.randn(5, generator=rng)
    twin.grad = plain.grad.clone()
    descent.step(0.5)
    adam.step()
    torch.testing.assert_close(plain, twin)
    moved = torch.linalg.svdvals((before - kernel.detach()).flatten(1)) / (KERNEL_RATE * 0.005)
    assert ((moved > 0.6) & (moved < 1.25)).all()


def test_kernels_shrink_by_their_decay():
    kernel = nn.Parameter(torch.ones(2, 2, 1, 1))
    descent = Descent([kernel], [kernel], rate=0.1, decay=0.5)
    kernel.grad = torch.zeros_like(kernel)
    descent.step(1.0)
    torch.testing.assert_close(kernel.detach(), torch.full((2, 2, 1, 1), 1 - KERNEL_RATE * 0.1 * 0.5))


def test_a_kernel_without_a_gradient_stays():
    kernel = nn.Parameter(torch.ones(2, 2, 1, 1))
    descent = Descent([kernel], [kernel], rate=0.1, decay=0.5)
    descent.step(1.0)
    assert torch.equal(kernel.detach(), torch.ones(2, 2, 1, 1))
    first, second = descent.moments(kernel)
    assert not first.any()
    assert not second.any()
