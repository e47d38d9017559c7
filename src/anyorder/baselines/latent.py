"""What VAE and MIWAE share: an encoder of partly hidden rows, latent numbers, a decoder that gives every variable a
distribution.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from ..distributions import GaussianDistribution, Head, default_head
from ..errors import InputError
from ..models.conditionals import Conditionals, NetworkDistributions
from ..networks import ResMLP
from ..networks.resmlp import ResidualBlock
from ..networks.unet import ChannelNorm, ConvBlocks
from ..schema import Mask, Schema, Values, levels_of
from ..subsets import AnySize, Everything, Mixture, QuestionDistribution
from .baseline import Baseline

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
        """log p(z) - log q(z), for p the standard normal distribution."""
        return 0.5 * (((z - self.mu) / self.sigma) ** 2 - z**2 + 2 * self.sigma.log()).sum(-1)

    def divergence(self) -> Float[Tensor, " batch"]:
        """KL(q || p): how many nats the latent numbers cost."""
        return 0.5 * (self.mu**2 + self.sigma**2 - 1 - 2 * self.sigma.log()).sum(-1)


class LatentModel(Baseline):
    r"""Given z, all variables are independent: :math:`p(x) = \int p(z) \prod_i p(x_i \mid z) \, dz`.

    `encoder` turns (x, given) into a mean and a raw spread for every latent number, `decoder` turns z into the
    numbers of all heads. `samples` is how many z a row gets in training.
    """

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
    def log_weights(self, posterior: Posterior, z: Latents, log_given: PerDraw) -> PerDraw:
        """How much each z ~ q(z | x_G) counts when a question is answered, up to a constant; `log_given` is log p(x_G | z)."""


def total(terms: Terms, mask: Mask) -> PerDraw:
    """The sum of the terms inside the mask."""
    return torch.where(mask, terms, 0.0).sum(-1)


@final
class Heads(nn.Module):
    """From a network's numbers to the distributions of all variables, variables with the same head together."""

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
            parts.append(NetworkDistributions(index, kind, params))
        return Conditionals(parts)


class VAE(LatentModel):
    r"""Kingma and Welling's model with zero-filled gaps. https://arxiv.org/abs/1312.6114

    .. math:: \mathbb{E}_{q(z \mid x_G)} \log p(x_G \mid z) - KL(q(z \mid x_G) \,\|\, p(z))

    Answers are plain means over z ~ q(z | x_G), as published: where q is wrong, so are they.
    """

    shown: ClassVar[QuestionDistribution] = AnySize()

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        x = torch.where(shown, x, 0.0)
        posterior = self.encode(x, shown)
        z = posterior.sample(self.samples, rng)
        return total(self.terms(z, x), shown).mean(0) - posterior.divergence()

    def log_weights(self, posterior: Posterior, z: Latents, log_given: PerDraw) -> PerDraw:
        return torch.zeros_like(log_given)


class MIWAE(LatentModel):
    r"""Mattei and Frellsen's model. https://arxiv.org/abs/1812.02633

    .. math:: \mathbb{E} \log \frac1K \sum_k \frac{p(x_G \mid z_k) \, p(z_k)}{q(z_k \mid x_G)}, \quad z_k \sim q(z \mid x_G)

    Answers weigh each z by the same ratio, so that they become exact as the number of draws grows, whatever q is.
    """

    shown: ClassVar[QuestionDistribution] = Mixture((AnySize(), Everything()))

    def bound(self, x: Values, shown: Mask, rng: Generator) -> Float[Tensor, " batch"]:
        x = torch.where(shown, x, 0.0)
        posterior = self.encode(x, shown)
        z = posterior.sample(self.samples, rng)
        weights = self.log_weights(posterior, z, total(self.terms(z, x), shown))
        return weights.logsumexp(0) - math.log(self.samples)

    def log_weights(self, posterior: Posterior, z: Latents, log_given: PerDraw) -> PerDraw:
        return log_given + posterior.log_ratio(z)


