"""What all laws of numbers on a lattice share: quantiles by bisection over it, entropy from quantiles, a broad floor."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from ..curve import cell_of, cell_top, place_of, steps_at
from ..schema import Recorded
from .law import Cells, Law, take
from .logistic_mixture import log_one_minus_exp

LEVELS = 128  # quantiles that stand for a law when its entropy is asked for
MOST_PARTS, PLACES_AT_ONCE = 32, 2**10  # into which a search for a quantile cuts the lattice, and for how many cells
CELLS_AT_ONCE = 2**14  # of an entropy: times the levels, times the law's own width
PARTS = 48  # into which a bent scale is cut where means of values are asked for
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
        """By a search over the lattice, in double precision: in halves, or, of few cells, in many parts at once."""
        wide = self.each(lambda t: t.double())
        high = (wide.reach() / wide.spacing).ceil()
        low = -high
        parts = max(2, min(MOST_PARTS, PLACES_AT_ONCE // max(1, low.numel())))
        fraction = torch.arange(1, parts, device=low.device, dtype=low.dtype) / parts
        while (high - low > 1).any():
            width = (high - low).unsqueeze(-1)
            places = low.unsqueeze(-1) + (width * fraction).floor().clamp(min=1.0)
            enough = wide.cdfs(places * wide.spacing.unsqueeze(-1)) >= q.unsqueeze(-1)
            ends = torch.cat([low.unsqueeze(-1), places, high.unsqueeze(-1)], dim=-1)
            first = torch.where(enough.any(-1), enough.int().argmax(-1), parts - 1)
            low, high = take(ends, first), take(ends, first + 1)
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

    def mean_of(self, value: Callable[[Tensor], Tensor], ends: Float[Tensor, "*cells end"]) -> Cells:
        """E[value(X)] of a rising function of numbers between these rising ends; numbers beyond them count as the ends.

        Bin by bin the value at the mean of the bin: exact for one number, and nearly so for others if bins are narrow.
        """
        wide, ends = self.each(lambda t: t.double()), ends.double()
        upto = wide.cdfs(ends)
        mass, part = upto.diff(dim=-1), (ends * upto - wide.shortfalls(ends)).diff(dim=-1)
        place = (part / mass.clamp(min=TINY)).maximum(ends[..., :-1]).minimum(ends[..., 1:])
        outer = upto[..., 0] * value(ends[..., :1]).squeeze(-1) + (1 - upto[..., -1]) * value(ends[..., -1:]).squeeze(-1)
        return (mass * value(place)).sum(-1) + outer

    def nearest(self, x: Tensor) -> Tensor:
        """The lattice point nearest to x."""
        return torch.round(x / self.spacing) * self.spacing


def mean_place(law: LatticeLaw, domain: Recorded, weight: Tensor | None = None) -> Cells:
    """Where the mean of the values themselves lies, on a scale that may bend; of the mixture of all cells, if they have weights.

    On a bent scale numbers beyond those that were seen count as the outermost of them: what is hardly possible must not decide.
    """
    total = lambda means: means if weight is None else (weight * means).sum()  # noqa: E731
    if not domain.curve:
        return total(law.mean())
    curve = law.spacing.new_tensor([*domain.curve[:2], 1.0], dtype=torch.float64)
    ends = torch.linspace(domain.knots[0], domain.knots[-1], PARTS + 1, dtype=torch.float64)
    means = law.mean_of(lambda place: steps_at(place, curve), ends.expand(*law.spacing.shape, -1))
    return place_of(total(means), curve).to(law.spacing.dtype)


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


def log_broad(x: Cells, spacing: Cells, curve: Tensor | None = None) -> Cells:
    """The log of what the fixed broad law gives to the interval that x was rounded from."""
    x, spacing = cell_of(x, spacing, curve)
    top, bottom = (x + spacing / 2) / BROAD, (x - spacing / 2) / BROAD
    return F.logsigmoid(top) + F.logsigmoid(-bottom) + log_one_minus_exp(-spacing / BROAD)


def broad_cdf(x: Tensor, spacing: Tensor, curve: Tensor | None = None) -> Tensor:
    """The cdf of the fixed broad law at the lattice point at or below x."""
    return (cell_top(at_or_below(x, spacing), spacing, curve) / BROAD).sigmoid()


def logistic_shortfall(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """E max(0, x - X) of logistic laws."""
    return sigma * F.softplus((x - mu) / sigma)
