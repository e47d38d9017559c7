"""A U-Net: images seen at several resolutions, coarse shapes first and details put back; dense 3 x 3 convolutions."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError
from ..schema import Mask, Schema, Values, levels_of
from .inputs import ContextEmbedding
from .network import Network

Maps = Float[Tensor, "batch channel height width"]


@final
class UNet(Network):
    """(x, given, context) -> `outputs` numbers per row, for rows that are images: (height, width, channel) in reading order.

    Level k works at 1 / 2^k of the resolution with `widths[k]` channels and `depth` residual blocks, going down and coming up.
    Images whose sides are no multiples are padded at the right and the bottom, and cut again.
    """

    kind: ClassVar[str] = "unet"

    def __init__(
        self,
        schema: Schema,
        outputs: int,
        shape: Sequence[int],
        widths: Sequence[int] = (16, 32, 64),
        depth: int = 1,
        context: Sequence[int] = (),
    ) -> None:
        super().__init__()
        check_sizes(schema, outputs, shape, widths, depth, context)
        self.sizes = {"shape": list(shape), "widths": list(widths), "depth": depth, "context": list(context)}
        height, width, channels = shape
        self.shape, self.halvings = (height, width, channels), len(widths) - 1
        self.centre = (levels_of(schema.variables[0].domain) - 1) / 2
        last = widths[-1]
        self.context = ContextEmbedding(tuple(context), last) if context else None
        told = last if context else 0
        self.first = nn.Conv2d(2 * channels + 1, widths[0], 3, padding=1)
        self.down = nn.ModuleList(Blocks(w, depth, told) for w in widths[:-1])
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 2, stride=2) for a, b in pairwise(widths))
        self.middle = Blocks(last, 2 * depth, told)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in pairwise(widths))
        self.up = nn.ModuleList(Blocks(w, depth, told) for w in widths[:-1])
        self.norm = ChannelNorm(widths[0])
        self.last = nn.Conv2d(widths[0], outputs // (height * width), 3, padding=1)

    def forward(self, x: Values, given: Mask, context: Int[Tensor, "batch _"] | None = None) -> Float[Tensor, "batch outputs"]:
        told = self.context(context) if self.context is not None and context is not None else None
        h = self.first(self._inputs(x, given))
        kept = []
        for blocks, shrink in zip(self.down, self.shrink, strict=True):
            h = blocks(h, told)
            kept.append(h)
            h = shrink(h)
        h = self.middle(h, told)
        for blocks, grow, before in zip(reversed(self.up), reversed(self.grow), reversed(kept), strict=True):
            h = blocks(grow(h) + before, told)
        h = self.last(F.silu(self.norm(h)))[:, :, : self.shape[0], : self.shape[1]]
        return h.permute(0, 2, 3, 1).flatten(1).to(x.dtype)  # (height, width, channel, number)

    def _inputs(self, x: Values, given: Mask) -> Maps:
        """Codes scaled to -1 .. 1 and 0 where hidden, then what is known, then where there is an image at all."""
        seen = torch.where(given, x / self.centre - 1, 0.0)
        maps = torch.cat([t.to(x.dtype).unflatten(1, self.shape) for t in (seen, given)], dim=-1).permute(0, 3, 1, 2)
        inside = maps.new_ones(len(x), 1, *self.shape[:2])
        unit = 2**self.halvings
        return F.pad(torch.cat([maps, inside], dim=1), (0, -self.shape[1] % unit, 0, -self.shape[0] % unit))


class Blocks(nn.Module):
    """Residual blocks of one width."""

    def __init__(self, width: int, depth: int, told: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ConvBlock(width, told) for _ in range(depth))

    def forward(self, h: Maps, told: Float[Tensor, "batch told"] | None) -> Maps:
        for block in self.blocks:
            h = block(h, told)
        return h


class ConvBlock(nn.Module):
    """h + conv(silu(norm(conv(silu(norm(h))) + told))): what is no pixel is added to all places alike."""

    def __init__(self, width: int, told: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([ChannelNorm(width), ChannelNorm(width)])
        self.convs = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)])
        self.told = nn.Linear(told, width, bias=False) if told else None
        nn.init.zeros_(self.convs[1].weight)  # type: ignore[arg-type]

    def forward(self, h: Maps, told: Float[Tensor, "batch told"] | None) -> Maps:
        inside = self.convs[0](F.silu(self.norms[0](h)))
        if self.told is not None and told is not None:
            inside = inside + self.told(told)[:, :, None, None]
        return h + self.convs[1](F.silu(self.norms[1](inside)))


class ChannelNorm(nn.Module):
    """Every place divided by the root mean square of its channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width, 1, 1))

    def forward(self, h: Maps) -> Maps:
        return h * (h.square().mean(1, keepdim=True) + 1e-6).rsqrt() * self.scale


def check_sizes(
    schema: Schema, outputs: int, shape: Sequence[int], widths: Sequence[int], depth: int, context: Sequence[int]
) -> None:
    if len(shape) != 3 or min(shape) < 1 or len(schema) != shape[0] * shape[1] * shape[2]:
        raise InputError(f"UNet got shape={list(shape)} for {len(schema)} variables; expected (height, width, channels).")
    if len({variable.domain for variable in schema}) > 1 or levels_of(schema.variables[0].domain) < 2:
        raise InputError("UNet needs pixels that all have the same number of levels, such as Ordinal(256).")
    if outputs % (shape[0] * shape[1]):
        raise InputError(f"UNet got outputs={outputs}; expected a multiple of {shape[0] * shape[1]} places.")
    if not 1 <= len(widths) <= 8 or any(not 1 <= width <= 2**14 for width in widths) or not 0 <= depth <= 100:
        raise InputError(f"UNet got widths={list(widths)}, depth={depth}; expected 1 to 8 widths and 0 to 100 blocks.")
    if len(context) > 16 or any(not 1 <= size <= 2**20 for size in context):
        raise InputError(f"UNet got context={list(context)}; expected at most 16 columns of 1 to {2**20} codes.")
