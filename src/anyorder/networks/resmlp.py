"""What every network offers beside its forward pass: a name and its sizes, so that a file can describe it."""

from collections.abc import Sequence
from typing import Any, ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import InputError
from ..schema import Category, Domain, Mask, Ordinal, Recorded, Schema, Values


class Network(nn.Module):
    """(x, given, context) -> the numbers of all heads. `kind` and `sizes` are enough to build it again."""

    kind: ClassVar[str]
    sizes: dict[str, Any]

    def kernels(self) -> list[nn.Parameter]:
        """Weights whose steps are made orthogonal in training: the matrices inside, not the first nor the last."""
        return []


class Inputs(nn.Module):
    """Numbers as they are, ordinals scaled to -1 .. 1, categories one-hot, all zero where hidden; then the mask.

    A number with knots is also shown piece by piece: how far it has come between each two of them, from 0 to 1.

    The mask is an input of its own because 0 is a legal value: without it "0" and "hidden" would look the same.
    """

    offset: Tensor
    scale: Tensor
    left: Tensor
    length: Tensor
    column: Tensor
    level: Tensor

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.plain = [i for i, v in enumerate(schema) if not isinstance(v.domain, Category)]
        levels = [(i, level) for i, v in enumerate(schema) if isinstance(v.domain, Category) for level in range(v.domain.levels)]
        self.register_buffer("column", torch.tensor([i for i, _ in levels], dtype=torch.long), persistent=False)
        self.register_buffer("level", torch.tensor([float(level) for _, level in levels]), persistent=False)
        half = [(v.domain.levels - 1) / 2 if isinstance(v.domain, Ordinal) else 0.0 for v in schema]
        self.register_buffer("offset", torch.tensor(half), persistent=False)
        self.register_buffer("scale", torch.tensor([h or 1.0 for h in half]), persistent=False)
        self.pieced = [i for i, v in enumerate(schema) if isinstance(v.domain, Recorded) and len(v.domain.knots) > 1]
        left, length = piece_table([schema.variables[i].domain for i in self.pieced])
        self.register_buffer("left", left, persistent=False)
        self.register_buffer("length", length, persistent=False)
        self.width = len(self.plain) + len(levels) + left.numel() + len(schema)

    def forward(self, x: Values, given: Mask) -> Float[Tensor, "batch feature"]:
        parts = [torch.where(given, (x - self.offset) / self.scale, 0.0)[:, self.plain]]
        if len(self.column):
            parts.append((x[:, self.column] == self.level) & given[:, self.column])
        if self.pieced:
            pieces = ((x[:, self.pieced, None] - self.left) / self.length).clamp(0, 1) * given[:, self.pieced, None]
            parts.append(pieces.flatten(1))
        return torch.cat([*parts, given], dim=-1).to(x.dtype)


def piece_table(domains: list[Domain]) -> tuple[Tensor, Tensor]:
    """Where each variable's pieces begin and how long they are; variables with fewer pieces get endless ones."""
    knots = [d.knots for d in domains if isinstance(d, Recorded)]
    count = max(map(len, knots), default=1) - 1
    left, length = torch.zeros(len(knots), count), torch.full((len(knots), count), torch.inf)
    for row, places in enumerate(knots):
        left[row, : len(places) - 1] = torch.tensor(places[:-1])
        length[row, : len(places) - 1] = torch.tensor(places).diff()
    length[length <= 0] = torch.inf  # two knots that float32 cannot tell apart
    return left, length


class ContextEmbedding(nn.Module):
    """What is no variable of the data (a class label, SFARM's mode and step), as one vector; code -1 means unknown."""

    def __init__(self, sizes: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size + 1, width, padding_idx=0) for size in sizes)

    def forward(self, context: Tensor) -> Float[Tensor, "batch width"]:
        return torch.stack([table(context[:, i] + 1) for i, table in enumerate(self.tables)]).sum(0)


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
