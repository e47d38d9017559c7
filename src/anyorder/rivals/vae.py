"""The variational autoencoder for tables with gaps: one bound per row, and q(z | what is known) taken at its word."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from ..schema import Mask, Values
from ..subsets import AnySize, Questions
from .latent import LatentModel, Latents, PerDraw, Posterior, total


class VAE(LatentModel):
    r"""Kingma and Welling's model with zero-filled gaps. https://arxiv.org/abs/1312.6114

    .. math:: \mathbb{E}_{q(z \mid x_G)} \log p(x_G \mid z) - KL(q(z \mid x_G) \,\|\, p(z))

    Answers are plain means over z ~ q(z | x_G), as published: where q is wrong, so are they.
    """

    shown: ClassVar[Questions] = AnySize()

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        x = torch.where(shown, x, 0.0)
        posterior = self.encode(x, shown)
        z = posterior.sample(self.samples, rng)
        return total(self.terms(z, x), shown).mean(0) - posterior.divergence()

    def log_weights(self, posterior: Posterior, z: Latents, log_given: PerDraw) -> PerDraw:
        return torch.zeros_like(log_given)
