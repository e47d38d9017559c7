"""What all laws of numbers on a lattice share: quantiles by bisection over it, entropy from quantiles, a broad floor."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from .law import Cells, Law
from .logistic_mixture import log_one_minus_exp

LEVELS = 128  # quantiles that stand for a law when its entropy is asked for
CELLS_AT_ONCE = 2**14  # of an entropy: times the levels, times the law's own width
TINY = 1e-37  # the least number float32 holds with full precision
FLOOR, BROAD = 1e-3, 3.0  # share and scale of a fixed broad component: no recorded value is ever impossible


@dataclass(frozen=True)
class LatticeLaw(Law):
    """The law of a number that was written down as a whole multiple of `spacing`; `log_prob` is the mass of such a value."""

    spacing: Cells

    @abstractmethod
    def reach(self) -> Cells:
        """How far from 0 there can be probability worth a quantile."""

    @abstractmethod
    def tempered(self, temperature: float | Cells) -> "LatticeLaw":
        """Every cell may have a temperature of its own."""

    @abstractmethod
    def shortfall(self, x: Cells) -> Cells:
        """E max(0, x - X), the area under the cdf up to x, before rounding."""

    def cdfs_between_bins(self, edges: Float[Tensor, "*cells edge"]) -> Float[Tensor, "*cells edge"]:
        """P(X <= edge), at edges between bins inside which alone the law may have been changed."""
        return self.cdfs(edges)

    def means_upto(self, edges: Float[Tensor, "*cells edge"]) -> Float[Tensor, "*cells edge"]:
        """E[X; X <= edge] before rounding, at such edges: the edge times its cdf, less the area under it."""
        return edges * self.cdfs(edges) - self.shortfalls(edges)

    def shortfalls(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        """The shortfall at several places of every cell."""
        cells, count = self.spacing.ndim, x.shape[-1]
        return self.each(lambda t: t.unsqueeze(cells).expand(*t.shape[:cells], count, *t.shape[cells:])).shortfall(x)

    def quantile(self, q: Cells) -> Cells:
        """By bisection over the lattice, in double precision."""
        wide = self.each(lambda t: t.double())
        high = (wide.reach() / wide.spacing).ceil()
        low = -high
        while (high - low > 1).any():
            middle = ((low + high) / 2).floor()
            enough = wide.cdf(middle * wide.spacing) >= q
            low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
        return (high * wide.spacing).to(self.spacing.dtype)

    def entropy(self) -> Cells:
        """The mean of minus log P over evenly spaced quantiles: an approximation, good to a few hundredths of a nat."""
        d = self.spacing.ndim
        flat = self.each(lambda t: t.flatten(0, d - 1) if d else t.unsqueeze(0))
        out = [self._entropy_of(flat, rows) for rows in torch.arange(self.spacing.numel()).split(CELLS_AT_ONCE // LEVELS)]
        return torch.cat(out).view(self.spacing.shape) if out else self.spacing.new_zeros(self.spacing.shape)

    @staticmethod
    def _entropy_of(flat: "LatticeLaw", rows: Tensor) -> Float[Tensor, " some"]:
        wide = flat.each(lambda t: t[rows].unsqueeze(1).expand(len(rows), LEVELS, *t.shape[1:]))
        levels = (torch.arange(LEVELS, device=flat.spacing.device, dtype=flat.spacing.dtype) + 0.5) / LEVELS
        return -wide.log_prob(wide.quantile(levels.expand(len(rows), -1))).mean(-1)

    def nearest(self, x: Tensor) -> Tensor:
        """The lattice point nearest to x."""
        return torch.round(x / self.spacing) * self.spacing


def for_all(temperature: float | Cells) -> float | Float[Tensor, "*cells 1"]:
    """A temperature of every cell, ready for all its components."""
    return temperature.unsqueeze(-1) if isinstance(temperature, Tensor) else temperature


def at_or_below(x: Tensor, spacing: Tensor) -> Tensor:
    """The lattice point at or below x; one that x misses by an error of float32 counts as there."""
    steps = x / spacing
    return torch.floor(steps + (1e-3 + 3e-7 * steps.abs()).clamp(max=0.4)) * spacing


def logistic_mass(
    x: Float[Tensor, "*cells 1"],
    mu: Float[Tensor, "*cells components"],
    sigma: Float[Tensor, "*#cells components_or_one"],
    spacing: Float[Tensor, "*cells 1"],
) -> Float[Tensor, "*cells components"]:
    """What each logistic law gives to the interval that x was rounded from; in linear space, three times as fast as in logs."""
    width = spacing / sigma
    top = (x + spacing / 2 - mu) / sigma
    return top.sigmoid() * (width - top).sigmoid() * -torch.expm1(-width)


def with_floor(mass: Cells, x: Cells, spacing: Cells) -> Cells:
    """The log of a mass mixed with the fixed broad law, exact however far out x lies: what underflows is far below it."""
    log_mass = torch.where(mass > TINY, mass.clamp(min=TINY).log(), -1e30)
    return torch.logaddexp(math.log(1 - FLOOR) + log_mass, math.log(FLOOR) + log_broad(x, spacing))


def log_broad(x: Cells, spacing: Cells) -> Cells:
    """The log of what the fixed broad law gives to the interval that x was rounded from."""
    top, bottom = (x + spacing / 2) / BROAD, (x - spacing / 2) / BROAD
    return F.logsigmoid(top) + F.logsigmoid(-bottom) + log_one_minus_exp(-spacing / BROAD)


def broad_cdf(x: Tensor, spacing: Tensor) -> Tensor:
    """The cdf of the fixed broad law at the lattice point at or below x."""
    return ((at_or_below(x, spacing) + spacing / 2) / BROAD).sigmoid()


def logistic_shortfall(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """E max(0, x - X) of logistic laws."""
    return sigma * F.softplus((x - mu) / sigma)
