"""What VAE and MIWAE share: an encoder of partly hidden rows, latent numbers, a decoder that gives every variable a law."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from ..conditionals import Conditionals, Part
from ..errors import InputError
from ..heads import Head, default_head
from ..networks import ResMLP
from ..networks.resmlp import ResidualBlock
from ..schema import Mask, Schema, Values
from ..subsets import Questions

Latents = Float[Tensor, "draw batch latent"]
Terms = Float[Tensor, "draw batch variable"]
PerDraw = Float[Tensor, "draw batch"]

LEAST_SPREAD = 1e-4


@final
@dataclass(frozen=True)
class Posterior:
    """q(z | what is shown): a bell curve for every latent number."""

    mu: Float[Tensor, "batch latent"]
    sigma: Float[Tensor, "batch latent"]

    def sample(self, draws: int, rng: Generator) -> Latents:
        """Draws through which the gradient flows."""
        noise = torch.randn(draws, *self.mu.shape, generator=rng, device=rng.device, dtype=self.mu.dtype)
        return self.mu + self.sigma * noise

    def log_ratio(self, z: Latents) -> PerDraw:
        """log p(z) - log q(z), for p the standard normal law."""
        return 0.5 * (((z - self.mu) / self.sigma) ** 2 - z**2 + 2 * self.sigma.log()).sum(-1)

    def divergence(self) -> Float[Tensor, " batch"]:
        """KL(q || p): how many nats the latent numbers cost."""
        return 0.5 * (self.mu**2 + self.sigma**2 - 1 - 2 * self.sigma.log()).sum(-1)


class LatentModel(nn.Module, ABC):
    r"""Given z, all variables are independent: :math:`p(x) = \int p(z) \prod_i p(x_i \mid z) \, dz`.

    `encoder` turns (x, given) into a mean and a raw spread for every latent number, `decoder` turns z into the
    numbers of all heads. `samples` is how many z a row gets in training.
    """

    shown: ClassVar[Questions]  # the targets of its questions are what a training row shows and explains

    def __init__(self, schema: Schema, heads: Sequence[Head], encoder: nn.Module, decoder: nn.Module, samples: int = 5) -> None:
        super().__init__()
        if samples < 1:
            raise InputError(f"{type(self).__name__} got samples={samples}; expected at least 1.")
        self.schema, self.samples = schema, samples
        self.heads = Heads(schema, heads)
        self.encoder, self.decoder = encoder, decoder

    @classmethod
    def build(
        cls,
        schema: Schema,
        heads: Sequence[Head] | None = None,
        latent: int = 10,
        width: int = 128,
        depth: int = 2,
        samples: int = 5,
        seed: int = 0,
    ) -> "LatentModel":
        """An untrained model; encoder and decoder are residual networks of the same size."""
        heads = [default_head(v.domain) for v in schema] if heads is None else list(heads)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            encoder = ResMLP(schema, 2 * latent, width, depth)
            blocks = [ResidualBlock(width) for _ in range(depth)]
            outputs = nn.Linear(width, sum(head.width for head in heads))
            decoder = nn.Sequential(nn.Linear(latent, width), *blocks, nn.LayerNorm(width), outputs)
        return cls(schema, heads, encoder, decoder, samples)

    def encode(self, x: Values, given: Mask) -> Posterior:
        seen = torch.where(given, x, 0.0)  # hidden values cannot leak
        mu, raw = self.encoder(seen, given).chunk(2, dim=-1)
        return Posterior(mu, LEAST_SPREAD + F.softplus(raw))

    def decode(self, z: Float[Tensor, "row latent"]) -> Conditionals:
        return self.heads(self.decoder(z))

    def terms(self, z: Latents, x: Values) -> Terms:
        """log p(x_i | z) for every draw, row and variable; every cell of x must hold a legal value."""
        rows = x.expand(len(z), *x.shape).flatten(0, 1)
        return self.decode(z.flatten(0, 1)).log_prob(rows).unflatten(0, z.shape[:2])

    @abstractmethod
    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        """A lower bound of log p(x_shown), which training raises."""

    @abstractmethod
    def log_weights(self, posterior: Posterior, z: Latents, log_given: PerDraw) -> PerDraw:
        """How much each z ~ q(z | x_G) counts when a question is answered, up to a constant; `log_given` is log p(x_G | z)."""


def total(terms: Terms, mask: Mask) -> PerDraw:
    """The sum of the terms inside the mask."""
    return torch.where(mask, terms, 0.0).sum(-1)


@final
class Heads(nn.Module):
    """From a network's numbers to the laws of all variables, variables with the same head together."""

    def __init__(self, schema: Schema, heads: Sequence[Head]) -> None:
        super().__init__()
        if len(heads) != len(schema):
            raise InputError(f"Got {len(heads)} heads for {len(schema)} variables; expected one head per variable.")
        self.kinds = tuple(dict.fromkeys(heads))
        for k, kind in enumerate(self.kinds):
            index = [i for i, head in enumerate(heads) if head == kind]
            constants = [kind.constants(schema.variables[i].domain) for i in index]
            self.register_buffer(f"index_{k}", torch.tensor(index), persistent=False)
            self.register_buffer(f"constants_{k}", torch.tensor(constants, dtype=torch.float32), persistent=False)

    def forward(self, numbers: Float[Tensor, "row number"]) -> Conditionals:
        parts, start = [], 0
        for k, kind in enumerate(self.kinds):
            index, constants = self.get_buffer(f"index_{k}"), self.get_buffer(f"constants_{k}")
            own = numbers[:, start : start + len(index) * kind.width].unflatten(-1, (len(index), kind.width))
            start += len(index) * kind.width
            params = torch.cat([own, constants.to(own).expand(len(own), -1, -1)], dim=-1)
            parts.append(Part(index, kind, params))
        return Conditionals(parts)
