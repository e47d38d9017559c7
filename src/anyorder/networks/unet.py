"""Sizes of the network for images, by name: from what a laptop trains in minutes to what the papers trained for weeks."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError
from ..schema import Colour, Mask, Schema, Values, levels_of
from .resmlp import ContextEmbedding, Network


@final
@dataclass(frozen=True)
class UNetSize:
    """What a U-Net is built with; see `UNet`."""

    widths: tuple[int, ...]
    depth: int
    patch: int = 1
    attention: bool = False
    around: tuple[int, ...] = ()
    components: int = 5  # of the mixtures that shades and colours have as distributions
    step_by_sines: bool = False  # SFARM's embeddings: if there is a step, by sines; mode and class in a quarter of the channels


SIZES: dict[str, UNetSize] = {
    "small": UNetSize((32, 64), 1, patch=2),
    "fine": UNetSize((24, 48, 96), 1, around=(3, 7)),  # for shades: every pixel on its own, and what is known around it
    "medium": UNetSize((48, 96), 2, patch=2),
    "large": UNetSize((96, 192, 256), 3, patch=2),
    # SFARM's Table 4: in_planes, doubled by every further layer; blocks per layer, going down and coming up; n_mix
    "sfarm-mnist": UNetSize((32,), 4, step_by_sines=True),
    "sfarm-fashion-mnist": UNetSize((32,), 4, components=1, step_by_sines=True),
    "sfarm-cifar10": UNetSize((128,), 32, components=30, step_by_sines=True),
    "sfarm-celeba64": UNetSize((128, 256), 16, components=30, step_by_sines=True),
    "sfarm-imagenet64": UNetSize((128, 256), 16, components=30, step_by_sines=True),
    # ARDM's: 32 blocks down and 32 up at full resolution, each with attention
    "ardm-cifar10": UNetSize((256,), 32, attention=True),
}


def size_named(name: str) -> UNetSize:
    if name not in SIZES:
        raise InputError(f"size={name!r} is unknown; expected {', '.join(SIZES)}.")
    return SIZES[name]


Maps = Float[Tensor, "batch channel height width"]
KnownMaps = Float[Tensor, "batch known height width"]  # one for every value, or one for three channels of a colour
IMPOSSIBLE_DIGIT = -1e4  # a score that no other can be near


@final
class UNet(Network):
    """(x, given, context) -> `outputs` numbers per row, for rows that are images: (height, width, channel) in reading order.

    Places are patches of `patch` x `patch` pixels. Level k works at 1 / 2^k of their resolution with `widths[k]` channels
    and `depth` residual blocks, going down and coming up, at the lowest level each followed by attention if there is any.
    Images whose sides are no multiples are padded at the right and the bottom, and cut again. If variables are the digits
    of values up to `top`, larger ones get no probability. For every width in `around` each pixel is also told the mean of
    what is known in a square of so many pixels around it, and how much that is. What is no pixel is added inside every
    block; but if a column of the context is named as the `step`, that one is told by sines, and the others, such as SFARM's
    mode and a class, fill a quarter of the channels of the first layer.
    """

    kind: ClassVar[str] = "unet"
    top: Tensor

    def __init__(
        self,
        schema: Schema,
        outputs: int,
        shape: Sequence[int],
        widths: Sequence[int] = (32, 64),
        depth: int = 1,
        context: Sequence[int] = (),
        patch: int = 1,
        attention: bool = False,
        top: int = 0,
        around: Sequence[int] = (),
        step: int | None = None,
    ) -> None:
        super().__init__()
        check_sizes(schema, outputs, shape, widths, depth, context, patch)
        check_around(around)
        self.sizes = {"shape": list(shape), "widths": list(widths), "depth": depth, "context": list(context)}
        self.sizes |= {"patch": patch, "attention": attention, "top": top, "around": list(around)}
        if step is not None:
            if not 0 <= step < len(context):
                raise InputError(f"UNet got step={step} with {len(context)} columns of context; expected the place of one.")
            self.sizes["step"] = step
        height, width, channels = shape
        self.around = tuple(around)
        self.shape, self.patch, self.unit = (height, width, channels), patch, patch * 2 ** (len(widths) - 1)
        domain = schema.variables[0].domain
        self.shades = domain.shades if isinstance(domain, Colour) else 0
        self.centre = ((self.shades or levels_of(domain)) - 1) / 2
        self.register_buffer("top", digit_planes(top, levels_of(domain), channels), persistent=False)
        last = widths[-1]
        self.context: nn.Module | None = ContextEmbedding(tuple(context), last) if context else None
        told, quarter = last if context else 0, 0
        self.step, self.others, self.planes = step, [k for k in range(len(context)) if k != step], None
        if step is not None:
            self.context = StepEmbedding(context[step], last)
            quarter = widths[0] // 4 if self.others else 0
            self.planes = ContextEmbedding(tuple(context[k] for k in self.others), quarter) if quarter else None
        seen = 3 if self.shades else channels
        maps = (seen + channels) * (1 + len(around)) + 1
        self.first = nn.Conv2d(maps * patch**2, widths[0] - quarter, 3, padding=1)
        self.down = nn.ModuleList(ConvBlocks(w, depth, told) for w in widths[:-1])
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 2, stride=2) for a, b in pairwise(widths))
        self.middle = ConvBlocks(last, 2 * depth, told, attention)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in pairwise(widths))
        self.up = nn.ModuleList(ConvBlocks(w, depth, told) for w in widths[:-1])
        self.norm = ChannelNorm(widths[0])
        self.last = nn.Conv2d(widths[0], outputs // (height * width) * patch**2, 3, padding=1)

    def forward(self, x: Values, given: Mask, context: Int[Tensor, "batch _"] | None = None) -> Float[Tensor, "batch outputs"]:
        told = self._told(context)
        h = self.first(self._inputs(x, given))
        if self.planes is not None:
            codes = torch.full((len(x), len(self.others)), -1) if context is None else context[:, self.others]
            h = torch.cat([h, self.planes(codes.to(x.device))[:, :, None, None].expand(-1, -1, *h.shape[2:])], dim=1)
        kept = []
        for blocks, shrink in zip(self.down, self.shrink, strict=True):
            h = blocks(h, told)
            kept.append(h)
            h = shrink(h)
        h = self.middle(h, told)
        for blocks, grow, before in zip(reversed(self.up), reversed(self.grow), reversed(kept), strict=True):
            h = blocks(grow(h) + before, told)
        h = F.pixel_shuffle(self.last(F.silu(self.norm(h))), self.patch)[:, :, : self.shape[0], : self.shape[1]]
        h = h.permute(0, 2, 3, 1).to(x.dtype)
        return (self._possible(h, x, given) if len(self.top) else h).flatten(1)  # (height, width, channel, number)

    def kernels(self) -> list[nn.Parameter]:
        outside = {id(self.first.weight), id(self.last.weight)}
        return [p for p in self.parameters() if p.ndim == 4 and id(p) not in outside]

    def _told(self, context: Int[Tensor, "batch _"] | None) -> Float[Tensor, "batch told"] | None:
        """What is added inside every block."""
        if self.context is None or context is None:
            return None
        told: Tensor = self.context(context if self.step is None else context[:, self.step])
        return told

    def _inputs(self, x: Values, given: Mask) -> Maps:
        """Codes scaled to -1 .. 1 and 0 where hidden, then what is known, then where there is an image at all."""
        known, seen = given.to(x.dtype).unflatten(1, self.shape), x.unflatten(1, self.shape)
        if self.shades:
            code, base = seen.long(), self.shades
            seen = torch.cat([code // base**2, code // base % base, code % base], dim=-1).to(x.dtype)
        known, seen = known.permute(0, 3, 1, 2), ((seen / self.centre - 1) * known).permute(0, 3, 1, 2)
        near = [part for side in self.around for part in means_around(seen, known, side)]
        maps = torch.cat([seen, known, torch.ones_like(known[:, :1]), *near], dim=1)
        maps = F.pad(maps, (0, -self.shape[1] % self.unit, 0, -self.shape[0] % self.unit))
        return F.pixel_unshuffle(maps, self.patch).contiguous(memory_format=torch.channels_last)  # as convolutions like it

    def _possible(self, h: Tensor, x: Values, given: Mask) -> Tensor:
        """No digit may take its value above the top: where all digits before it are the top's, it is at most the top's."""
        digits = len(self.top)
        at_top = (given & (x.unflatten(1, (-1, digits)) == self.top).flatten(1)).unflatten(1, (-1, digits))
        before = F.pad(at_top[..., :-1], (1, 0), value=True).cummin(-1).values.unflatten(1, (*self.shape[:2], -1))
        scores = h.unflatten(-1, (self.shape[2] // digits, digits, -1))  # (batch, height, width, value, digit, score)
        codes = torch.arange(scores.shape[-1], device=h.device) + (scores.shape[-1] == 1)  # one score is that of code 1
        return scores.masked_fill(before[..., None] & (codes > self.top[:, None]), IMPOSSIBLE_DIGIT).flatten(3)


def means_around(seen: Maps, known: KnownMaps, side: int) -> tuple[Maps, KnownMaps]:
    """The mean of what is known in a square around every pixel, 0 if nothing is; and the share of the square that is known."""
    sums, share = (F.avg_pool2d(maps, side, stride=1, padding=side // 2) for maps in (seen, known))
    return sums / share.expand_as(sums).clamp(min=0.5 / side**2), share


def digit_planes(top: int, base: int, channels: int) -> Tensor:
    """The digits of the largest value, the most significant first; none if there is no such value."""
    digits: list[int] = []
    while top > 0:
        digits.insert(0, top % base)
        top //= base
    if digits and channels % len(digits):
        raise InputError(f"UNet got {channels} channels for values of {len(digits)} digits; expected a multiple.")
    return torch.tensor(digits, dtype=torch.long)


class StepEmbedding(nn.Module):
    """A whole number below `most` as sines and cosines of many periods, mixed; -1 means unknown."""

    frequency: Tensor

    def __init__(self, most: int, width: int) -> None:
        super().__init__()
        half = max(1, width // 2)
        self.register_buffer("frequency", float(max(most, 2)) ** -(torch.arange(half) / half), persistent=False)
        self.mix = nn.Sequential(nn.Linear(2 * half, width), nn.SiLU())

    def forward(self, step: Int[Tensor, " batch"]) -> Float[Tensor, "batch width"]:
        angle = step[:, None] * self.frequency
        told: Tensor = self.mix(torch.cat([angle.sin(), angle.cos()], dim=-1))
        return told * (step >= 0)[:, None]


class ConvBlocks(nn.Module):
    """Residual blocks of one width, each followed by attention if it is wanted."""

    def __init__(self, width: int, depth: int, told: int, attention: bool = False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ConvBlock(width, told) for _ in range(depth))
        self.looks = nn.ModuleList(Attention(width) for _ in range(depth if attention else 0))

    def forward(self, h: Maps, told: Float[Tensor, "batch told"] | None) -> Maps:
        for block, look in zip_longest(self.blocks, self.looks):
            h = block(h, told)
            h = h if look is None else look(h)
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


class Attention(nn.Module):
    """h + every place's look at all others, with one head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = ChannelNorm(width)
        self.ask = nn.Linear(width, 3 * width, bias=False)
        self.say = nn.Linear(width, width)
        nn.init.zeros_(self.say.weight)

    def forward(self, h: Maps) -> Maps:
        places = self.norm(h).flatten(2).mT  # (batch, place, channel)
        query, key, value = self.ask(places).chunk(3, dim=-1)
        seen = self.say(F.scaled_dot_product_attention(query, key, value))
        return h + seen.mT.unflatten(2, h.shape[2:])


