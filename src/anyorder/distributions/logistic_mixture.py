"""A whole number on a scale, such as a pixel: a mixture of logistic distributions, each integrated over the value's
own interval.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from .categorical import CategoricalDistribution
from .distribution import Cells, DiscreteDistribution, Head, draw_code, take


@final
@dataclass(frozen=True)
class LogisticMixtureDistribution(DiscreteDistribution):
    r"""The codes 0 .. L-1 stand at :math:`-1 .. 1`; code k owns the interval of width 2 / (L-1) around its place.

    .. math:: P(k) = \sum_j w_j \left[ \sigma(a_j) - \sigma(b_j) \right], \quad
              \sigma(a) - \sigma(b) = \sigma(a) \, \sigma(-b) \, (1 - e^{b - a})

    with a and b the standardised upper and lower end. The product has no cancellation, so its logarithm and its
    gradient are right however far x lies in a tail. The first and the last code own the tails.
    """

    logits: Float[Tensor, "*cells components"]
    mu: Float[Tensor, "*cells components"]
    sigma: Float[Tensor, "*cells components"]
    levels: int

    def log_prob(self, x: Cells) -> Cells:
        each = log_mass(x.unsqueeze(-1), self.mu, self.sigma, self.levels)
        return torch.logsumexp(self.logits.log_softmax(-1) + each, dim=-1)

    def log_pmf(self) -> Float[Tensor, "*cells levels"]:
        codes = torch.arange(self.levels, device=self.mu.device, dtype=self.mu.dtype)
        return self.unsqueeze().log_prob(codes.expand(*self.mu.shape[:-1], self.levels))

    def sample(self, rng: Generator) -> Cells:
        which = draw_code(self.logits, rng)
        return draw_logistic(take(self.mu, which), take(self.sigma, which), self.levels, rng)

    def cdf(self, x: Cells) -> Cells:
        found = (self.logits.softmax(-1) * mass_below(x.unsqueeze(-1), self.mu, self.sigma, self.levels)).sum(-1)
        return torch.where(x >= self.levels - 1, 1.0, found).to(found.dtype)  # weights add up to nearly 1

    def quantile(self, q: Cells) -> Cells:
        return lowest_code(self.cdf, q, self.levels)

    def tempered(self, temperature: float) -> CategoricalDistribution:
        return CategoricalDistribution(self.log_pmf() / temperature)

    def unsqueeze(self) -> "LogisticMixtureDistribution":
        """The same distributions with one more dimension of cells at the end."""
        return LogisticMixtureDistribution(
            self.logits.unsqueeze(-2), self.mu.unsqueeze(-2), self.sigma.unsqueeze(-2), self.levels
        )


def log_mass(x: Tensor, mu: Tensor, sigma: Tensor, levels: int) -> Tensor:
    """The log probability of code x under logistic distributions, one for one."""
    half = 1 / (levels - 1)
    place = 2 * half * x - 1
    first, last = x < 0.5, x > levels - 1.5
    below_top = F.logsigmoid((place + half - mu) / sigma).masked_fill(last, 0.0)
    above_bottom = F.logsigmoid(-(place - half - mu) / sigma).masked_fill(first, 0.0)
    return below_top + above_bottom + log_one_minus_exp(-2 * half / sigma).masked_fill(first | last, 0.0)


def mass_below(x: Tensor, mu: Tensor, sigma: Tensor, levels: int) -> Tensor:
    """The probability of all codes up to x, one for one."""
    half = 1 / (levels - 1)
    inside = ((2 * half * x.floor() - 1 + half - mu) / sigma).sigmoid()
    return torch.where(x < 0, 0.0, torch.where(x >= levels - 1, 1.0, inside)).to(inside.dtype)


def draw_logistic(mu: Tensor, sigma: Tensor, levels: int, rng: Generator) -> Tensor:
    """A code from each of these logistic distributions."""
    u = torch.rand(mu.shape, generator=rng, device=rng.device, dtype=torch.float64).clamp(min=1e-300)
    place = mu.double() + sigma.double() * (u.log() - torch.log1p(-u))
    return ((place + 1) / 2 * (levels - 1)).round().clamp(0, levels - 1).to(mu.dtype)


def lowest_code(cdf: Callable[[Tensor], Tensor], q: Tensor, levels: int) -> Tensor:
    """The smallest code whose cdf reaches q, by bisection."""
    low, high = torch.zeros_like(q), torch.full_like(q, levels - 1)
    for _ in range(math.ceil(math.log2(levels))):
        middle = ((low + high) / 2).floor()
        enough = cdf(middle) >= q
        low, high = torch.where(enough, low, middle + 1).minimum(high), torch.where(enough, middle, high)
    return high


def log_one_minus_exp(x: Tensor) -> Tensor:
    """log(1 - e^x) for x < 0, precise at both ends."""
    return torch.where(x > -0.693, torch.log(-torch.expm1(x.clamp(min=-0.693))), torch.log1p(-torch.exp(x.clamp(max=-0.693))))


@final
@dataclass(frozen=True)
class LogisticMixture(Head):
    """A code 0 .. levels-1 on a scale."""

    kind: ClassVar[str] = "logistic_mixture"
    levels: int
    components: int = 5
    min_scale: float = 1e-3

    @property
    def width(self) -> int:
        return 3 * self.components

    def __call__(self, params: Float[Tensor, "*cells width"]) -> LogisticMixtureDistribution:
        logits, mu, raw = params.chunk(3, dim=-1)
        # Untrained components start spread over the scale, so that they can take different parts of the data.
        start = torch.linspace(-0.8, 0.8, self.components, device=params.device, dtype=params.dtype)
        return LogisticMixtureDistribution(logits, start + mu, self.min_scale + F.softplus(raw - 1), self.levels)
