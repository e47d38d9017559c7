"""A bell curve whose width is not learned: the decoder of the older latent-variable papers."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from ..heads import GaussianLaw, Head


@final
@dataclass(frozen=True)
class FixedGaussian(Head):
    """A real number with a learned mean and this variance, in every row alike."""

    kind: ClassVar[str] = "fixed_gaussian"
    variance: float = 0.1

    @property
    def width(self) -> int:
        return 1

    def __call__(self, params: Float[Tensor, "*cells width"]) -> GaussianLaw:
        mu = params.squeeze(-1)
        return GaussianLaw(mu, torch.full_like(mu, math.sqrt(self.variance)))
