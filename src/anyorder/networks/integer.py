"""oneDNN's int8 kernels for layers of whole numbers: the same answers in less than half of the time.

An accelerator, never a promise: a codec that is opened is tried with them on made-up rows, and they are used only if every
answer is right. Without VNNI these kernels add up pairs of products in 16 bits: exact for weights of at most 63.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import FormatError, InputError
from ..schema import Colour, Mask, Schema, Values, levels_of
from .resmlp import Network
from .unet import check_around, check_sizes


@final
@dataclass(frozen=True)
class Packed:
    """A layer as the kernels want it, for inputs of one shape."""

    weight: Tensor
    scale: Tensor
    zero: Tensor
    bias: Tensor
    stride: int
    padding: int

    def sums(self, h: Tensor) -> Tensor:
        """The sums as they are, in float32."""
        return self._convolved(h, torch.float32)

    def answer(self, h: Tensor, plus: Tensor | None) -> Tensor:
        """Rounded and cut to bytes, with others added before."""
        if plus is None:
            return self._convolved(h, torch.uint8)
        into = plus.clone(memory_format=torch.channels_last)
        out: Tensor = torch.ops.onednn.qconv2d_pointwise.binary(
            h, 1.0, 0, self.weight, self.scale, self.zero, into, self.bias, *self._moves(), 1,
            1.0, 0, torch.uint8, 1.0, 0, "sum", 1.0, "none", [], "",
        )  # fmt: skip
        return out

    def _convolved(self, h: Tensor, kind: torch.dtype) -> Tensor:
        out: Tensor = torch.ops.onednn.qconv2d_pointwise(
            h, 1.0, 0, self.weight, self.scale, self.zero, self.bias, *self._moves(), 1, 1.0, 0, kind, "none", [], ""
        )  # fmt: skip
        return out

    def _moves(self) -> tuple[list[int], list[int], list[int]]:
        return [self.stride] * 2, [self.padding] * 2, [1, 1]


def pack_int8(numerator: Tensor, power: Tensor, offset: Tensor, shape: tuple[int, ...], stride: int) -> Packed:
    side = numerator.shape[2]
    padding, scale = side // 2 if stride == 1 else 0, torch.exp2(-power.float())
    weight = torch.ops.onednn.qconv_prepack(
        numerator, scale, 1.0, 0, [stride] * 2, [padding] * 2, [1, 1], 1, list(shape)
    )  # fmt: skip
    return Packed(weight, scale, torch.zeros(len(power), dtype=torch.int64), offset.float() * scale, stride, padding)


def int8_available() -> bool:
    """Whether this build of torch has the kernels at all."""
    return hasattr(torch.ops.onednn, "qconv2d_pointwise") and torch.backends.mkldnn.is_available()


TOP = 255  # the largest activation
UNITS_OF_ONE = 64  # the activation that stands for 1: what filters of length 1 make of noise is of this size
LARGEST_EXACT = 2**24  # whole numbers up to this are exact in float32
FINEST = 14  # the largest k of a weight m / 2^k
LARGEST_INNER_WEIGHT, LARGEST_OUTER_WEIGHT = 63, 1023  # the largest |m|: inside a network int8 kernels without VNNI are exact too
GAIN = 4.0  # gains are learned in units of this, so that they keep up with the filters
OUTPUT_GRID, OUTPUT_TOP = 2**10, 2**15 - 1  # of the numbers a network says


class Rounded(torch.autograd.Function):
    """To the nearest whole number; the gradient passes."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


@contextmanager
def exactly() -> Iterator[None]:
    """Without what would round on the way: narrower numbers, and kernels that do not add up products (NNPACK's)."""
    autocast, nnpack = torch.autocast("cpu", enabled=False), torch.backends.nnpack.flags(enabled=False)
    with torch.no_grad(), autocast, nnpack, full_precision():
        yield


@contextmanager
def full_precision() -> Iterator[None]:
    """Products of float32 as such, whichever setting asked for narrower ones."""
    kinds = [getattr(torch.backends.mkldnn, name, None) for name in ("conv", "matmul")]
    settings: list[Any] = [kind for kind in kinds if hasattr(kind, "fp32_precision")]
    if not settings:  # torch before 2.9
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
        return
    asked = [kind.fp32_precision for kind in settings]
    for kind in settings:
        kind.fp32_precision = "ieee"
    try:
        yield
    finally:
        for kind, precision in zip(settings, asked, strict=True):
            kind.fp32_precision = precision


