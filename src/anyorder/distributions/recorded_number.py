"""A number as it was written down: values that repeat often, and a mixture of logistic distributions over the lattice
of all values.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from ..errors import InputError
from ..schema import Domain, Recorded, bounds_of, curve_of
from .bounded import bent, bound
from .distribution import Cells, Head, draw_code, draw_place, take
from .lattice import (
    BROAD,
    FLOOR,
    LatticeDistribution,
    at_or_below,
    cell_of,
    cell_top,
    for_all,
    logistic_integrated_cdf,
    logistic_mass,
    on_lattice,
    with_floor,
)


@final
@dataclass(frozen=True)
class RecordedDistribution(LatticeDistribution):
    r"""The probability of a value is its mass: its atom's own weight, plus that of the interval it was rounded from.

    .. math:: P(x) = w_{a(x)} + w_0 \sum_k \pi_k \left[ F_k(x + h) - F_k(x - h) \right]

    with h half the spacing and F_k a logistic cdf. Values are whole multiples of the spacing. A share of a thousandth
    of the rest is a fixed broad distribution.
    """

    choice: Float[Tensor, "*cells atoms_and_rest"]  # log weights of the atoms, and last of the rest
    logits: Float[Tensor, "*cells components"]
    mu: Float[Tensor, "*cells components"]
    sigma: Float[Tensor, "*cells components"]
    atoms: Float[Tensor, "*cells atoms"]  # padded with NaN
    curve: Float[Tensor, "*cells 3"] | None = None  # how the lattice bends

    def log_prob(self, x: Cells) -> Cells:
        middle, width = cell_of(x, self.spacing, self.curve)
        mass = logistic_mass(middle.unsqueeze(-1), self.mu, self.sigma, width.unsqueeze(-1))
        rest = self.choice[..., -1] + with_floor((self.logits.softmax(-1) * mass).sum(-1), middle, width)
        if not self.atoms.shape[-1]:
            return rest
        match = (x.unsqueeze(-1) - self.atoms).abs() < self.spacing.unsqueeze(-1) / 2
        own = take(self.choice, match.int().argmax(-1))
        return torch.where(match.any(-1), torch.logaddexp(rest, own), rest)

    def cdf(self, x: Cells) -> Cells:
        return self.cdfs(x.unsqueeze(-1)).squeeze(-1)

    def cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        spacing = self.spacing.unsqueeze(-1)
        x = at_or_below(x, spacing)
        top = cell_top(x, spacing, None if self.curve is None else self.curve.unsqueeze(-2))
        mu, sigma = self.mu.unsqueeze(-2), self.sigma.unsqueeze(-2)
        inside = (((top.unsqueeze(-1) - mu) / sigma).sigmoid() @ self.logits.softmax(-1).unsqueeze(-1)).squeeze(-1)
        weight = self.choice.exp()
        rest = weight[..., -1:] * ((1 - FLOOR) * inside + FLOOR * (top / BROAD).sigmoid())
        if not self.atoms.shape[-1]:
            return rest
        below = self.atoms.unsqueeze(-2) <= (x + spacing / 4).unsqueeze(-1)
        return rest + (below.to(weight.dtype) @ weight[..., :-1].unsqueeze(-1)).squeeze(-1)

    def reach(self) -> Cells:
        return 60 + self.mu.abs().amax(-1) + 60 * self.sigma.amax(-1)

    def integrated_cdf(self, x: Cells) -> Cells:
        return self.integrated_cdfs(x.unsqueeze(-1)).squeeze(-1)

    def integrated_cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        at, weight, share = x.unsqueeze(-1), self.choice.exp().unsqueeze(-2), self.logits.softmax(-1).unsqueeze(-2)
        inside = (share * logistic_integrated_cdf(at, self.mu.unsqueeze(-2), self.sigma.unsqueeze(-2))).sum(-1)
        broad = logistic_integrated_cdf(x, torch.zeros_like(x), torch.full_like(x, BROAD))
        atoms = (weight[..., :-1] * (at - self.atoms.unsqueeze(-2)).clamp(min=0.0).nan_to_num(0.0)).sum(-1)
        return atoms + weight[..., -1] * ((1 - FLOOR) * inside + FLOOR * broad)

    def sample(self, rng: Generator) -> Cells:
        u = torch.rand(self.spacing.shape, generator=rng, device=rng.device, dtype=torch.float64).clamp(min=1e-300)
        noise = u.log() - torch.log1p(-u)
        which = draw_code(self.logits, rng)
        broad = torch.rand(self.spacing.shape, generator=rng, device=rng.device) < FLOOR
        place = torch.where(broad, BROAD * noise, take(self.mu, which) + take(self.sigma, which) * noise)
        drawn = on_lattice(place.to(self.mu.dtype), self.spacing, self.curve)
        chosen = draw_code(self.choice, rng)
        if not self.atoms.shape[-1]:
            return drawn
        return torch.where(chosen < self.atoms.shape[-1], take(self.atoms, chosen.clamp(max=self.atoms.shape[-1] - 1)), drawn)

    def sample_between(self, bottom: Cells, top: Cells, rng: Generator) -> Cells:
        """One of the atoms that lie there, or of the logistic distributions, cut off at both ends: nothing is drawn in vain."""
        mu = F.pad(self.mu.double(), (0, 1))  # the broad one comes last
        sigma = F.pad(self.sigma.double(), (0, 1), value=BROAD)
        low, high = ((end.double().unsqueeze(-1) - mu) / sigma for end in (bottom, top))
        mass = high.sigmoid() * (-low).sigmoid() * -torch.expm1(low - high)
        choice, share = self.choice.double().exp(), self.logits.double().softmax(-1)
        rest = torch.cat([(1 - FLOOR) * share, torch.full_like(share[..., :1], FLOOR)], dim=-1)
        there = (self.atoms > bottom.unsqueeze(-1)) & (self.atoms < top.unsqueeze(-1))
        chosen = draw_place(torch.cat([choice[..., -1:] * rest * mass, choice[..., :-1] * there], dim=-1), rng)
        which = chosen.clamp(max=mu.shape[-1] - 1)
        u = torch.rand(self.spacing.shape, generator=rng, device=rng.device, dtype=torch.float64).to(mu.device)
        below = take(low, which).sigmoid() + u * take(mass, which)
        above = (-take(high, which)).sigmoid() + (1 - u) * take(mass, which)
        place = take(mu, which) + take(sigma, which) * (below.clamp(min=1e-300).log() - above.clamp(min=1e-300).log())
        drawn = on_lattice(place.to(self.mu.dtype), self.spacing, self.curve)
        if not self.atoms.shape[-1]:
            return drawn
        return torch.where(chosen > which, take(self.atoms, (chosen - mu.shape[-1]).clamp(min=0)), drawn)

    def mean(self) -> Cells:
        """Of the distribution before rounding, which is within half a spacing of the mean after it."""
        weight = self.choice.exp()
        atoms = (weight[..., :-1] * self.atoms.nan_to_num(0.0)).sum(-1)
        return atoms + weight[..., -1] * (1 - FLOOR) * (self.logits.softmax(-1) * self.mu).sum(-1)

    def tempered(self, temperature: float | Cells) -> "RecordedDistribution":
        """The choice, the weights and the scales of the components are tempered."""
        t = for_all(temperature)
        return replace(self, choice=(self.choice / t).log_softmax(-1), logits=self.logits / t, sigma=self.sigma * t)


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
        return (
            *domain.atoms,
            *[math.nan] * (self.atoms - len(domain.atoms)),
            domain.spacing,
            *bounds_of(domain),
            *curve_of(domain),
        )

    def __call__(self, params: Float[Tensor, "*cells width"]) -> LatticeDistribution:
        k = self.components
        choice, logits, mu, raw, atoms, rest = params.split([self.atoms + 1, k, k, k, self.atoms, 6], dim=-1)
        spacing, low, high = rest[..., :3].unbind(-1)
        curve = bent(rest[..., 3:])
        empty = F.pad(atoms.isnan(), (0, 1))
        start = torch.linspace(-1.5, 1.5, k, device=params.device, dtype=params.dtype)
        sigma = self.min_scale + F.softplus(raw - 1)
        distribution = RecordedDistribution(
            spacing, choice.masked_fill(empty, -1e9).log_softmax(-1), logits, start + mu, sigma, atoms, curve
        )
        return bound(distribution, low, high, curve)
