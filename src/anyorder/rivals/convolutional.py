"""The latent-variable models for images: encoder and decoder of the same convolutions as our own network."""

from itertools import pairwise
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError
from ..heads import default_head
from ..networks.unet import Blocks, ChannelNorm
from ..schema import Mask, Schema, Values, levels_of
from .latent import LatentModel

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
        self.blocks = nn.ModuleList(Blocks(width, depth, 0) for width in widths)
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
        self.blocks = nn.ModuleList(Blocks(width, depth, 0) for width in up)
        self.norms = nn.ModuleList(ChannelNorm(width) for width in up)
        numbers = outputs // (shape[0] * shape[1])
        self.grow = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairwise((*up, numbers)))

    def forward(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch outputs"]:
        h = self.first(z).unflatten(1, self.small)
        for blocks, norm, grow in zip(self.blocks, self.norms, self.grow, strict=True):
            h = grow(F.silu(norm(blocks(h, None))))
        return h[:, :, : self.shape[0], : self.shape[1]].permute(0, 2, 3, 1).flatten(1)