@final
@dataclass(frozen=True)
class FixedGaussian(Head):
    """A real number with a learned mean and this variance, in every row alike."""

    kind: ClassVar[str] = "fixed_gaussian"
    variance: float = 0.1

    @property
    def width(self) -> int:
        return 1

    def __call__(self, params: Float[Tensor, "*cells width"]) -> GaussianDistribution:
        mu = params.squeeze(-1)
        return GaussianDistribution(mu, torch.full_like(mu, math.sqrt(self.variance)))


Shape = tuple[int, int, int]  # rows, columns, variables of a pixel


def build_convolutional(
    kind: type[LatentModel],
    schema: Schema,
    shape: Shape,
    widths: tuple[int, ...] = (32, 64),
    depth: int = 1,
    latent: int = 32,
    samples: int = 5,
    seed: int = 0,
) -> LatentModel:
    """An untrained VAE or MIWAE of images."""
    if len(schema) != shape[0] * shape[1] * shape[2]:
        raise InputError(f"Got shape={shape} for {len(schema)} variables; expected (height, width, channels).")
    heads = [default_head(variable.domain) for variable in schema]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = ConvEncoder(schema, shape, widths, depth, 2 * latent)
        decoder = ConvDecoder(shape, widths, depth, latent, sum(head.width for head in heads))
    return kind(schema, heads, encoder, decoder, samples)


@final
class ConvEncoder(nn.Module):
    """(x, given) -> numbers; every level halves the resolution, beginning with the first."""

    def __init__(self, schema: Schema, shape: Shape, widths: tuple[int, ...], depth: int, outputs: int) -> None:
        super().__init__()
        self.shape, self.unit = shape, 2 ** len(widths)
        self.centre = (levels_of(schema.variables[0].domain) - 1) / 2
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 2, stride=2) for a, b in pairwise((2 * shape[2], *widths)))
        self.blocks = nn.ModuleList(ConvBlocks(width, depth, 0) for width in widths)
        self.norm = ChannelNorm(widths[-1])
        height, width = (-(-side // self.unit) for side in shape[:2])
        self.last = nn.Linear(widths[-1] * height * width, outputs)

    def forward(self, x: Values, given: Mask) -> Float[Tensor, "batch outputs"]:
        known = given.to(x.dtype).unflatten(1, self.shape)
        h = torch.cat([(x.unflatten(1, self.shape) / self.centre - 1) * known, known], dim=-1)
        h = F.pad(h, (0, 0, 0, -self.shape[1] % self.unit, 0, -self.shape[0] % self.unit)).permute(0, 3, 1, 2)
        for shrink, blocks in zip(self.shrink, self.blocks, strict=True):
            h = blocks(shrink(h), None)
        return self.last(F.silu(self.norm(h)).flatten(1))


@final
class ConvDecoder(nn.Module):
    """z -> the numbers of all heads; the way of the encoder backwards."""

    def __init__(self, shape: Shape, widths: tuple[int, ...], depth: int, latent: int, outputs: int) -> None:
        super().__init__()
        self.shape, unit = shape, 2 ** len(widths)
        self.small = (widths[-1], *(-(-side // unit) for side in shape[:2]))
        self.first = nn.Linear(latent, self.small[0] * self.small[1] * self.small[2])
        up = tuple(reversed(widths))
        self.blocks = nn.ModuleList(ConvBlocks(width, depth, 0) for width in up)
        self.norms = nn.ModuleList(ChannelNorm(width) for width in up)
        numbers = outputs // (shape[0] * shape[1])
        self.grow = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairwise((*up, numbers)))

    def forward(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch outputs"]:
        h = self.first(z).unflatten(1, self.small)
        for blocks, norm, grow in zip(self.blocks, self.norms, self.grow, strict=True):
            h = grow(F.silu(norm(blocks(h, None))))
        return h[:, :, : self.shape[0], : self.shape[1]].permute(0, 2, 3, 1).flatten(1)
