"""Images coded from coarse to fine: a small lattice of pixels first, then what halves its spacing, each by its own network.

Every stage sees the lattice it refines. The first draws its pixels in a fixed order, few at a time; every later one needs two
network calls: the pixels diagonally between known ones, then all others, each with a known one on all four sides.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch

from ...coding import Coder, Decoder, Encoder
from ...conditionals import Part
from ...data import ImageEncoder
from ...errors import FormatError
from ...inference import walk
from ...model import AnyOrderModel
from ...networks import exactly
from ...schema import Values
from ...subsets import CanonicalOrder, Planned, Quadratic, Question
from ...subsets.pictures import Region
from ..laws import coded

COARSEST = 7  # the first lattice has no side below this, if the image has not
MOST_VALUES = 2**23  # of a block
FIRST_CALLS = 12  # network calls for the first lattice


@final
@dataclass(frozen=True)
class Plan:
    """How one lattice of pixels is coded: which of them are known before, in which order the others come, how many at once."""

    stride: int  # every so many pixels of the image, in both directions
    shape: tuple[int, int, int]
    order: tuple[int, ...]  # all pixels, known ones first
    places: tuple[int, ...]  # after how many new pixels a network call ends

    @property
    def known(self) -> Region:
        out = torch.ones(len(self.order), dtype=torch.bool)
        out[list(self.order[len(self.order) - self.places[-1] :])] = False
        return out

    def to_json(self) -> dict[str, Any]:
        return {"stride": self.stride, "shape": list(self.shape), "order": list(self.order), "places": list(self.places)}

    @classmethod
    def from_json(cls, item: dict[str, Any]) -> "Plan":
        plan = cls(int(item["stride"]), tuple(item["shape"]), tuple(item["order"]), tuple(item["places"]))
        size = plan.shape[0] * plan.shape[1] * plan.shape[2]
        if len(plan.shape) != 3 or sorted(plan.order) != list(range(size)) or not 0 < plan.places[-1] <= size or plan.stride < 1:
            raise FormatError("A plan does not name every pixel of its lattice once.")
        return plan


def plans(encoder: ImageEncoder) -> list[Plan]:
    """From the coarsest lattice to the whole image."""
    height, width, channels = encoder.shape
    strides = [1]
    while min(-(-height // (2 * strides[0])), -(-width // (2 * strides[0]))) >= COARSEST:
        strides.insert(0, 2 * strides[0])
    shapes = [(-(-height // s), -(-width // s), channels) for s in strides]
    return [first_plan(strides[0], shapes[0])] + [finer_plan(*pair) for pair in zip(strides[1:], shapes[1:], strict=True)]


def first_plan(stride: int, shape: tuple[int, int, int]) -> Plan:
    """Any fixed order does that does not go from neighbour to neighbour."""
    count = shape[0] * shape[1] * shape[2]
    places = Quadratic(min(FIRST_CALLS, count)).bounds(torch.tensor([[count]]))[0].unique()
    order = np.random.Generator(np.random.PCG64(0)).permutation(count)
    return Plan(stride, shape, tuple(order.tolist()), tuple(places.tolist()))


def finer_plan(stride: int, shape: tuple[int, int, int]) -> Plan:
    """Diagonally between known pixels, then all others."""
    rows, columns, _ = np.meshgrid(*map(np.arange, shape), indexing="ij")
    turn = np.where((rows + columns) % 2 == 1, 2, rows % 2)
    counts = np.bincount(turn.ravel(), minlength=3)[1:]
    places = np.unique([0, *np.cumsum(counts)])
    return Plan(stride, shape, tuple(np.argsort(turn.ravel(), kind="stable").tolist()), tuple(places.tolist()))


@final
@dataclass(frozen=True)
class Stage:
    """A plan and the model that knows it."""

    plan: Plan
    model: AnyOrderModel

    def code(self, coder: Coder, x: Values) -> Values:
        """The lattice of every row, its new pixels coded; when decoding, they are read into it."""
        known = self.plan.known.expand(len(x), -1)
        steps = walk(
            self.model,
            x,
            Question(known, ~known),
            order=CanonicalOrder(self.plan.order),
            blocks=Planned(self.plan.places),
        )
        with exactly():
            for step in steps:
                (part,) = step.conditionals.parts
                assert isinstance(part, Part)
                symbols = coded(coder, self.model.heads[0], part.params[step.now], x[step.now].long().numpy())
                x[step.now] = torch.from_numpy(symbols).to(x.dtype)
        return x


@final
@dataclass(frozen=True)
class ImageCodec:
    """Codes rows of pixels of one kind of images."""

    encoder: ImageEncoder
    stages: tuple[Stage, ...]

    @property
    def most_rows(self) -> int:
        """Of a block: while it is coded, a value takes some hundred bytes."""
        return max(1, MOST_VALUES // len(self.encoder))

    def encode(self, x: Values) -> bytes:
        coder = Encoder()
        self._code(coder, x.clone())
        return coder.content()

    def decode(self, content: bytes, rows: int) -> Values:
        return self._code(Decoder(content), torch.zeros(rows, len(self.encoder)))

    def _code(self, coder: Coder, x: Values) -> Values:
        pixels = x.unflatten(1, self.encoder.shape)
        for stage in self.stages:
            lattice = pixels[:, :: stage.plan.stride, :: stage.plan.stride]
            lattice.copy_(stage.code(coder, lattice.flatten(1)).view_as(lattice))
        return x
