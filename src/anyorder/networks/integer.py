"""A U-Net of whole numbers, for the codec: bit for bit the same answers on every machine, batch size and thread count."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import InputError
from ..schema import Colour, Mask, Schema, Values, levels_of
from .network import Network
from .unet import check_around, check_sizes
from .whole import OUTSIDE, TOP, UNIT, Whole, activated, said

Maps = Shaped[Tensor, "batch _ height width"]
ROWS_PER_CALL = 64  # what fits the caches; the answers do not depend on it


@final
class IntegerUNet(Network):
    """(x, given) -> `outputs` multiples of 1/1024 per row, for rows that are images; like `UNet`, without norms.

    For every width in `around` the first and the last layer are also told the mean of what is known in a square of so many
    pixels around each, so that what the others find has only to be what differs from it.

    Frozen, it holds whole numbers only and cannot be trained any more; `freeze` makes such a network from a trained one.
    With `int8` set, a frozen one computes with bytes wherever its weights are small: the same answers, faster.
    """

    kind: ClassVar[str] = "integer_unet"

    def __init__(
        self,
        schema: Schema,
        outputs: int,
        shape: Sequence[int],
        widths: Sequence[int] = (32, 64),
        depth: int = 1,
        patch: int = 1,
        frozen: bool = False,
        around: Sequence[int] = (),
    ) -> None:
        super().__init__()
        check_sizes(schema, outputs, shape, widths, depth, (), patch)
        check_around(around)
        self.int8 = False
        self.schema, self.outputs = schema, outputs
        self.sizes = {"shape": list(shape), "widths": list(widths), "depth": depth, "patch": patch, "frozen": frozen}
        self.sizes |= {"around": list(around)} if around else {}  # codecs made before there were any have no such entry
        self.around = tuple(around)
        height, width, channels = shape
        self.shape, self.patch, self.unit = (height, width, channels), patch, patch * 2 ** (len(widths) - 1)
        domain = schema.variables[0].domain
        self.shades = domain.shades if isinstance(domain, Colour) else 0
        levels = self.shades or levels_of(domain)
        if levels > TOP + 1:
            raise InputError(f"IntegerUNet got {levels} levels of a pixel; expected at most {TOP + 1}.")
        self.step = TOP // (levels - 1)  # codes are spread over the range of activations
        seen = 3 if self.shades else channels
        near = (seen + channels) * len(around) * patch**2
        self.alone = (seen + channels + 1) * patch**2  # maps before those of what is around
        self.first = Whole(self.alone + near, widths[0], 3, OUTSIDE, frozen=frozen)
        self.down = nn.ModuleList(IntegerBlocks(w, depth, frozen) for w in widths[:-1])
        self.shrink = nn.ModuleList(Whole(a, b, 2, stride=2, frozen=frozen) for a, b in pairwise(widths))
        self.middle = IntegerBlocks(widths[-1], 2 * depth, frozen)
        self.grow = nn.ModuleList(Whole(b, 4 * a, residual=True, cut=False, frozen=frozen) for a, b in pairwise(widths))
        self.up = nn.ModuleList(IntegerBlocks(w, depth, frozen) for w in widths[:-1])
        numbers = outputs // (height * width)
        self.last = Whole(widths[0] + near, numbers, 3, OUTSIDE, 0.1, standard=False, cut=False, frozen=frozen)

    def forward(self, x: Values, given: Mask, context: Int[Tensor, "batch _"] | None = None) -> Float[Tensor, "batch outputs"]:
        if len(x) > ROWS_PER_CALL and not torch.is_grad_enabled():
            parts = torch.arange(len(x)).split(ROWS_PER_CALL)
            return torch.cat([self(x[some], given[some]) for some in parts])
        maps = self._inputs(x, given)
        h = self.first(maps)
        h = h.to(torch.uint8) if self.int8 else h
        kept = []
        for blocks, shrink in zip(self.down, self.shrink, strict=True):
            h = blocks(h)
            kept.append(h)
            h = shrink(h)
        h = self.middle(h)
        for blocks, grow, before in zip(reversed(self.up), reversed(self.grow), reversed(kept), strict=True):
            h = blocks(activated(F.pixel_shuffle(grow(h), 2) + before).to(h.dtype))
        h = F.interpolate(said(self.last(torch.cat([h.float(), maps[:, self.alone :]], dim=1))), scale_factor=self.patch)[
            :, :, : self.shape[0], : self.shape[1]
        ]
        return h.permute(0, 2, 3, 1).flatten(1).to(x.dtype)  # (height, width, channel, number)

    def kernels(self) -> list[nn.Parameter]:
        outside = {id(self.first), id(self.last)}
        return [layer.weight for layer in self.layers() if id(layer) not in outside]

    def layers(self) -> list[Whole]:
        return [module for module in self.modules() if isinstance(module, Whole)]

    def freeze(self) -> "IntegerUNet":
        """The same answers from whole numbers alone."""
        frozen = IntegerUNet(self.schema, self.outputs, **(self.sizes | {"frozen": True}))
        for mine, source in zip(frozen.layers(), self.layers(), strict=True):
            mine.freeze(source)
        return frozen.eval()

    def _inputs(self, x: Values, given: Mask) -> Maps:
        """Codes spread over the grid and 0 where hidden, what is known, where there is an image at all, what is around."""
        known, seen = given.float().unflatten(1, self.shape), x.unflatten(1, self.shape)
        if self.shades:
            code, base = seen.long(), self.shades
            seen = torch.cat([code // base**2, code // base % base, code % base], dim=-1)
        known, seen = known.permute(0, 3, 1, 2), (seen.float() * self.step * known).permute(0, 3, 1, 2)
        near = [part for side in self.around for part in means_around(seen, known, side)]
        maps = torch.cat([seen, 2 * UNIT * known, torch.full_like(known[:, :1], UNIT), *near], dim=1)
        maps = F.pad(maps, (0, -self.shape[1] % self.unit, 0, -self.shape[0] % self.unit))
        return F.pixel_unshuffle(maps, self.patch).contiguous(memory_format=torch.channels_last)


def means_around(seen: Maps, known: Maps, side: int) -> tuple[Maps, Maps]:
    """`unet.means_around` in whole numbers: the mean of what is known, rounded, and how much is known, up to 2."""
    sums, count = (F.avg_pool2d(maps, side, stride=1, padding=side // 2, divisor_override=1).long() for maps in (seen, known))
    every = count.expand_as(sums).clamp(min=1)
    return ((2 * sums + every) // (2 * every)).float(), (2 * UNIT * count // side**2).float()


class IntegerBlocks(nn.Module):
    """Residual blocks of one width."""

    def __init__(self, width: int, depth: int, frozen: bool) -> None:
        super().__init__()
        self.inner = nn.ModuleList(Whole(width, width, 3, frozen=frozen) for _ in range(depth))
        self.outer = nn.ModuleList(Whole(width, width, 3, gain=0.0, residual=True, frozen=frozen) for _ in range(depth))

    def forward(self, h: Maps) -> Maps:
        for inner, outer in zip(self.inner, self.outer, strict=True):
            h = outer(inner(h), plus=h)
        return h
