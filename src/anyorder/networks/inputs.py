"""How a network sees a partly hidden row: values scaled or one-hot, and always the mask beside them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..schema import Category, Domain, Mask, Ordinal, Recorded, Schema, Values


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
