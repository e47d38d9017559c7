"""oneDNN's int8 kernels for layers of whole numbers: the same answers in less than half of the time.

An accelerator, never a promise: a codec that is opened is tried with them on made-up rows, and they are used only if every
answer is right. Without VNNI these kernels add up pairs of products in 16 bits: exact for weights of at most 63.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor


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


def pack(numerator: Tensor, power: Tensor, offset: Tensor, shape: tuple[int, ...], stride: int) -> Packed:
    side = numerator.shape[2]
    padding, scale = side // 2 if stride == 1 else 0, torch.exp2(-power.float())
    weight = torch.ops.onednn.qconv_prepack(
        numerator, scale, 1.0, 0, [stride] * 2, [padding] * 2, [1, 1], 1, list(shape)
    )  # fmt: skip
    return Packed(weight, scale, torch.zeros(len(power), dtype=torch.int64), offset.float() * scale, stride, padding)


def available() -> bool:
    """Whether this build of torch has the kernels at all."""
    return hasattr(torch.ops.onednn, "qconv2d_pointwise") and torch.backends.mkldnn.is_available()
