"""A colour: red, green and blue as one value, a mixture of logistic distributions in which green leans on red, and
blue on both.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from ..errors import InputError
from .categorical import CategoricalDistribution
from .distribution import Cells, DiscreteDistribution, Head, draw_code
from .logistic_mixture import draw_logistic, log_mass, lowest_code, mass_below

MOST_COLOURS = 2**12  # of which a table may be made


@final
@dataclass(frozen=True)
class ColourMixtureDistribution(DiscreteDistribution):
    r"""The code of a colour is :math:`(r L + g) L + b`. One component is drawn for all three channels,

    .. math:: P(r, g, b) = \sum_j w_j \, P_j(r) \, P_j(g \mid r) \, P_j(b \mid r, g),

    and the place of green moves with the red that was drawn, rounded and on its scale, that of blue with both: what is
    scored and what is drawn are the same distribution.
    """

    logits: Float[Tensor, "*cells components"]
    mu: Float[Tensor, "*cells components 3"]
    sigma: Float[Tensor, "*cells components 3"]
    slope: Float[Tensor, "*cells components 3"]  # of green on red, of blue on red, of blue on green
    levels: int

    def log_prob(self, x: Cells) -> Cells:
        colour = self._channels(x)
        each = log_mass(colour, self._places(colour), self.sigma, self.levels).sum(-1)
        return torch.logsumexp(self.logits.log_softmax(-1) + each, dim=-1)

    def log_pmf(self) -> Float[Tensor, "*cells levels"]:
        count = self.levels**3
        if count > MOST_COLOURS:
            raise InputError(
                f"A distribution over {count} colours has no table of probabilities, and so no mean, mode or entropy that could "
                "be computed from it. Draw from it, or model red, green and blue as three variables."
            )
        codes = torch.arange(count, device=self.mu.device, dtype=self.mu.dtype)
        cells = self.logits.ndim - 1
        wide = self.map_tensors(lambda t: t.unsqueeze(cells))
        return wide.log_prob(codes.expand(*self.logits.shape[:-1], count))

    def sample(self, rng: Generator) -> Cells:
        which = draw_code(self.logits, rng)[..., None, None]
        mu, sigma, slope = (
            t.gather(-2, which.expand(*which.shape[:-2], 1, 3)).squeeze(-2) for t in (self.mu, self.sigma, self.slope)
        )
        red = draw_logistic(mu[..., 0], sigma[..., 0], self.levels, rng)
        green = draw_logistic(mu[..., 1] + slope[..., 0] * self._scaled(red), sigma[..., 1], self.levels, rng)
        lean = slope[..., 1] * self._scaled(red) + slope[..., 2] * self._scaled(green)
        blue = draw_logistic(mu[..., 2] + lean, sigma[..., 2], self.levels, rng)
        return (red * self.levels + green) * self.levels + blue

    def cdf(self, x: Cells) -> Cells:
        """Of the code: less red; or as much red and less green; or as much of both and no more blue."""
        inside = x.floor().clamp(0, self.levels**3 - 1)
        colour = self._channels(inside)
        places = self._places(colour)
        less = mass_below(colour - 1, places, self.sigma, self.levels)
        same = log_mass(colour, places, self.sigma, self.levels).exp()
        up_to = less[..., 0] + same[..., 0] * (less[..., 1] + same[..., 1] * (less[..., 2] + same[..., 2]))
        found = (self.logits.softmax(-1) * up_to).sum(-1)
        return torch.where(x < 0, 0.0, torch.where(x >= self.levels**3 - 1, 1.0, found)).to(found.dtype)

    def quantile(self, q: Cells) -> Cells:
        return lowest_code(self.cdf, q, self.levels**3)

    def tempered(self, temperature: float) -> DiscreteDistribution:
        """Exactly where a table can be made; else weights and scales of the components are sharpened."""
        if self.levels**3 <= MOST_COLOURS:
            return CategoricalDistribution(self.log_pmf() / temperature)
        return replace(self, logits=self.logits / temperature, sigma=self.sigma * temperature)

    def _channels(self, x: Cells) -> Float[Tensor, "*cells 1 3"]:
        code = x.long()
        split = torch.stack([code // self.levels**2, code // self.levels % self.levels, code % self.levels], dim=-1)
        return split.to(self.mu.dtype).unsqueeze(-2)

    def _places(self, colour: Float[Tensor, "*cells 1 3"]) -> Float[Tensor, "*cells components 3"]:
        red, green = self._scaled(colour[..., 0]), self._scaled(colour[..., 1])
        lean = self.slope[..., 0] * red, self.slope[..., 1] * red + self.slope[..., 2] * green
        return self.mu + torch.stack([torch.zeros_like(lean[0]), *lean], dim=-1)

    def _scaled(self, code: Tensor) -> Tensor:
        return 2 * code / (self.levels - 1) - 1


@final
@dataclass(frozen=True)
class ColourMixture(Head):
    """A colour with `shades` levels a channel, as one code."""

    kind: ClassVar[str] = "colour_mixture"
    shades: int
    components: int = 5
    min_scale: float = 1e-3

    @property
    def levels(self) -> int:
        return self.shades**3

    @property
    def width(self) -> int:
        return 10 * self.components

    def __call__(self, params: Float[Tensor, "*cells width"]) -> ColourMixtureDistribution:
        logits, rest = params.split([self.components, 9 * self.components], dim=-1)
        mu, raw, slope = rest.unflatten(-1, (self.components, 9)).chunk(3, dim=-1)
        start = torch.linspace(-0.8, 0.8, self.components, device=params.device, dtype=params.dtype)[:, None]
        return ColourMixtureDistribution(logits, start + mu, self.min_scale + F.softplus(raw - 1), slope, self.shades)
