"""A distribution of numbers that ends where no value can lie: no negative ages, no heights far beyond all that were seen."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from .distribution import Cells
from .lattice import LEAST_POSITIVE, LatticeDistribution, broad_cdf, cell_top, log_broad

MASS_OUTSIDE = 1e-6  # what is left for all values beyond the bounds: no recorded value is ever impossible
FAR_IN_SCALES = 1e4  # in place of no bound: no distribution has mass there


class Ends(NamedTuple):
    """What lies below the lower bound, and between the bounds."""

    below: Cells
    inside: Cells


@final
@dataclass(frozen=True)
class BoundedNumber(LatticeDistribution):
    r"""A distribution between two points of its lattice, both included, and a millionth of a broad distribution beyond them.

    .. math:: P(x) = (1 - \epsilon) \, P_0(x) / P_0(low \le X \le high) \text{ inside}, \quad
        \epsilon \, B(x) / B(X < low \text{ or } X > high) \text{ outside}
    """

    distribution: LatticeDistribution
    low: Cells
    high: Cells
    outside: Cells  # epsilon; 0 where there are no bounds
    curve: Float[Tensor, "*cells 3"] | None = None  # how the lattice bends

    def log_prob(self, x: Cells) -> Cells:
        inside = torch.log1p(-self.outside) + self.distribution.log_prob(x) - self._ends.inside.log()
        outside = (
            self.outside.clamp(min=LEAST_POSITIVE).log() + log_broad(x, self.spacing, self.curve) - self._broad_outside.log()
        )
        return torch.where(self._holds(x), inside, outside)

    def cdf(self, x: Cells) -> Cells:
        return self.cdfs(x.unsqueeze(-1)).squeeze(-1)

    def cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        spacing, low, high, below, inside, share, rest = (
            t.unsqueeze(-1) for t in (self.spacing, *self._places, *self._ends, self.outside, self._broad_outside)
        )
        within = share_inside(self.distribution.cdfs(x), below, inside)
        lower, upper = torch.minimum(x, low), torch.maximum(x, high)
        curve = None if self.curve is None else self.curve.unsqueeze(-2)
        beyond = broad_cdf(lower, spacing, curve) + broad_cdf(upper, spacing, curve) - broad_cdf(high, spacing, curve)
        return (1 - share) * within + share * beyond / rest

    def reach(self) -> Cells:
        return self.distribution.reach()

    def mean(self) -> Cells:
        """Of what lies between the bounds, before rounding."""
        top = self._edges[1]
        mean = (top - self.integrated_cdf(top)).minimum(self.high).maximum(self.low)
        return torch.where(self.outside > 0, mean, self.distribution.mean())

    def integrated_cdf(self, x: Cells) -> Cells:
        return self.integrated_cdfs(x.unsqueeze(-1)).squeeze(-1)

    def integrated_cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        """Of what lies between the bounds."""
        low, high, below, inside = (t.unsqueeze(-1) for t in (*self._edges, *self._ends))
        upto = torch.minimum(x, high).maximum(low)
        area = self.distribution.integrated_cdfs(upto) - self.distribution.integrated_cdfs(low) - below * (upto - low)
        return area / inside + (x - high).clamp(min=0.0)

    def sample(self, rng: Generator) -> Cells:
        """Drawn from what the distribution has inside; the few that fall outside by a quantile."""
        drawn = self.distribution.sample_between(*self._edges_in(torch.float64), rng)
        u, v = torch.rand(2, *drawn.shape, generator=rng, device=rng.device, dtype=torch.float64).to(drawn.device)
        again = ~self._holds(drawn) | (v < self.outside)
        if again.any():
            few = self.map_tensors(lambda t: t[again].double())
            drawn[again] = few.quantile(few._level(u[again], v[again] < few.outside)).to(drawn.dtype)
        return drawn

    def tempered(self, temperature: float | Cells) -> "BoundedNumber":
        return replace(self, distribution=self.distribution.tempered(temperature))

    def _holds(self, x: Cells) -> Bool[Tensor, "*cells"]:
        return (x > self.low - self.spacing / 2) & (x < self.high + self.spacing / 2)

    def _level(self, u: Cells, beyond: Bool[Tensor, "*cells"]) -> Cells:
        """The level of the cdf that stands for a number between 0 and 1: among all values inside, or all that lie beyond."""
        lowest = self.outside * broad_cdf(self._places[0], self.spacing, self.curve) / self._broad_outside
        outer = self.outside * u
        return torch.where(beyond, outer + (1 - self.outside) * (outer > lowest), lowest + (1 - self.outside) * u)

    @cached_property
    def _places(self) -> tuple[Cells, Cells]:
        return just_outside(self.low, self.high, self.spacing)

    @cached_property
    def _edges(self) -> tuple[Cells, Cells]:
        return self._edges_in(self.low.dtype)

    def _edges_in(self, dtype: torch.dtype) -> tuple[Cells, Cells]:
        """Where what is rounded to the bounds begins and ends; on a fine lattice float32 may not tell that from the bounds."""
        low, high, spacing = (t.to(dtype) for t in (self.low, self.high, self.spacing))
        bottom = low - spacing / 2 if self.curve is None else cell_top(low - spacing, spacing, self.curve)
        return bottom, cell_top(high, spacing, self.curve)

    @cached_property
    def _ends(self) -> Ends:
        below, upto = self.distribution.cdfs(torch.stack(self._places, dim=-1)).unbind(-1)
        return Ends(below, (upto - below).clamp(min=LEAST_POSITIVE))

    @cached_property
    def _broad_outside(self) -> Cells:
        below, upto = (broad_cdf(place, self.spacing, self.curve) for place in self._places)
        return (below + (1 - upto)).clamp(min=LEAST_POSITIVE)


def just_outside(low: Tensor, high: Tensor, spacing: Tensor) -> tuple[Tensor, Tensor]:
    """Where to ask a cdf for what lies below bounds and up to them: between lattice points, out of reach of rounding errors."""
    return low - 0.75 * spacing - 1e-6 * low.abs(), high + 0.25 * spacing + 1e-6 * high.abs()


def share_inside(cdf: Tensor, below: Tensor, inside: Tensor) -> Tensor:
    """The cdf of what lies inside, from that of all and what of it lies below the bounds and inside."""
    return ((cdf - below) / inside.clamp(min=LEAST_POSITIVE)).clamp(0.0, 1.0)


def bound(distribution: LatticeDistribution, low: Cells, high: Cells, curve: Tensor | None = None) -> LatticeDistribution:
    """The distribution between these bounds, both finite; infinite where there are none."""
    free = low.isinf()
    if free.all():
        return distribution
    outside = torch.where(free, 0.0, MASS_OUTSIDE).to(low.dtype)
    return BoundedNumber(
        distribution.spacing, distribution, low.clamp(min=-FAR_IN_SCALES), high.clamp(max=FAR_IN_SCALES), outside, curve
    )


def bent(curve: Float[Tensor, "*cells 3"]) -> Float[Tensor, "*cells 3"] | None:
    """The curve of these cells; none if all of them have an even lattice."""
    return None if (curve[..., 2] == 0).all() else curve
