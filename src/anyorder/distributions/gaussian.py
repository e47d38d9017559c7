"""A real number with one bell curve."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from .distribution import Cells, Distribution, Head, draw_code, take

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@final
@dataclass(frozen=True)
class GaussianDistribution(Distribution):
    r""":math:`N(x; \mu, \sigma^2)`."""

    mu: Cells
    sigma: Cells

    def log_prob(self, x: Cells) -> Cells:
        return normal_log_density(x, self.mu, self.sigma)

    def sample(self, rng: Generator) -> Cells:
        noise = torch.randn(self.mu.shape, generator=rng, device=rng.device, dtype=self.mu.dtype)
        return self.mu + self.sigma * noise

    def cdf(self, x: Cells) -> Cells:
        return torch.special.ndtr((x - self.mu) / self.sigma)

    def quantile(self, q: Cells) -> Cells:
        return self.mu + self.sigma * torch.special.ndtri(q)

    def mean(self) -> Cells:
        return self.mu

    def entropy(self) -> Cells:
        return self.sigma.log() + HALF_LOG_2PI + 0.5

    def tempered(self, temperature: float) -> "GaussianDistribution":
        """Proportional to the density to the power of 1 / temperature."""
        return GaussianDistribution(self.mu, self.sigma * math.sqrt(temperature))


def normal_log_density(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    return -0.5 * ((x - mu) / sigma) ** 2 - sigma.log() - HALF_LOG_2PI


@final
@dataclass(frozen=True)
class Gaussian(Head):
    """A real number. The floor under the scale keeps a value repeated in the data from drawing an infinite density."""

    kind: ClassVar[str] = "gaussian"
    min_scale: float = 1e-3

    @property
    def width(self) -> int:
        return 2

    def __call__(self, params: Float[Tensor, "*cells width"]) -> GaussianDistribution:
        mu, raw = params.unbind(-1)
        return GaussianDistribution(mu, self.min_scale + F.softplus(raw))


@final
@dataclass(frozen=True)
class GaussianMixtureDistribution(Distribution):
    r""":math:`p(x) = \sum_k w_k \, N(x; \mu_k, \sigma_k^2)`."""

    logits: Float[Tensor, "*cells components"]
    mu: Float[Tensor, "*cells components"]
    sigma: Float[Tensor, "*cells components"]

    def log_prob(self, x: Cells) -> Cells:
        each = normal_log_density(x.unsqueeze(-1), self.mu, self.sigma)
        return torch.logsumexp(self.logits.log_softmax(-1) + each, dim=-1)

    def sample(self, rng: Generator) -> Cells:
        which = draw_code(self.logits, rng)
        noise = torch.randn(which.shape, generator=rng, device=rng.device, dtype=self.mu.dtype)
        return take(self.mu, which) + take(self.sigma, which) * noise

    def cdf(self, x: Cells) -> Cells:
        each = torch.special.ndtr((x.unsqueeze(-1) - self.mu) / self.sigma)
        return (self.logits.softmax(-1) * each).sum(-1)

    def quantile(self, q: Cells) -> Cells:
        """By bisection between the smallest and the largest of the components' own quantiles."""
        wide = GaussianMixtureDistribution(self.logits.double(), self.mu.double(), self.sigma.double())
        target = q.double()
        each = wide.mu + wide.sigma * torch.special.ndtri(target).unsqueeze(-1)
        low, high = each.amin(-1), each.amax(-1)
        for _ in range(60):
            middle = (low + high) / 2
            below = wide.cdf(middle) < target
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        # At q = 0 and q = 1 the bracket is infinite and its middle undefined.
        return torch.where((target > 0) & (target < 1), high, each[..., 0]).to(self.mu.dtype)

    def mean(self) -> Cells:
        return (self.logits.softmax(-1) * self.mu).sum(-1)

    def entropy(self) -> Cells:
        """By quadrature, there being no closed form; its cuts are dense around every component, however narrow."""
        places, weights = self._quadrature()
        wide = GaussianMixtureDistribution(*(t.unsqueeze(-2) for t in (self.logits, self.mu, self.sigma)))
        log_p = wide.log_prob(places)
        return -(weights * log_p.exp() * log_p.clamp(min=-1e4)).sum(-1)

    def _quadrature(self) -> tuple[Tensor, Tensor]:
        """Places and weights for integrals over the real line, three to every interval between two cuts."""
        steps = torch.arange(-9, 9.5, 0.5).to(self.mu)
        cuts = (self.mu.unsqueeze(-1) + self.sigma.unsqueeze(-1) * steps).flatten(-2).sort(-1).values
        left, length = cuts[..., :-1, None], cuts.diff(dim=-1).unsqueeze(-1)
        nodes, weights = (torch.from_numpy(a).to(self.mu) / 2 for a in np.polynomial.legendre.leggauss(3))
        return (left + length * (nodes + 0.5)).flatten(-2), (length * weights).flatten(-2)

    def tempered(self, temperature: float) -> "GaussianMixtureDistribution":
        """Each component is tempered with its weight; for components apart it is the tempered density."""
        logits = self.logits / temperature + (1 - 1 / temperature) * self.sigma.log()
        return GaussianMixtureDistribution(logits, self.mu, self.sigma * math.sqrt(temperature))


@final
@dataclass(frozen=True)
class GaussianMixture(Head):
    """A real number. The floor under the scales keeps a value repeated in the data from drawing an infinite density."""

    kind: ClassVar[str] = "gaussian_mixture"
    components: int = 8
    min_scale: float = 1e-3

    @property
    def width(self) -> int:
        return 3 * self.components

    def __call__(self, params: Float[Tensor, "*cells width"]) -> GaussianMixtureDistribution:
        logits, mu, raw = params.chunk(3, dim=-1)
        # Untrained components start apart, so that they can take different parts of the data.
        start = torch.linspace(-1.5, 1.5, self.components, device=params.device, dtype=params.dtype)
        return GaussianMixtureDistribution(logits, start + mu, self.min_scale + F.softplus(raw))
