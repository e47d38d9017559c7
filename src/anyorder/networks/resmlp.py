"""A residual multi-layer perceptron: the plain, fast network for tables."""

from collections.abc import Sequence
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import InputError
from ..schema import Mask, Schema, Values
from .inputs import ContextEmbedding, Inputs
from .network import Network


@final
class ResMLP(Network):
    """Linear, `depth` pre-norm residual blocks of `width` units, linear: (x, given, context) -> `outputs` numbers per row."""

    kind: ClassVar[str] = "resmlp"

    def __init__(self, schema: Schema, outputs: int, width: int = 128, depth: int = 3, context: Sequence[int] = ()) -> None:
        super().__init__()
        if not (1 <= width <= 2**16 and 0 <= depth <= 1000):
            raise InputError(f"ResMLP got width={width}, depth={depth}; expected 1 to {2**16} units and 0 to 1000 blocks.")
        if len(context) > 16 or any(not 1 <= size <= 2**20 for size in context):
            raise InputError(f"ResMLP got context={list(context)}; expected at most 16 columns of 1 to {2**20} codes.")
        self.sizes = {"width": width, "depth": depth, "context": list(context)}
        self.inputs = Inputs(schema)
        self.first = nn.Linear(self.inputs.width, width)
        self.context = ContextEmbedding(tuple(context), width) if context else None
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, outputs)

    def forward(self, x: Values, given: Mask, context: Int[Tensor, "batch _"] | None = None) -> Float[Tensor, "batch outputs"]:
        h = self.first(self.inputs(x, given))
        if self.context is not None and context is not None:
            h = h + self.context(context)
        for block in self.blocks:
            h = block(h)
        return self.last(self.norm(h))


class ResidualBlock(nn.Module):
    """h + W2 silu(W1 norm(h))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, h: Float[Tensor, "batch width"]) -> Float[Tensor, "batch width"]:
        return h + self.down(torch.nn.functional.silu(self.up(self.norm(h))))
