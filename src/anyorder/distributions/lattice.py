"""A scale that bends: even near its start and even in the logarithm far from it, on which recorded values lie ever closer.

A curve is three numbers, the last dimension of a tensor: `scale`, `start` and `ratio`. With m the number of steps in which a
value was written down, counted from the value at place 0,

    m = ratio (sinh(scale place + start) - sinh(start))

A ratio of 0 stands for values without such steps: every multiple of the spacing may be recorded. Places are kept as whole
multiples of a `spacing` so fine that float32 tells them apart: near the start many of them hold no recorded value, far from
it one may hold several, which are then told apart no more.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from ..schema import Recorded
from .distribution import Cells, Distribution, take
from .logistic_mixture import log_one_minus_exp

Curve = Float[Tensor, "*cells 3"]
FARTHEST_PLACE = 700.0  # of what is given to sinh: float64 ends soon after


def steps_from(place: Tensor, curve: Curve) -> Tensor:
    """How many steps a place is away from place 0, in double precision and not rounded."""
    scale, start, ratio = curve.double().unbind(-1)
    return ratio * ((scale * place.double() + start).clamp(-FARTHEST_PLACE, FARTHEST_PLACE).sinh() - start.sinh())


def place_of(steps: Tensor, curve: Curve) -> Tensor:
    """Where so many steps lie, in double precision."""
    scale, start, ratio = curve.double().unbind(-1)
    return ((steps.double() / ratio + start.sinh()).asinh() - start) / scale


def cell_top(x: Tensor, spacing: Tensor, curve: Curve | None) -> Tensor:
    """The upper end of what was rounded to the last recorded value at or below x, a multiple of the spacing."""
    if curve is None:
        return x + spacing / 2
    return _top((x.double() / spacing.double()).round(), spacing, curve).to(x.dtype)


def cell_of(x: Tensor, spacing: Tensor, curve: Curve | None) -> tuple[Tensor, Tensor]:
    """The middle and the width of what was rounded to x; no width where no recorded value lies."""
    if curve is None:
        return x, spacing
    steps = (x.double() / spacing.double()).round()
    top, bottom = _top(steps, spacing, curve), _top(steps - 1, spacing, curve)
    even = curve[..., 2] == 0
    middle, width = (top + bottom) / 2, (top - bottom).clamp(min=1e-30)
    return torch.where(even, x, middle.to(x.dtype)), torch.where(even, spacing, width.to(x.dtype))


def on_lattice(place: Tensor, spacing: Tensor, curve: Curve | None) -> Tensor:
    """The recorded value that a place is rounded to."""
    if curve is None:
        return torch.round(place / spacing) * spacing
    steps, fine = steps_from(place, curve).round(), spacing.double()
    recorded = torch.where(curve[..., 2] == 0, place.double(), place_of(steps, curve))
    return (torch.round(recorded / fine) * fine).to(place.dtype)


def _top(steps: Tensor, spacing: Tensor, curve: Curve) -> Tensor:
    """Halfway, as values are written down, between the last one at or below this multiple of the spacing and the next."""
    end = (steps + 0.5) * spacing.double()
    return torch.where(curve[..., 2] == 0, end, place_of(steps_from(end, curve).floor() + 0.5, curve))


LEVELS = 128  # quantiles that stand for a distribution when its entropy is asked for
MOST_PARTS, PLACES_AT_ONCE = 32, 2**10  # into which a search for a quantile cuts the lattice, and for how many cells
TRIES = 6  # of a draw that has to lie between two ends
ENTROPY_CELLS_AT_ONCE = 2**14  # of an entropy: times the levels, times the distribution's own width
PARTS = 48  # into which a bent scale is cut where means of values are asked for
LEAST_POSITIVE = 1e-37  # the least number float32 holds with full precision
FLOOR, BROAD = 1e-3, 3.0  # share and scale of a fixed broad component: no recorded value is ever impossible


@dataclass(frozen=True)
class LatticeDistribution(Distribution):
    """The distribution of a number that was written down as a whole multiple of `spacing`; `log_prob` is the mass of
    such a value.
    """

    spacing: Cells

    @abstractmethod
    def reach(self) -> Cells:
        """How far from 0 there can be probability worth a quantile."""

    @abstractmethod
    def tempered(self, temperature: float | Cells) -> "LatticeDistribution":
        """Every cell may have a temperature of its own."""

    @abstractmethod
    def integrated_cdf(self, x: Cells) -> Cells:
        """E max(0, x - X), the area under the cdf up to x, before rounding."""

    def sample_between(self, bottom: Cells, top: Cells, rng: Generator) -> Cells:
        """A draw that lies between two ends, if a few tries find one; a distribution that can do better overrides it."""
        drawn = self.sample(rng)
        for _ in range(TRIES):
            lost = (drawn <= bottom) | (drawn >= top)
            if not lost.any():
                break
            drawn[lost] = self.map_tensors(itemgetter(lost)).sample(rng)
        return drawn

    def cdfs_between_bins(self, edges: Float[Tensor, "*cells edge"]) -> Float[Tensor, "*cells edge"]:
        """P(X <= edge), at edges between bins inside which alone the distribution may have been changed."""
        return self.cdfs(edges)

    def means_upto(self, edges: Float[Tensor, "*cells edge"]) -> Float[Tensor, "*cells edge"]:
        """E[X; X <= edge] before rounding, at such edges: the edge times its cdf, less the area under it."""
        return edges * self.cdfs(edges) - self.integrated_cdfs(edges)

    def integrated_cdfs(self, x: Float[Tensor, "*cells place"]) -> Float[Tensor, "*cells place"]:
        """The shortfall at several places of every cell."""
        cells, count = self.spacing.ndim, x.shape[-1]
        return self.map_tensors(lambda t: t.unsqueeze(cells).expand(*t.shape[:cells], count, *t.shape[cells:])).integrated_cdf(x)

    def quantile(self, q: Cells) -> Cells:
        """By a search over the lattice, in double precision: in halves, or, of few cells, in many parts at once."""
        wide = self.map_tensors(lambda t: t.double())
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
        flat = self.map_tensors(lambda t: t.flatten(0, d - 1) if d else t.unsqueeze(0))
        out = [self._entropy_of(flat, rows) for rows in torch.arange(self.spacing.numel()).split(ENTROPY_CELLS_AT_ONCE // LEVELS)]
        return torch.cat(out).view(self.spacing.shape) if out else self.spacing.new_zeros(self.spacing.shape)

    @staticmethod
    def _entropy_of(flat: "LatticeDistribution", rows: Tensor) -> Float[Tensor, " some"]:
        wide = flat.map_tensors(lambda t: t[rows].unsqueeze(1).expand(len(rows), LEVELS, *t.shape[1:]))
        levels = (torch.arange(LEVELS, device=flat.spacing.device, dtype=flat.spacing.dtype) + 0.5) / LEVELS
        return -wide.log_prob(wide.quantile(levels.expand(len(rows), -1))).mean(-1)

    def mean_of(self, value: Callable[[Tensor], Tensor], ends: Float[Tensor, "*cells end"]) -> Cells:
        """E[value(X)] of a rising function of numbers between these rising ends; numbers beyond them count as the ends.

        Bin by bin the value at the mean of the bin: exact for one number, and nearly so for others if bins are narrow.
        """
        wide, ends = self.map_tensors(lambda t: t.double()), ends.double()
        upto = wide.cdfs(ends)
        mass, part = upto.diff(dim=-1), (ends * upto - wide.integrated_cdfs(ends)).diff(dim=-1)
        place = (part / mass.clamp(min=LEAST_POSITIVE)).maximum(ends[..., :-1]).minimum(ends[..., 1:])
        outer = upto[..., 0] * value(ends[..., :1]).squeeze(-1) + (1 - upto[..., -1]) * value(ends[..., -1:]).squeeze(-1)
        return (mass * value(place)).sum(-1) + outer

    def nearest(self, x: Tensor) -> Tensor:
        """The lattice point nearest to x."""
        return torch.round(x / self.spacing) * self.spacing


def mean_place(distribution: LatticeDistribution, domain: Recorded, weight: Tensor | None = None) -> Cells:
    """Where the mean of the values themselves lies, on a scale that may bend; of the mixture of all cells, if they have weights.

    On a bent scale numbers beyond those that were seen count as the outermost of them: what is hardly possible must not decide.
    """
    total = lambda means: means if weight is None else (weight * means).sum()  # noqa: E731
    if not domain.curve:
        return total(distribution.mean())
    curve = distribution.spacing.new_tensor([*domain.curve[:2], 1.0], dtype=torch.float64)
    ends = torch.linspace(domain.knots[0], domain.knots[-1], PARTS + 1, dtype=torch.float64)
    means = distribution.mean_of(lambda place: steps_from(place, curve), ends.expand(*distribution.spacing.shape, -1))
    return place_of(total(means), curve).to(distribution.spacing.dtype)


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
    """What each logistic distribution gives to the interval that x was rounded from; in linear space, three times as
    fast as in logs.
    """
    width = spacing / sigma
    top = (x + spacing / 2 - mu) / sigma
    return top.sigmoid() * (width - top).sigmoid() * -torch.expm1(-width)


def with_floor(mass: Cells, x: Cells, spacing: Cells) -> Cells:
    """The log of a mass mixed with the fixed broad distribution, exact however far out x lies: what underflows is far
    below it.
    """
    log_mass = torch.where(mass > LEAST_POSITIVE, mass.clamp(min=LEAST_POSITIVE).log(), -1e30)
    return torch.logaddexp(math.log(1 - FLOOR) + log_mass, math.log(FLOOR) + log_broad(x, spacing))


def log_broad(x: Cells, spacing: Cells, curve: Tensor | None = None) -> Cells:
    """The log of what the fixed broad distribution gives to the interval that x was rounded from."""
    x, spacing = cell_of(x, spacing, curve)
    top, bottom = (x + spacing / 2) / BROAD, (x - spacing / 2) / BROAD
    return F.logsigmoid(top) + F.logsigmoid(-bottom) + log_one_minus_exp(-spacing / BROAD)


def broad_cdf(x: Tensor, spacing: Tensor, curve: Tensor | None = None) -> Tensor:
    """The cdf of the fixed broad distribution at the lattice point at or below x."""
    return (cell_top(at_or_below(x, spacing), spacing, curve) / BROAD).sigmoid()


def logistic_integrated_cdf(x: Tensor, mu: Tensor, sigma: Tensor) -> Tensor:
    """E max(0, x - X) of logistic distributions."""
    return sigma * F.softplus((x - mu) / sigma)
