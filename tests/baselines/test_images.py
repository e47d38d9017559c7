"""Rivals for images: the latent models' convolutions, and diffusion against a Gaussian whose noise is known exactly."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from anyorder.baselines import DDPM, MIWAE, VAE, BaselineRecipe, build_convolutional, fit_baseline, log_prob, mean, sample
from anyorder.baselines.ddpm import time_embedding
from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.networks import UNetSize
from anyorder.schema import Ordinal, Schema
from anyorder.subsets import Question

SHAPE = (5, 6, 1)
STRIPES = torch.randint(2, (300, 1, 6), generator=seeded()).repeat(1, 5, 1).flatten(1).float()


@pytest.mark.parametrize(("kind", "error"), [(VAE, 0.42), (MIWAE, 0.3)])  # knowing nothing is worth 0.5
def test_latent_models_of_images_learn_what_rows_tell(kind, error):
    """All rows of the image are the same: the first tells the last."""
    model = build_convolutional(kind, Schema.repeat(Ordinal(2), 30), SHAPE, (8, 16), latent=6, samples=2)
    fit_baseline(model, STRIPES, recipe=BaselineRecipe(steps=400, check_every=400, batch_size=32, learning_rate=5e-3))
    known = torch.zeros(20, 30, dtype=torch.bool)
    known[:, :18] = True
    question = Question(known, ~known)
    guessed = mean(model, STRIPES[:20], question, seeded(), draws=50)
    assert (guessed - STRIPES[:20]).abs()[:, 18:].mean() < error
    assert torch.equal(sample(model, STRIPES[:20], question, seeded(), draws=50)[:, :18], STRIPES[:20, :18])
    assert log_prob(model, STRIPES[:20], question, seeded(), draws=50).mean() > -12 * 0.69


def test_gradients_reach_all_of_them():
    model = build_convolutional(MIWAE, Schema.repeat(Ordinal(4), 90), (5, 6, 3), (4, 6), latent=3)
    x = torch.randint(4, (8, 90), generator=seeded(1)).float()
    with torch.no_grad():
        for p in model.parameters():
            p += 0.1 * torch.randn(p.shape, generator=seeded(2))
    model.bound(x, torch.rand(8, 90, generator=seeded(3)) < 0.5, seeded(4)).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    with pytest.raises(InputError, match="shape"):
        build_convolutional(VAE, Schema.repeat(Ordinal(4), 90), (5, 6, 1))


class Gaussian(nn.Module):
    """The noise in a noised N(0, C), which is linear in what is seen."""

    def __init__(self, ddpm, covariance):
        super().__init__()
        self.ddpm, self.covariance = [ddpm], covariance

    def forward(self, codes, given, t):
        noisy = 2 * codes / self.ddpm[0].top - 1
        kept = self.ddpm[0].kept[t[0, 0]]
        noised = kept * self.covariance + (1 - kept) * torch.eye(len(self.covariance))
        return (1 - kept).sqrt() * torch.linalg.solve(noised, noisy.T).T


def exact_ddpm(steps=100):
    root = torch.tensor([[0.2, 0.0, 0.0], [0.15, 0.1, 0.0], [-0.1, 0.1, 0.1]])
    model = DDPM.build(Schema.repeat(Ordinal(256), 3), (1, 3, 1), UNetSize((4,), 1), steps)
    model.network = Gaussian(model, root @ root.T)
    return model, root @ root.T


def test_diffusion_with_the_exact_noise_draws_the_gaussian():
    model, covariance = exact_ddpm()
    drawn = model.scaled(model.sample(4000, seeded()))
    assert drawn.mean(0).abs().max() < 0.02
    assert (drawn.T.cov() - covariance).abs().max() < 0.006


def test_repaint_draws_what_is_unknown_given_the_rest():
    model, covariance = exact_ddpm()
    x, known = torch.full((1500, 3), 127.5), torch.tensor([True, False, False]).expand(1500, 3)
    x[:, 0] = 127.5 * 1.25  # a quarter of the scale
    drawn = model.repaint(x, known, seeded(1))
    assert torch.equal(drawn[:, 0], x[:, 0])
    wanted = covariance[1:, 0] / covariance[0, 0] * 0.25
    plain = model.scaled(model.repaint(x, known, seeded(1), resample=1))[:, 1:].mean(0)
    found = model.scaled(drawn)[:, 1:].mean(0)
    assert (found - wanted).abs().max() < 0.05  # it is an approximation
    assert (found - wanted).abs().max() < 0.5 * (plain - wanted).abs().max()  # walking again is what makes the parts agree


def test_the_times_of_repaint():
    assert list(time_embedding(3, 1, 1)) == [(3, 2), (2, 1), (1, 0)]
    moves = list(time_embedding(20, 10, 3))
    assert moves[0] == (20, 19)
    assert moves[-1] == (1, 0)
    assert all(a[1] == b[0] for a, b in pairwise(moves))
    assert moves.count((10, 20)) == moves.count((0, 10)) == 2
    assert len(moves) == 20 + 4 * 11
    with pytest.raises(InputError, match="resample=0"):
        list(time_embedding(10, 1, 0))


def test_diffusion_learns():
    model = DDPM.build(Schema.repeat(Ordinal(2), 30), SHAPE, UNetSize((16, 16), 1), steps=30)
    scores = fit_baseline(model, STRIPES, recipe=BaselineRecipe(steps=400, check_every=100, batch_size=16))
    assert scores[-1] < 0.6 * 30
    known = torch.zeros(10, 30, dtype=torch.bool)
    known[:, :18] = True
    filled = model.repaint(STRIPES[:10], known, seeded(), jump=5, resample=5)
    assert torch.equal(filled[:, :18], STRIPES[:10, :18])
    assert (filled - STRIPES[:10]).abs()[:, 18:].mean() < 0.35
    with pytest.raises(InputError, match="steps=1"):
        DDPM.build(Schema.repeat(Ordinal(2), 30), SHAPE, UNetSize((16,), 1), steps=1)
