"""A network of whole numbers for the rows of a table, for the codec: every column told by the columns before it."""

from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import FormatError, InputError
from ..schema import Category, Mask, Schema, Values, levels_of
from .integer import OUTPUT_GRID, OUTPUT_TOP, UNITS_OF_ONE, Whole, activated, rounded, said
from .resmlp import Network

# What codecs in archives are made of: none of these numbers may ever change.
INPUTS_OF_COLUMN = 8  # between how many knots a column of many levels is shown
OUTPUTS_OF_COLUMN = 16  # at how many knots its scores are told
LARGEST_INPUT = 127  # of the whole numbers that weights are made of
START_GRID, START_TOP = 32, 16  # of the scores that a column starts with
HAT = 2**7  # knots share a level in steps of 1 / HAT
MOST_LEVELS_OF_CODEC = 2**12
MOST_TABLES = 2**21  # levels of all columns, each counted as the largest


@final
class IntegerColumns(Network):
    """(x, given, context) -> a score for every level of every column, multiples of 1/1024.

    Whatever it is shown, the scores of a column depend only on the columns before it and on that part of the context which
    is known by then: `after` has for every code of the context the number of columns that come first. So one call scores
    all columns of a row that is known, and step by step a row is told from nothing.

    One layer is shared by all columns. Categories are shown and scored one by one; levels that have an order by the knots
    around them, with a score of its own that every level starts from: what it is whatever the rest of the row says.
    """

    kind: ClassVar[str] = "integer_columns"
    sight: Tensor
    speech: Tensor
    seen_at: Tensor
    said_at: Tensor
    start_at: Tensor
    turn: Tensor
    until: Tensor
    own_at: Tensor

    def __init__(
        self,
        schema: Schema,
        outputs: int,
        width: int = 32,
        context: Sequence[int] = (),
        after: Sequence[int] = (),
        frozen: bool = False,
    ) -> None:
        super().__init__()
        levels = [levels_of(v.domain) for v in schema]
        check_columns(levels, context, after, width)
        self.schema, self.outputs, self.levels = schema, outputs, levels
        self.sizes = {"width": width, "context": list(context), "after": list(after), "frozen": frozen}
        plain = [isinstance(v.domain, Category) for v in schema]
        sight = [hats(n, n if p else INPUTS_OF_COLUMN) for n, p in zip(levels, plain, strict=True)] + [
            hats(n, INPUTS_OF_COLUMN) for n in context
        ]
        speech = [hats(n, n if p else OUTPUTS_OF_COLUMN) for n, p in zip(levels, plain, strict=True)]
        slots = torch.tensor([*range(1, len(levels) + 1), *after])  # from which column on each of them is seen
        self._keep("sight", stacked([(2 * UNITS_OF_ONE / HAT) * table for table in sight]))  # (what is seen, level, knot)
        self._keep("speech", stacked([table / HAT for table in speech]))  # (column, level, knot)
        self._keep("seen_at", places([table.shape[1] for table in sight]))
        self._keep("said_at", places([table.shape[1] for table in speech]))
        self._keep("start_at", places(levels))
        self._keep("turn", slots.argsort(stable=True))
        self._keep("until", (slots[:, None] <= torch.arange(len(levels))).sum(0))  # how many things each column sees
        self._keep("own_at", torch.arange(len(levels)) + sum(table.shape[1] for table in sight))
        self.layout = [column for size in dict.fromkeys(levels) for column, n in enumerate(levels) if n == size]
        self.first = Whole(len(levels) + sum(t.shape[1] for t in sight), width, most=LARGEST_INPUT, frozen=frozen)
        knots = sum(table.shape[1] for table in speech)
        self.last = Whole(width, knots, most=LARGEST_INPUT, gain=0.1, standard=False, cut=False, frozen=frozen)
        if frozen:
            self.register_buffer("start", torch.zeros(sum(levels), dtype=torch.int16))
        else:
            self.start = nn.Parameter(torch.zeros(sum(levels)))
        self.starts = [0, *accumulate(levels)]
        self.ready: Tables | None = None

    def _keep(self, name: str, table: Tensor) -> None:
        self.register_buffer(name, table, persistent=False)

    def forward(self, x: Values, given: Mask, context: Int[Tensor, "batch _"] | None = None) -> Float[Tensor, "batch outputs"]:
        if context is None:
            context = torch.full((len(x), len(self.sizes["context"])), -1, device=x.device)
        codes = torch.cat([x.long(), context.clamp(min=0)], dim=-1)[:, self.turn]
        known = torch.cat([given, context >= 0], dim=-1)[:, self.turn]
        tables = self.tables()
        shown = nn.functional.embedding(codes + self.turn * self.sight.shape[1], tables.shown)
        added = shown * known[..., None]  # (batch, what is seen, unit)
        sums = nn.functional.pad(added.cumsum(1), (0, 0, 1, 0))[:, self.until]  # every column what comes before it
        h = activated(sums + tables.own).transpose(0, 1)  # (column, batch, unit)
        told = said(torch.baddbmm(tables.offset[:, None], h, tables.weight))
        scores = on_grid(torch.baddbmm(tables.start[:, None], told, self.speech.mT)).unbind(0)
        return torch.cat([scores[column][:, : self.levels[column]] for column in self.layout], dim=-1).to(x.dtype)

    def tables(self) -> "Tables":
        """Weights as they are used, one table for every column."""
        if self.ready is not None and self.ready.own.device == self.sight.device:
            return self.ready
        (first, bias), (last, offset), start = self.first.kernel(), self.last.kernel(), self.started()
        first, last = first[:, :, 0, 0].T, last[:, :, 0, 0]
        tables = Tables(
            shown=(self.sight @ picked(first, self.seen_at)).flatten(0, 1),
            own=UNITS_OF_ONE * picked(first, self.own_at) + bias,
            weight=picked(last, self.said_at).mT,
            offset=picked(offset[:, None], self.said_at)[..., 0],
            start=picked(start[:, None], self.start_at)[..., 0],
        )
        if self.sizes["frozen"]:
            self.ready = tables
        return tables

    def started(self) -> Tensor:
        """The scores that levels start from, multiples of 1 / START_GRID."""
        if not isinstance(self.start, nn.Parameter):
            return self.start.float() / START_GRID
        return rounded((self.start * START_GRID).clamp(-START_TOP * START_GRID, START_TOP * START_GRID)) / START_GRID

    def layers(self) -> list[Whole]:
        return [self.first, self.last]

    def freeze(self) -> "IntegerColumns":
        """The same answers from whole numbers alone."""
        frozen = IntegerColumns(self.schema, self.outputs, **(self.sizes | {"frozen": True}))
        for mine, source in zip(frozen.layers(), self.layers(), strict=True):
            mine.freeze(source)
        frozen.start.copy_(self.started().detach() * START_GRID)
        return frozen.eval()

    def check_bound(self) -> None:
        """No sum can leave what float32 holds exactly."""
        for layer in self.layers():
            layer.check_bound()
        if (self.start.double().abs() > START_TOP * START_GRID).any():
            raise FormatError(f"A network of columns starts from scores beyond {START_TOP}.")


