"""A number as it was written down: values that repeat often, and a mixture of logistic laws over the lattice of all values."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from ..errors import InputError
from ..schema import Domain, Recorded
from .law import Cells, Head, Law, draw_code, take
from .logistic_mixture import log_one_minus_exp

LEVELS = 128  # quantiles that stand for a law when its entropy is asked for
TINY = 1e-37  # the least number float32 holds with full precision
FLOOR, BROAD = 1e-3, 3.0  # share and scale of a fixed broad component: no recorded value is ever impossible


@final
@dataclass(frozen=True)
class RecordedLaw(Law):
    r"""The probability of a value is its mass: its atom's own weight, plus that of the interval it was rounded from.

    .. math:: P(x) = w_{a(x)} + w_0 \sum_k \pi_k \left[ F_k(x + h) - F_k(x - h) \right]

    with h half the spacing and F_k a logistic cdf. Values are whole multiples of the spacing. A share of a thousandth
    of the rest is a fixed broad law.
    """

    choice: Float[Tensor, "*cells atoms_and_rest"]  # log weights of the atoms, and last of the rest
    logits: Float[Tensor, "*cells components"]
    mu: Float[Tensor, "*cells components"]
    sigma: Float[Tensor, "*cells components"]
    atoms: Float[Tensor, "*cells atoms"]  # padded with NaN
    spacing: Cells

    def log_prob(self, x: Cells) -> Cells:
        half = self.spacing / 2
        rest = self.choice[..., -1] + torch.logaddexp(
            math.log(1 - FLOOR) + self._log_mass(x, half), math.log(FLOOR) + broad_log_mass(x, half)
        )
        if not self.atoms.shape[-1]:
            return rest
        match = (x.unsqueeze(-1) - self.atoms).abs() < half.unsqueeze(-1)
        own = take(self.choice, match.int().argmax(-1))
        return torch.where(match.any(-1), torch.logaddexp(rest, own), rest)

    def _log_mass(self, x: Cells, half: Cells) -> Cells:
        """In linear space, three times as fast as in logarithms; what underflows is far below the broad component."""
        upper = (x + half).unsqueeze(-1)
        width = self.spacing.unsqueeze(-1) / self.sigma
        top = (upper - self.mu) / self.sigma
        mass = top.sigmoid() * (width - top).sigmoid() * -torch.expm1(-width)
        total = (self.logits.softmax(-1) * mass).sum(-1)
        return torch.where(total > TINY, total.clamp(min=TINY).log(), -1e30)

    def cdf(self, x: Cells) -> Cells:
        x = self._snapped(x, torch.floor)
        top = x + self.spacing / 2
        inside = (self.logits.softmax(-1) * ((top.unsqueeze(-1) - self.mu) / self.sigma).sigmoid()).sum(-1)
        rest = (1 - FLOOR) * inside + FLOOR * (top / BROAD).sigmoid()
        below = self.atoms <= (x + self.spacing / 4).unsqueeze(-1)
        weight = self.choice.exp()
        return (weight[..., :-1] * below).sum(-1) + weight[..., -1] * rest

    def quantile(self, q: Cells) -> Cells:
        """By bisection over the lattice."""
        reach = 60 + (self.mu.abs().amax(-1) + 60 * self.sigma.amax(-1)).double()
        high = (reach / self.spacing).ceil()
        low = -high
        wide = self._each(lambda t: t.double())
        for _ in range(64):
            middle = ((low + high) / 2).floor()
            enough = wide.cdf(middle * wide.spacing) >= q
            low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
        return (high * wide.spacing).to(self.mu.dtype)

    def sample(self, rng: Generator) -> Cells:
        u = torch.rand(self.spacing.shape, generator=rng, device=rng.device, dtype=torch.float64).clamp(min=1e-300)
        noise = u.log() - torch.log1p(-u)
        which = draw_code(self.logits, rng)
        broad = torch.rand(self.spacing.shape, generator=rng, device=rng.device) < FLOOR
        place = torch.where(broad, BROAD * noise, take(self.mu, which) + take(self.sigma, which) * noise)
        drawn = self._snapped(place.to(self.mu.dtype), torch.round)
        chosen = draw_code(self.choice, rng)
        if not self.atoms.shape[-1]:
            return drawn
        return torch.where(chosen < self.atoms.shape[-1], take(self.atoms, chosen.clamp(max=self.atoms.shape[-1] - 1)), drawn)

    def mean(self) -> Cells:
        """Of the law before rounding, which is within half a spacing of the mean after it."""
        weight = self.choice.exp()
        atoms = (weight[..., :-1] * self.atoms.nan_to_num(0.0)).sum(-1)
        return atoms + weight[..., -1] * (1 - FLOOR) * (self.logits.softmax(-1) * self.mu).sum(-1)

    def entropy(self) -> Cells:
        """The mean of minus log P over evenly spaced quantiles: an approximation, good to a few hundredths of a nat."""
        levels = (torch.arange(LEVELS, device=self.mu.device, dtype=self.mu.dtype) + 0.5) / LEVELS
        d = self.spacing.ndim
        wide = self._each(lambda t: t.unsqueeze(d).expand(*t.shape[:d], LEVELS, *t.shape[d:]))
        return -wide.log_prob(wide.quantile(levels.expand_as(wide.spacing))).mean(-1)

    def tempered(self, temperature: float) -> "RecordedLaw":
        """The choice, the weights and the scales of the components are tempered."""
        choice = (self.choice / temperature).log_softmax(-1)
        return RecordedLaw(choice, self.logits / temperature, self.mu, self.sigma * temperature, self.atoms, self.spacing)

    def _snapped(self, x: Tensor, to_whole: Callable[[Tensor], Tensor]) -> Tensor:
        """The lattice point at or near x; a point just below its place by rounding error counts as there."""
        return to_whole(x / self.spacing + 1e-3) * self.spacing

    def _each(self, change: Callable[[Tensor], Tensor]) -> "RecordedLaw":
        return RecordedLaw(*(change(t) for t in (self.choice, self.logits, self.mu, self.sigma, self.atoms, self.spacing)))


def broad_log_mass(x: Cells, half: Cells) -> Cells:
    """The log mass of the fixed broad component, exact however far out x lies."""
    top, bottom = (x + half) / BROAD, (x - half) / BROAD
    return F.logsigmoid(top) + F.logsigmoid(-bottom) + log_one_minus_exp(-2 * half / BROAD)


@final
@dataclass(frozen=True)
class RecordedNumber(Head):
    """A number recorded on a lattice; variables with fewer atoms than `atoms` leave places empty."""

    kind: ClassVar[str] = "recorded_number"
    atoms: int = 0
    components: int = 6
    min_scale: float = 1e-4

    @property
    def width(self) -> int:
        return self.atoms + 1 + 3 * self.components

    def constants(self, domain: Domain) -> tuple[float, ...]:
        assert isinstance(domain, Recorded)
        if len(domain.atoms) > self.atoms:
            raise InputError(f"The head has room for {self.atoms} atoms, the variable has {len(domain.atoms)}.")
        return (*domain.atoms, *[math.nan] * (self.atoms - len(domain.atoms)), domain.spacing)

    def __call__(self, params: Float[Tensor, "*cells width"]) -> RecordedLaw:
        k = self.components
        choice, logits, mu, raw, atoms, spacing = params.split([self.atoms + 1, k, k, k, self.atoms, 1], dim=-1)
        empty = F.pad(atoms.isnan(), (0, 1))
        start = torch.linspace(-1.5, 1.5, k, device=params.device, dtype=params.dtype)
        sigma = self.min_scale + F.softplus(raw - 1)
        return RecordedLaw(choice.masked_fill(empty, -1e9).log_softmax(-1), logits, start + mu, sigma, atoms, spacing.squeeze(-1))
