"""How often the values of numbers were seen: what makes rounded prices and favourite digits as likely as they are."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .heads import LatticeLaw
from .heads.recurring import RecurringNumber, ValueTable
from .schema import Mask, Recorded, Schema, Values

BINS, MOST_BINS = 16, 64  # about so many of a number, as full as each other; and at most, with those of frequent values
NARROW_BINS, ROWS_IN_ONE = 64, 32  # in which the shape of a law is changed, and how many rows they should hold
MOST_SHARE = 0.999


def edges_of(values: Float[Tensor, " value"], spacing: float, bins: int) -> Float[Tensor, " edge"]:
    """Where a number is cut: half a step above the last value of each of about so many bins, as full as each other.

    A value that would fill a bin has one of its own, and so has all that lies below or above what was seen.
    """
    value, count = values.unique(return_counts=True)
    share = max(len(values) / bins, 1.0)
    full = (count.cumsum(0) / share + 1e-6).floor()
    ends = full.diff(prepend=full.new_zeros(1)) > 0  # the value at which a further share is full
    alone = count >= share
    ends[:-1] |= alone[:-1] | alone[1:]
    ends[-1:] = True
    return torch.cat([value[:1] - spacing / 2, value[ends] + spacing / 2])


@final
class Recurring:
    """The values of all numbers of a table. `context` is the number of a row among its rows, which is then left out."""

    def __init__(self, schema: Schema, rows: Values, held: Mask) -> None:
        self.rows = torch.where(held, rows, torch.nan)
        columns, narrow, self.edges = list[Tensor](), list[Tensor](), list[Tensor]()
        for i, variable in enumerate(schema):
            values = rows[held[:, i], i] if isinstance(variable.domain, Recorded) else rows.new_zeros(0)
            spacing = variable.domain.spacing if isinstance(variable.domain, Recorded) else 1.0
            wide = edges_of(values, spacing, BINS) if len(values) else values
            fine = max(1, min(NARROW_BINS, len(values) // ROWS_IN_ONE))
            columns.append(values)
            self.edges.append(wide)
            narrow.append(torch.cat([wide, edges_of(values, spacing, fine)]).unique() if len(values) else values)
        self.table = ValueTable.of(columns, narrow)
        group = [
            i * MOST_BINS + torch.bucketize(torch.cat([cuts, cuts[-1:] + 1 if len(cuts) else cuts.new_zeros(1)]), wide)
            for i, (cuts, wide, column) in enumerate(zip(narrow, self.edges, columns, strict=True))
            if len(column)
        ]
        self.group = torch.cat(group) if group else torch.zeros(0, dtype=torch.long)  # in which wide bin every narrow one lies

    def use(self, share: Float[Tensor, "variable bin"]) -> None:
        """How much of every wide bin belongs to values that were seen."""
        self.table = self.table.with_share(share.flatten()[self.group].clamp(0.0, MOST_SHARE))

    def law(self, law: LatticeLaw, variable: Int[Tensor, "*cells"], own: Int[Tensor, "*cells"] | None) -> LatticeLaw:
        """The law with its share of values that were seen, that of the row itself left out."""
        none = torch.full_like(law.spacing, torch.nan)
        if own is not None:
            none = torch.where(own >= 0, self.rows[own.clamp(min=0), variable].to(none), torch.nan)
        return RecurringNumber(law.spacing, law, variable.to(law.spacing.dtype), none, self.table)

    def learned_share(
        self, smooth: Float[Tensor, " cell"], seen: Float[Tensor, " cell"], bins: Int[Tensor, " cell"], variables: int
    ) -> Float[Tensor, "variable bin"]:
        """The shares at which these cells are likeliest, from what the law and the seen values give each (by EM).

        Two cells beside them say that nothing recurs: a bin with few cells has a small share.
        """
        group, count = self.group[bins], variables * MOST_BINS
        total = torch.bincount(group, minlength=count) + 2.0
        share = torch.full((count,), 0.5)
        for _ in range(50):
            mine = share[group] * seen
            share = torch.zeros(count).index_add(0, group, mine / (mine + (1 - share[group]) * smooth).clamp(min=1e-37)) / total
        return share.unflatten(0, (variables, MOST_BINS))