class Tables(NamedTuple):
    """What a forward pass looks up and multiplies; all but `shown` and `own` have a row for every column."""

    shown: Float[Tensor, "level width"]
    own: Float[Tensor, "column width"]
    weight: Float[Tensor, "column width knot"]
    offset: Float[Tensor, "column knot"]
    start: Float[Tensor, "column level"]


def picked(rows: Float[Tensor, "row _"], at: Int[Tensor, "*places"]) -> Float[Tensor, "*places _"]:
    """Rows of a table; its gradient is made many times faster than that of plain indices."""
    return nn.functional.embedding(at, rows)


def stacked(tables: list[Tensor]) -> Float[Tensor, "table level knot"]:
    """Tables of different sizes side by side, zeros where they end."""
    height, width = max(len(t) for t in tables), max(t.shape[1] for t in tables)
    return torch.stack([nn.functional.pad(t, (0, width - t.shape[1], 0, height - len(t))) for t in tables])


def places(sizes: Sequence[int]) -> Int[Tensor, "group place"]:
    """Where the members of groups stand in a list of all of them; after the last of a group anything will do."""
    first = torch.tensor([0, *sizes[:-1]]).cumsum(0)
    return (first[:, None] + torch.arange(max(sizes))).clamp(max=sum(sizes) - 1)


def on_grid(scores: Tensor) -> Tensor:
    """Scores as they are told; in training the grid is too fine to matter."""
    if torch.is_grad_enabled():
        return scores
    return scores.mul_(OUTPUT_GRID).round_().clamp_(-OUTPUT_TOP, OUTPUT_TOP).div_(OUTPUT_GRID)


def hats(levels: int, knots: int) -> Float[Tensor, "level knot"]:
    """How levels share evenly spaced knots, in whole numbers that add up to HAT; as many knots as levels have one each."""
    knots = min(levels, knots)
    if knots < 2:
        return torch.full((levels, 1), float(HAT))
    at = [(level * (knots - 1) * HAT // (levels - 1)) for level in range(levels)]
    table = torch.zeros(levels, knots)
    for level, place in enumerate(at):
        knot, over = divmod(place, HAT)
        table[level, knot] = HAT - over
        if over:
            table[level, knot + 1] = over
    return table


def check_columns(levels: Sequence[int], context: Sequence[int], after: Sequence[int], width: int) -> None:
    if not levels or min(levels) < 1 or max([*levels, *context]) > MOST_LEVELS_OF_CODEC or min(context, default=1) < 1:
        raise InputError(f"IntegerColumns got columns of {list(levels)} levels; expected 1 to {MOST_LEVELS_OF_CODEC} of each.")
    if (len(levels) + len(context)) * max([*levels, *context]) > MOST_TABLES:
        raise InputError(f"IntegerColumns got {len(levels)} columns and {len(context)} codes, one of many levels: too large.")
    if len(after) != len(context) or any(not 0 <= k <= len(levels) for k in after) or not 1 <= width <= 2**12:
        raise InputError(f"IntegerColumns got after={list(after)} for {len(context)} codes and width={width}.")
