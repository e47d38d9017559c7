"""The importance-weighted autoencoder for tables with gaps: a tighter bound, and answers that correct for q."""

import math
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..schema import Mask, Values
from ..subsets import AnySize, Everything, Mixture, Questions
from .latent import LatentModel, Latents, PerDraw, Posterior, total


class MIWAE(LatentModel):
    r"""Mattei and Frellsen's model. https://arxiv.org/abs/1812.02633

    .. math:: \mathbb{E} \log \frac1K \sum_k \frac{p(x_G \mid z_k) \, p(z_k)}{q(z_k \mid x_G)}, \quad z_k \sim q(z \mid x_G)

    Answers weigh each z by the same ratio, so that they become exact as the number of draws grows, whatever q is.
    """

    shown: ClassVar[Questions] = Mixture((AnySize(), Everything()))

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        x = torch.where(shown, x, 0.0)
        posterior = self.encode(x, shown)
        z = posterior.sample(self.samples, rng)
        weights = self.log_weights(posterior, z, total(self.terms(z, x), shown))
        return weights.logsumexp(0) - math.log(self.samples)

    def log_weights(self, posterior: Posterior, z: Latents, log_given: PerDraw) -> PerDraw:
        return log_given + posterior.log_ratio(z)
