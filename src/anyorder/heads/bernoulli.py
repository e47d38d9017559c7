"""A yes-or-no variable from one number."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional as F

from .law import Cells, DiscreteLaw, Head


@final
@dataclass(frozen=True)
class BernoulliLaw(DiscreteLaw):
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

    def tempered(self, temperature: float) -> "BernoulliLaw":
        return BernoulliLaw(self.logit / temperature)


@final
@dataclass(frozen=True)
class Bernoulli(Head):
    """A code 0 or 1."""

    kind: ClassVar[str] = "bernoulli"

    @property
    def width(self) -> int:
        return 1

    def __call__(self, params: Float[Tensor, "*cells width"]) -> BernoulliLaw:
        return BernoulliLaw(params.squeeze(-1))
