"""Arbitrary conditionals with energies (ACE): densities of one number that are known up to a factor.

Strauss and Oliva, Arbitrary Conditional Distributions with Energy (2021), https://arxiv.org/abs/2102.04426
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast, final, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from ..distributions import Distribution, GaussianMixture, GaussianMixtureDistribution
from ..distributions.distribution import Cells, draw_place
from ..errors import InputError
from ..models.conditionals import Conditionals, NetworkDistributions
from ..networks import ResMLP
from ..networks.resmlp import ResidualBlock
from ..schema import Mask, Real, Schema, Values
from ..subsets import GivenAnySize
from .baseline import Baseline

Places = Float[Tensor, "*cells place"]

HIGHEST = 30.0  # the paper's energies lie between 0 and this
FARTHEST_TILT = 5.0  # a tilted density is at most e^(2 x this) times its proposal, or as much smaller, up to a factor


@final
@dataclass(frozen=True)
class ACESize:
    """Networks of a proposal for all variables, and of an energy for one; the defaults are the paper's."""

    width: int = 512
    depth: int = 4
    energy_width: int = 128
    energy_depth: int = 4
    told: int = 64  # numbers that the first network tells the second of every variable
    components: int = 10


class Normaliser(ABC):
    """How the factor of a density is found."""

    @abstractmethod
    def log_factor(self, density: "EnergyDistribution") -> Cells:
        """log of the integral of e^score, for every cell."""


@final
@dataclass(frozen=True)
class Quadrature(Normaliser):
    """An integral over the model's support: `cuts` even pieces and more around every component of the proposal."""

    cuts: int = 400

    def log_factor(self, density: "EnergyDistribution") -> Cells:
        places, weights = self.places(density)
        return (density.score(places) + weights.clamp(min=1e-30).log()).logsumexp(-1)

    def places(self, density: "EnergyDistribution") -> tuple[Places, Places]:
        """Three places to every piece, and their weights."""
        low, high = density.support
        mu, sigma = density.proposal.mu.unsqueeze(-1), density.proposal.sigma.unsqueeze(-1)
        near = (mu + sigma * torch.arange(-6, 6.5, 0.5).to(mu)).flatten(-2)
        even = torch.linspace(low, high, self.cuts + 1).to(mu).expand(*near.shape[:-1], -1)
        cuts = torch.cat([even, near.clamp(low, high)], dim=-1).sort(-1).values
        left, length = cuts[..., :-1, None], cuts.diff(dim=-1).unsqueeze(-1)
        nodes, weights = (torch.from_numpy(a).to(mu) / 2 for a in np.polynomial.legendre.leggauss(3))
        return (left + length * (nodes + 0.5)).flatten(-2), (length * weights).flatten(-2)


@final
class Importance(Normaliser):
    """A mean over draws of the proposal, as in the paper. Too few draws make log p too large, on average."""

    def __init__(self, samples: int = 20, seed: int = 0) -> None:
        if samples < 1:
            raise InputError(f"Importance got samples={samples}; expected at least 1.")
        self.samples, self.rng = samples, Generator().manual_seed(seed)

    def log_factor(self, density: "EnergyDistribution") -> Cells:
        places, log_q = density.proposed(self.samples, self.rng)
        return (density.score(places) - log_q).logsumexp(-1) - math.log(self.samples)


@runtime_checkable
class EnergyModel(Protocol):
    """What a density needs of the model it belongs to."""

    tilted: bool
    support: tuple[float, float]
    normaliser: Normaliser

    def energy(self, x: Places, told: Tensor, variable: Tensor) -> Places: ...


