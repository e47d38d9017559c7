"""Layers of whole numbers in floating-point clothes: the same sums on every machine, whatever the order of summation.

Activations are whole numbers from 0 to 255, weights are m / 2^k with whole m, one k for every output channel. So all products
of one sum are multiples of one power of two, and as long as their sizes add up to less than 2^24 of these, float32 holds every
partial sum exactly. `Whole` sees to that while it is trained, and `check_bound` proves it of a finished layer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import FormatError
from .int8 import Packed, pack

TOP = 255  # the largest activation
UNIT = 64  # the activation that stands for 1: what filters of length 1 make of noise is of this size
EXACT = 2**24  # whole numbers up to this are exact in float32
FINEST = 14  # the largest k of a weight m / 2^k
INSIDE, OUTSIDE = 63, 1023  # the largest |m|: inside a network int8 kernels without VNNI are exact too
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
    return rounded((x * (OUTPUT_GRID // UNIT)).clamp(-OUTPUT_TOP, OUTPUT_TOP)) / OUTPUT_GRID


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
        most: int = INSIDE,
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
            self.packed[shape] = pack(self.numerator, self.power, self.offset, shape, self.stride)
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
            reach = TOP * size + UNIT * self.bias.abs() + (TOP if self.residual else 0)
            room = (EXACT - TOP * rounding - 1) / reach.clamp(min=1e-30)
            power = torch.minimum(self.most / largest.clamp(min=1e-30), room).log2().floor().clamp(0, FINEST)
        scale = torch.exp2(power)
        numerator = rounded(weight * scale[:, None, None, None]).clamp(-self.most, self.most)
        return numerator, power, rounded(self.bias * UNIT * scale)

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
        if not (sums < EXACT).all():
            raise FormatError(
                f"A layer of whole numbers could leave exact arithmetic: its sums reach {sums.max():.0f}, the limit is {EXACT}."
            )