def activated(x: Tensor) -> Tensor:
    """To the grid of activations, cut at its ends."""
    if not torch.is_grad_enabled():
        return x.round_().clamp_(0, TOP)
    return rounded(x.clamp(0, TOP))


def rounded(x: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        return x.round()
    out: Tensor = Rounded.apply(x)
    return out


def said(x: Tensor) -> Tensor:
    """What a network says, on its grid."""
    return rounded((x * (OUTPUT_GRID // UNITS_OF_ONE)).clamp(-OUTPUT_TOP, OUTPUT_TOP)) / OUTPUT_GRID


@final
class Whole(nn.Module):
    """A convolution or a matrix of whole numbers.

    While it is trained, its weights are filters of mean 0 and length 1 (if they are `standard`) times a gain, rounded
    whenever they are used. Frozen, it holds the whole numbers alone: what is stored, and what counts when something is
    decoded. What it answers is `cut` to activations, or sums; if it is `residual`, activations are added to its sums.
    """

    numerator: Tensor
    power: Tensor
    offset: Tensor

    def __init__(
        self,
        inputs: int,
        outputs: int,
        side: int = 1,
        most: int = LARGEST_INNER_WEIGHT,
        gain: float = 1.0,
        standard: bool = True,
        stride: int = 1,
        residual: bool = False,
        cut: bool = True,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        self.most, self.standard, self.cut = most, standard, cut
        self.stride, self.side, self.residual, self.frozen = stride, side, residual, frozen
        shape = (outputs, inputs, side, side)
        if frozen:
            self.register_buffer("numerator", torch.zeros(shape, dtype=torch.int8 if most <= 127 else torch.int16))
            self.register_buffer("power", torch.zeros(outputs, dtype=torch.int8))
            self.register_buffer("offset", torch.zeros(outputs, dtype=torch.int32))
        else:
            self.weight = nn.Parameter(torch.randn(shape) / (inputs * side**2) ** 0.5)
            self.gain = nn.Parameter(torch.full((outputs,), gain / GAIN))
            self.bias = nn.Parameter(torch.zeros(outputs))
        self.ready: tuple[Tensor, Tensor] | None = None
        self.packed = dict[tuple[int, ...], Packed]()  # for int8 kernels, by the shape of what they are shown

    def forward(
        self, h: Shaped[Tensor, "batch _ height width"], plus: Shaped[Tensor, "batch channel rows columns"] | None = None
    ) -> Shaped[Tensor, "batch channel rows columns"]:
        """Activations from activations, with others added before they are cut; or the sums. Bytes take int8 kernels."""
        if h.dtype == torch.uint8:
            packed = self._packed(h)
            return packed.answer(h, plus) if self.cut else packed.sums(h)
        weight, bias = self.kernel()
        found = F.conv2d(h, weight, bias, self.stride, self.side // 2 if self.stride == 1 else 0)
        found = found if plus is None else found + plus
        return activated(found) if self.cut else found

    def _packed(self, h: Tensor) -> Packed:
        shape = tuple(h.shape)
        if shape not in self.packed:
            self.packed[shape] = pack_int8(self.numerator, self.power, self.offset, shape, self.stride)
        return self.packed[shape]

    def kernel(self) -> tuple[Tensor, Tensor]:
        """Weights and offsets as they are used."""
        if not self.frozen:
            numerator, power, offset = self.whole()
            scale = torch.exp2(-power)
            return numerator * scale[:, None, None, None], offset * scale
        if self.ready is None or self.ready[0].device != self.power.device:
            scale = torch.exp2(-self.power.float())
            self.ready = (self.numerator.float() * scale[:, None, None, None], self.offset.float() * scale)
        return self.ready

    def whole(self) -> tuple[Tensor, Tensor, Tensor]:
        """m, k and the offset in steps of 1 / 2^k: the finest weights whose sums stay exact."""
        if self.frozen:
            return self.numerator, self.power, self.offset
        weight: Tensor = self.weight
        if self.standard:
            weight = weight - weight.mean((1, 2, 3), keepdim=True)
            weight = weight / (weight.square().sum((1, 2, 3), keepdim=True).sqrt() + 1e-6)
        weight = weight * (GAIN * self.gain)[:, None, None, None]
        with torch.no_grad():
            size, largest = weight.abs().sum((1, 2, 3)), weight.abs().amax((1, 2, 3))
            rounding = weight[0].numel() / 2
            reach = TOP * size + UNITS_OF_ONE * self.bias.abs() + (TOP if self.residual else 0)
            room = (LARGEST_EXACT - TOP * rounding - 1) / reach.clamp(min=1e-30)
            power = torch.minimum(self.most / largest.clamp(min=1e-30), room).log2().floor().clamp(0, FINEST)
        scale = torch.exp2(power)
        numerator = rounded(weight * scale[:, None, None, None]).clamp(-self.most, self.most)
        return numerator, power, rounded(self.bias * UNITS_OF_ONE * scale)

    def freeze(self, source: "Whole") -> None:
        """Take the whole numbers of a trained layer."""
        numerator, power, offset = (part.detach() for part in source.whole())
        self.numerator.copy_(numerator)
        self.power.copy_(power)
        self.offset.copy_(offset)
        self.ready = None
        self.packed.clear()
        self.check_bound()

    def check_bound(self) -> None:
        """No partial sum of this layer can leave what float32 holds exactly, whatever it is shown."""
        power = self.power.double()
        if ((power < 0) | (power > FINEST)).any() or (self.numerator.double().abs() > self.most).any():
            raise FormatError(
                f"A layer of whole numbers has weights that are not m / 2^k with |m| <= {self.most}, k <= {FINEST}."
            )
        sums = TOP * self.numerator.double().abs().sum((1, 2, 3)) + self.offset.double().abs()
        if self.residual:
            sums = sums + TOP * torch.exp2(power)
        if not (sums < LARGEST_EXACT).all():
            raise FormatError(
                f"A layer of whole numbers could leave exact arithmetic: its sums reach {sums.max():.0f}, "
                f"the limit is {LARGEST_EXACT}."
            )


Maps = Shaped[Tensor, "batch _ height width"]
IMAGES_AT_ONCE = 64  # what fits the caches; the answers do not depend on it


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
        self.first = Whole(self.alone + near, widths[0], 3, LARGEST_OUTER_WEIGHT, frozen=frozen)
        self.down = nn.ModuleList(IntegerConvBlocks(w, depth, frozen) for w in widths[:-1])
        self.shrink = nn.ModuleList(Whole(a, b, 2, stride=2, frozen=frozen) for a, b in pairwise(widths))
        self.middle = IntegerConvBlocks(widths[-1], 2 * depth, frozen)
        self.grow = nn.ModuleList(Whole(b, 4 * a, residual=True, cut=False, frozen=frozen) for a, b in pairwise(widths))
        self.up = nn.ModuleList(IntegerConvBlocks(w, depth, frozen) for w in widths[:-1])
        numbers = outputs // (height * width)
        self.last = Whole(widths[0] + near, numbers, 3, LARGEST_OUTER_WEIGHT, 0.1, standard=False, cut=False, frozen=frozen)

    def forward(self, x: Values, given: Mask, context: Int[Tensor, "batch _"] | None = None) -> Float[Tensor, "batch outputs"]:
        if len(x) > IMAGES_AT_ONCE and not torch.is_grad_enabled():
            parts = torch.arange(len(x)).split(IMAGES_AT_ONCE)
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
        near = [part for side in self.around for part in rounded_means_around(seen, known, side)]
        maps = torch.cat([seen, 2 * UNITS_OF_ONE * known, torch.full_like(known[:, :1], UNITS_OF_ONE), *near], dim=1)
        maps = F.pad(maps, (0, -self.shape[1] % self.unit, 0, -self.shape[0] % self.unit))
        return F.pixel_unshuffle(maps, self.patch).contiguous(memory_format=torch.channels_last)


def rounded_means_around(seen: Maps, known: Maps, side: int) -> tuple[Maps, Maps]:
    """`unet.means_around` in whole numbers: the mean of what is known, rounded, and how much is known, up to 2."""
    sums, count = (F.avg_pool2d(maps, side, stride=1, padding=side // 2, divisor_override=1).long() for maps in (seen, known))
    every = count.expand_as(sums).clamp(min=1)
    return ((2 * sums + every) // (2 * every)).float(), (2 * UNITS_OF_ONE * count // side**2).float()


class IntegerConvBlocks(nn.Module):
    """Residual blocks of one width."""

    def __init__(self, width: int, depth: int, frozen: bool) -> None:
        super().__init__()
        self.inner = nn.ModuleList(Whole(width, width, 3, frozen=frozen) for _ in range(depth))
        self.outer = nn.ModuleList(Whole(width, width, 3, gain=0.0, residual=True, frozen=frozen) for _ in range(depth))

    def forward(self, h: Maps) -> Maps:
        for inner, outer in zip(self.inner, self.outer, strict=True):
            h = outer(inner(h), plus=h)
        return h
