"""How a network sees a partly hidden row: values scaled or one-hot, and always the mask beside them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..schema import Category, Mask, Ordinal, Schema, Values


class Inputs(nn.Module):
    """Real values as they are, ordinals scaled to -1 .. 1, categories one-hot, all zero where hidden; then the mask.

    The mask is an input of its own because 0 is a legal value: without it "0" and "hidden" would look the same.
    """

    offset: Tensor
    scale: Tensor

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.plain = [i for i, v in enumerate(schema) if not isinstance(v.domain, Category)]
        self.levels = [(i, v.domain.levels) for i, v in enumerate(schema) if isinstance(v.domain, Category)]
        half = [(v.domain.levels - 1) / 2 if isinstance(v.domain, Ordinal) else 0.0 for v in schema]
        self.register_buffer("offset", torch.tensor(half), persistent=False)
        self.register_buffer("scale", torch.tensor([h or 1.0 for h in half]), persistent=False)
        self.width = len(self.plain) + sum(levels for _, levels in self.levels) + len(schema)

    def forward(self, x: Values, given: Mask) -> Float[Tensor, "batch feature"]:
        parts = [torch.where(given, (x - self.offset) / self.scale, 0.0)[:, self.plain]]
        for i, levels in self.levels:
            one_hot = nn.functional.one_hot(x[:, i].long(), levels)
            parts.append(one_hot * given[:, i : i + 1])
        return torch.cat([*parts, given], dim=-1).to(x.dtype)


class ContextEmbedding(nn.Module):
    """What is no variable of the data (a class label, SFARM's mode and step), as one vector; code -1 means unknown."""

    def __init__(self, sizes: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size + 1, width, padding_idx=0) for size in sizes)

    def forward(self, context: Tensor) -> Float[Tensor, "batch width"]:
        return torch.stack([table(context[:, i] + 1) for i, table in enumerate(self.tables)]).sum(0)
