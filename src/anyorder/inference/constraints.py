"""Evidence that leaves a value open: it lies in a range, or in a set. Drawn within it, and weighed by how likely it was."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from ..distributions import Distribution, LatticeDistribution
from ..distributions.distribution import Cells, draw_code
from ..errors import InputError
from ..models.any_order import Model
from ..schema import Mask, Values


@dataclass(frozen=True)
class Allowed(ABC):
    """Which values one variable may have, in model space."""

    @abstractmethod
    def mass(self, distribution: Distribution) -> Cells:
        """The probability of being allowed."""

    @abstractmethod
    def draw(self, distribution: Distribution, rng: Generator) -> Cells:
        """A value from the distribution restricted to what is allowed."""

    @abstractmethod
    def holds(self, values: Float[Tensor, " row"], spacing: float) -> Bool[Tensor, " row"]:
        """Which of these values are allowed; values lie so far apart."""


@final
@dataclass(frozen=True)
class Interval(Allowed):
    """Both ends included, points of the lattice if there is one; an infinite end is open."""

    low: float
    high: float

    def mass(self, distribution: Distribution) -> Cells:
        below, upto = self._bounds(distribution)
        return (upto - below).clamp(min=0)

    def draw(self, distribution: Distribution, rng: Generator) -> Cells:
        below, upto = self._bounds(distribution)
        u = torch.rand(below.shape, generator=rng, device=rng.device, dtype=torch.float64).to(below.device)
        return distribution.quantile(below + (upto - below) * u).clamp(self.low, self.high)

    def holds(self, values: Float[Tensor, " row"], spacing: float) -> Bool[Tensor, " row"]:
        return (values > self.low - spacing / 2) & (values < self.high + spacing / 2)

    def _bounds(self, distribution: Distribution) -> tuple[Cells, Cells]:
        """P(X < low) and P(X <= high), in double precision where the distribution can."""
        if isinstance(distribution, LatticeDistribution):
            distribution = distribution.map_tensors(lambda t: t.double())
        low, high = (torch.full_like(allowed_cells(distribution), end) for end in (self.low, self.high))
        below = distribution.cdf(low) - distribution.log_prob(low).exp() if self.low > -math.inf else torch.zeros_like(low)
        upto = distribution.cdf(high) if self.high < math.inf else torch.ones_like(high)
        return below.clamp(min=0).double(), upto.double()


@final
@dataclass(frozen=True)
class Members(Allowed):
    """One of these values."""

    values: tuple[float, ...]

    def mass(self, distribution: Distribution) -> Cells:
        return self._log_masses(distribution).logsumexp(-1).exp()

    def draw(self, distribution: Distribution, rng: Generator) -> Cells:
        masses = self._log_masses(distribution)
        return masses.new_tensor(self.values)[draw_code(masses, rng)]

    def holds(self, values: Float[Tensor, " row"], spacing: float) -> Bool[Tensor, " row"]:
        return ((values[:, None] - values.new_tensor(self.values)).abs() < spacing / 2).any(-1)

    def _log_masses(self, distribution: Distribution) -> Float[Tensor, "*cells members"]:
        like = allowed_cells(distribution)
        return torch.stack([distribution.log_prob(torch.full_like(like, value)) for value in self.values], dim=-1)


def allowed_cells(distribution: Distribution) -> Cells:
    """A tensor with one number for each of the distribution's cells."""
    return distribution.spacing if isinstance(distribution, LatticeDistribution) else distribution.mean()


class Particles(NamedTuple):
    """Rows in which the open evidence has got values, and how much each row counts; weights sum to 1."""

    x: Values
    given: Mask
    weight: Float[Tensor, " batch"]
    mass: float  # the probability of the evidence given the values that were known

    @property
    def effective(self) -> float:
        """How many equally weighted rows they are worth."""
        return float(1 / self.weight.square().sum())

    def resampled(self, count: int, rng: Generator) -> Values:
        """`count` rows, each as often as it counts: by evenly spaced marks on the running sum of weights."""
        marks = (torch.arange(count, dtype=torch.float64) + torch.rand((), generator=rng, dtype=torch.float64)) / count
        places = torch.searchsorted(self.weight.cumsum(0), marks).clamp(max=len(self.x) - 1)
        return self.x[places[torch.randperm(count, generator=rng)]]


@torch.no_grad()
def sample_constrained(model: Model, x: Values, given: Mask, allowed: Mapping[int, Allowed], rng: Generator) -> Particles:
    r"""Give every open variable a value inside what is allowed, one after the other.

    Each value is drawn from the model's distribution restricted to the allowed set, and the row is weighed by the product of the
    sets' probabilities (sequential importance sampling). With a single open variable all weights are equal and the draws
    are exact; with several they are exact in the limit of many rows.
    """
    x, given = x.clone(), given.clone()
    log_weight = torch.zeros(len(x), dtype=torch.float64)
    for variable, limit in allowed.items():
        distribution = model(x, given).distribution(variable)
        mass = limit.mass(distribution).double()
        if not (mass > 0).any():
            name = model.schema.variables[variable].name
            raise InputError(f"The model gives what is asked of {name!r} no probability at all, given the rest. Widen it.")
        log_weight += mass.clamp(min=1e-300).log()
        x[:, variable] = limit.draw(distribution, rng).to(x.dtype)
        given[:, variable] = True
    return Particles(x, given, log_weight.softmax(0), float(log_weight.exp().mean()))