@final
@dataclass(frozen=True)
class EnergyDistribution(Distribution):
    """A real number with density e^score / Z, where the score is minus an energy, plus log q if the density is tilted.

    All but density and draws is computed from a fine table over the support. A draw is one of `draws` of the proposal, taken by
    weight (importance resampling): exact only as there are many of them.
    """

    proposal: GaussianMixtureDistribution
    told: Float[Tensor, "*cells told"]
    variable: Int[Tensor, "*cells"]
    model: EnergyModel
    draws: ClassVar[int] = 200

    @property
    def support(self) -> tuple[float, float]:
        return self.model.support

    def score(self, x: Places) -> Places:
        """log of the density at several places, up to a constant of the cell."""
        minus_energy = -self.model.energy(x, self.told, self.variable)
        return minus_energy + self.log_q(x).detach() if self.model.tilted else minus_energy

    def log_q(self, x: Places) -> Places:
        q = self.proposal
        return GaussianMixtureDistribution(q.logits.unsqueeze(-2), q.mu.unsqueeze(-2), q.sigma.unsqueeze(-2)).log_prob(x)

    @torch.no_grad()
    def proposed(self, count: int, rng: Generator) -> tuple[Places, Places]:
        """Draws of the proposal and their log densities; no gradient passes."""
        q = self.proposal.map_tensors(lambda t: t.unsqueeze(-2).expand(*t.shape[:-1], count, t.shape[-1]))
        x = q.sample(rng)
        return x, q.log_prob(x)

    def log_prob(self, x: Cells) -> Cells:
        return self.score(x.unsqueeze(-1)).squeeze(-1) - self.model.normaliser.log_factor(self)

    def sample(self, rng: Generator) -> Cells:
        places, log_q = self.proposed(self.draws, rng)
        chosen = draw_place((self.score(places) - log_q).double().softmax(-1), rng)
        return places.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)

    def table(self) -> tuple[Places, Places]:
        """Places in order and the probability around each."""
        places, weights = Quadrature().places(self)
        return places, (self.score(places) + weights.clamp(min=1e-30).log()).softmax(-1)

    def cdf(self, x: Cells) -> Cells:
        places, mass = self.table()
        below = places <= x.unsqueeze(-1)
        return torch.where(below, mass, 0.0).sum(-1)

    def quantile(self, q: Cells) -> Cells:
        places, mass = self.table()
        index = torch.searchsorted(mass.cumsum(-1), q.unsqueeze(-1)).clamp(max=mass.shape[-1] - 1)
        return places.gather(-1, index).squeeze(-1)

    def mean(self) -> Cells:
        places, mass = self.table()
        return (places * mass).sum(-1)

    def entropy(self) -> Cells:
        places, weights = Quadrature().places(self)
        score = self.score(places)
        log_p = score - (score + weights.clamp(min=1e-30).log()).logsumexp(-1, keepdim=True)
        return -(weights * log_p.exp() * log_p).sum(-1)

    def tempered(self, temperature: float) -> "EnergyDistribution":
        raise InputError(f"An energy has no distribution at temperature={temperature} that could be drawn from; use 1.")


