"""A real number with one bell curve."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from .law import Cells, Head, Law

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@final
@dataclass(frozen=True)
class GaussianLaw(Law):
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

    def tempered(self, temperature: float) -> "GaussianLaw":
        """Proportional to the density to the power of 1 / temperature."""
        return GaussianLaw(self.mu, self.sigma * math.sqrt(temperature))


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

    def __call__(self, params: Float[Tensor, "*cells width"]) -> GaussianLaw:
        mu, raw = params.unbind(-1)
        return GaussianLaw(mu, self.min_scale + F.softplus(raw))