class ChannelNorm(nn.Module):
    """The channels of every place with mean 0 and variance 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, h: Maps) -> Maps:
        return F.layer_norm(h.permute(0, 2, 3, 1), self.scale.shape, self.scale).permute(0, 3, 1, 2)


def check_sizes(
    schema: Schema, outputs: int, shape: Sequence[int], widths: Sequence[int], depth: int, context: Sequence[int], patch: int
) -> None:
    if len(shape) != 3 or min(shape) < 1 or len(schema) != shape[0] * shape[1] * shape[2]:
        raise InputError(f"UNet got shape={list(shape)} for {len(schema)} variables; expected (height, width, channels).")
    if len({variable.domain for variable in schema}) > 1 or levels_of(schema.variables[0].domain) < 2:
        raise InputError("UNet needs pixels that all have the same number of levels, such as Ordinal(256).")
    if isinstance(schema.variables[0].domain, Colour) and shape[2] != 1:
        raise InputError(f"UNet got shape={list(shape)}; a colour is one variable: expected one channel.")
    if outputs % (shape[0] * shape[1]):
        raise InputError(f"UNet got outputs={outputs}; expected a multiple of {shape[0] * shape[1]} places.")
    if not 1 <= len(widths) <= 8 or any(not 1 <= width <= 2**14 for width in widths) or not 0 <= depth <= 100:
        raise InputError(f"UNet got widths={list(widths)}, depth={depth}; expected 1 to 8 widths and 0 to 100 blocks.")
    if not 1 <= patch <= 16:
        raise InputError(f"UNet got patch={patch}; expected 1 to 16 pixels.")
    if len(context) > 16 or any(not 1 <= size <= 2**20 for size in context):
        raise InputError(f"UNet got context={list(context)}; expected at most 16 columns of 1 to {2**20} codes.")


def check_around(around: Sequence[int]) -> None:
    if len(around) > 8 or any(not 1 <= side <= 101 or side % 2 == 0 for side in around):
        raise InputError(f"UNet got around={list(around)}; expected at most 8 odd numbers of pixels up to 101.")
