"""One of several unordered values from a score for each."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from .distribution import Cells, DiscreteDistribution, Head

IMPOSSIBLE = -1e9  # the score of a code that a variable does not have, where it shares a table with others that do


@final
@dataclass(frozen=True)
class CategoricalDistribution(DiscreteDistribution):
    r""":math:`P(X = k) \propto e^{\text{logits}_k}`."""

    logits: Float[Tensor, "*cells levels"]

    def log_pmf(self) -> Float[Tensor, "*cells levels"]:
        return self.logits.log_softmax(-1)

    def tempered(self, temperature: float) -> "CategoricalDistribution":
        return CategoricalDistribution(self.log_pmf() / temperature)


@final
@dataclass(frozen=True)
class Categorical(Head):
    """A code 0 .. levels-1."""

    kind: ClassVar[str] = "categorical"
    levels: int

    @property
    def width(self) -> int:
        return self.levels

    def __call__(self, params: Float[Tensor, "*cells width"]) -> CategoricalDistribution:
        return CategoricalDistribution(params)


@final
@dataclass(frozen=True)
class BernoulliDistribution(DiscreteDistribution):
    r""":math:`P(X = 1) = \sigma(\text{logit})`."""

    logit: Cells

    def log_pmf(self) -> Float[Tensor, "*cells levels"]:
        return torch.stack([F.logsigmoid(-self.logit), F.logsigmoid(self.logit)], dim=-1)

    def log_prob(self, x: Cells) -> Cells:
        return F.logsigmoid(torch.where(x > 0.5, self.logit, -self.logit))

    def sample(self, rng: Generator) -> Cells:
        u = torch.rand(self.logit.shape, generator=rng, device=rng.device, dtype=torch.float64)
        return (u < self.logit.double().sigmoid()).to(self.logit.dtype)

    def mean(self) -> Cells:
        return self.logit.sigmoid()

    def tempered(self, temperature: float) -> "BernoulliDistribution":
        return BernoulliDistribution(self.logit / temperature)


@final
@dataclass(frozen=True)
class Bernoulli(Head):
    """A code 0 or 1."""

    kind: ClassVar[str] = "bernoulli"

    @property
    def width(self) -> int:
        return 1

    def __call__(self, params: Float[Tensor, "*cells width"]) -> BernoulliDistribution:
        return BernoulliDistribution(params.squeeze(-1))