@final
class ACE(Baseline):
    r"""Real numbers, any of them given any others: a model like ours, with energies for heads.

    .. math:: p(x_i \mid x_G) = e^{-E(x_i, i, c_i)} / Z_i, \qquad
              \log Z_i \approx \log \tfrac1K \sum_k e^{-E(x_k, i, c_i)} / q(x_k), \quad x_k \sim q(\cdot \mid x_G)

    The proposal q is a mixture from the network that also makes the :math:`c_i`. The paper's energy lies in 0 .. 30. Where the
    proposal draws nothing, its integral sees nothing; `tilted`, which is ours, has the density
    :math:`q(x) e^{-E(x)} / Z` with a bounded E that begins at 0, and stays near q.

    Training sums over all targets of a random question: log q, and `alpha` times log p (the paper begins with alpha = 0).
    `normaliser` is what answers use: quadrature unless it is set to another. `support` is where all numbers are expected.
    """

    def __init__(
        self,
        schema: Schema,
        size: ACESize = ACESize(),
        tilted: bool = True,
        samples: int = 20,
        alpha: float = 1.0,
        support: tuple[float, float] = (-10.0, 10.0),
        seed: int = 0,
    ) -> None:
        super().__init__()
        wrong = [variable.name for variable in schema if not isinstance(variable.domain, Real)]
        if wrong:
            raise InputError(f"ACE is a model of real numbers; variable {wrong[0]!r} is none. Use an any-order model for codes.")
        if samples < 2 or not support[0] < support[1]:
            raise InputError(f"ACE got samples={samples}, support={support}; expected at least 2, and two rising numbers.")
        self.schema, self.size, self.tilted, self.alpha, self.support = schema, size, tilted, alpha, support
        self.training_samples, self.normaliser = samples, cast(Normaliser, Quadrature())
        self.head = GaussianMixture(size.components)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = ResMLP(schema, len(schema) * (self.head.width + size.told), size.width, size.depth)
            self.first = nn.Linear(1 + len(schema) + size.told, size.energy_width)
            self.blocks = nn.ModuleList(ResidualBlock(size.energy_width) for _ in range(size.energy_depth))
            self.last = nn.Linear(size.energy_width, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        """As of any model of ours: all that `inference` offers can be asked of it."""
        seen = torch.where(given, x, 0.0).to(self.last.weight.dtype)
        params = self.network(seen, given).unflatten(-1, (len(self.schema), -1))
        number = torch.arange(len(self.schema)).to(params).expand(len(x), -1).unsqueeze(-1)
        return Conditionals([NetworkDistributions(torch.arange(len(self.schema)), self.density, torch.cat([params, number], -1))])

    def density(self, params: Float[Tensor, "*cells number"]) -> EnergyDistribution:
        mixture, told, variable = params.split([self.head.width, self.size.told, 1], dim=-1)
        return EnergyDistribution(self.head(mixture), told, variable.squeeze(-1).long(), self)

    def energy(self, x: Places, told: Float[Tensor, "*cells told"], variable: Int[Tensor, "*cells"]) -> Places:
        """Of every place; the parts that are the same for all places of a cell are computed once."""
        which = F.one_hot(variable, len(self.schema)).to(told.dtype)
        weight = self.first.weight
        same = torch.cat([which, told], dim=-1) @ weight[:, 1:].T + self.first.bias
        h = same.unsqueeze(-2) + x.to(told.dtype).unsqueeze(-1) * weight[:, 0]
        rows = h.flatten(0, -2)
        for block in self.blocks:
            rows = block(rows)
        raw = self.last(rows).view(x.shape)
        return FARTHEST_TILT * (raw / FARTHEST_TILT).tanh() if self.tilted else F.softplus(raw).clamp(max=HIGHEST)

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        """log q + alpha log p of all targets of a random question, the factor from few draws: what the paper trains."""
        question = GivenAnySize().sample(shown, rng)
        density = self(x, question.given).parts[0].at(question.target)
        assert isinstance(density, EnergyDistribution)
        value = x[question.target]
        each = density.proposal.log_prob(value)
        if self.alpha:
            places, log_q = density.proposed(self.training_samples, rng)
            log_z = (density.score(places) - log_q).logsumexp(-1) - math.log(self.training_samples)
            each = each + self.alpha * (density.score(value.unsqueeze(-1)).squeeze(-1) - log_z)
        row = question.target.nonzero()[:, 0]
        return torch.zeros(len(x), dtype=each.dtype).index_add(0, row, each)

    @torch.no_grad()
    def held_out(self, x: Values, present: Mask, rng: Generator) -> float:
        """What the targets of random questions cost, by quadrature; under the proposal if alpha is 0."""
        question = GivenAnySize().sample(present, rng)
        total = 0.0
        for rows in torch.arange(len(x)).split(64):
            density = self(x[rows], question.given[rows]).parts[0].at(question.target[rows])
            assert isinstance(density, EnergyDistribution)
            scored: Distribution = density if self.alpha else density.proposal
            total -= float(scored.log_prob(x[rows][question.target[rows]]).sum())
        return total / len(x)


@torch.no_grad()
def factor_bias(
    model: ACE, x: Values, given: Mask, samples: tuple[int, ...] = (20, 100, 500, 2000), seed: int = 0
) -> dict[int, float]:
    """By how many nats log p of a variable comes out too large, on average, with so many draws instead of quadrature."""
    density = model(x, given).parts[0].at(~given)
    assert isinstance(density, EnergyDistribution)
    exact = Quadrature().log_factor(density)
    return {count: float((exact - Importance(count, seed).log_factor(density)).mean()) for count in samples}
