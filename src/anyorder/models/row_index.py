"""How often the values of numbers were seen: what makes rounded prices and favourite digits as likely as they are."""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ..distributions import CategoricalDistribution, DiscreteDistribution, Distribution, LatticeDistribution
from ..distributions.combined import ReweightedNumber
from ..distributions.recurring import RecurringNumber, ValueTable
from ..schema import Mask, Recorded, Schema, Values, levels_of, spacing_of
from .conditionals import between

BINS, MOST_BINS = 16, 64  # about so many of a number, as full as each other; and at most, with those of frequent values
SHAPE_BINS, ROWS_IN_SHAPE_BIN = 64, 32  # in which the shape of a distribution is changed, and how many rows they should hold
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
            fine = max(1, min(SHAPE_BINS, len(values) // ROWS_IN_SHAPE_BIN))
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

    def distribution(
        self, distribution: LatticeDistribution, variable: Int[Tensor, "*cells"], own: Int[Tensor, "*cells"] | None
    ) -> LatticeDistribution:
        """The distribution with its share of values that were seen, that of the row itself left out."""
        none = torch.full_like(distribution.spacing, torch.nan)
        if own is not None:
            none = torch.where(own >= 0, self.rows[own.clamp(min=0), variable].to(none), torch.nan)
        return RecurringNumber(distribution.spacing, distribution, variable.to(distribution.spacing.dtype), none, self.table)

    def learned_share(
        self, smooth: Float[Tensor, " cell"], seen: Float[Tensor, " cell"], bins: Int[Tensor, " cell"], variables: int
    ) -> Float[Tensor, "variable bin"]:
        """The shares at which these cells are likeliest, from what the distribution and the seen values give each (by EM).

        Two cells beside them say that nothing recurs: a bin with few cells has a small share.
        """
        group, count = self.group[bins], variables * MOST_BINS
        total = torch.bincount(group, minlength=count) + 2.0
        share = torch.full((count,), 0.5)
        for _ in range(50):
            mine = share[group] * seen
            share = torch.zeros(count).index_add(0, group, mine / (mine + (1 - share[group]) * smooth).clamp(min=1e-37)) / total
        return share.unflatten(0, (variables, MOST_BINS))


Codes = NDArray[np.int32]  # (row, variable): the bin of every cell, -1 where there is none
BitRows = NDArray[np.uint64]  # (set, word): sets of training rows, 64 of them in a word
MaskTable = NDArray[np.float32]  # (set, bin)

FEWEST_RECURRING = 10  # matching rows below which nothing is counted
UNKNOWN, NOBODY, HELD = -1, -2, -3  # in place of a bin: any row matches, none does, every one that has a value
NARROW_BINS, ROWS_IN_ONE = 128, 100  # narrow bins of a number, at most; and how many rows they should hold
FREQUENT, MOST_FREQUENT_VALUES = (
    50,
    128,
)  # rows that make a value frequent; values of a number that have a narrow bin of their own
INDEX_WORDS_AT_ONCE = 2**15  # of sets that are compared together: 256 kB, which caches hold


class Binning:
    """How every variable is cut into bins: a code is its own bin, numbers are cut at edges.

    Numbers have about `BINS` bins, as full as each other, and one of its own for every value that would fill one.
    """

    def __init__(self, schema: Schema, edges: Sequence[Tensor | None]) -> None:
        self.edges = list(edges)
        self.spacing = [spacing_of(variable.domain) for variable in schema]
        self.bins = [levels_of(v.domain) if e is None else len(e) + 1 for v, e in zip(schema, edges, strict=True)]
        self.numbers = [i for i, cuts in enumerate(edges) if cuts is not None]

    @staticmethod
    def edges_of(schema: Schema, rows: Values, held: Mask) -> list[Tensor | None]:
        """The edges that suit these rows; none for codes."""
        columns = [rows[held[:, i], i] if isinstance(v.domain, Recorded) else None for i, v in enumerate(schema)]
        spacing = [spacing_of(variable.domain) for variable in schema]
        return [None if c is None else edges_of(c, s, BINS) for c, s in zip(columns, spacing, strict=True)]

    def codes_of(self, x: Values, known: Mask) -> Codes:
        """The bins of some rows' cells; -1 for what is not known."""
        seen, out = torch.where(known, x, 0.0), np.empty(x.shape, dtype=np.int32)
        for i, edges in enumerate(self.edges):
            out[:, i] = seen[:, i] if edges is None else torch.bucketize(seen[:, i].contiguous(), edges)
        return np.where(known.numpy(), out, np.int32(-1))

    def masses(self, distribution: Distribution, variable: int) -> Float[Tensor, "cell bin"]:
        """The probability of every bin of one variable."""
        edges = self.edges[variable]
        if isinstance(distribution, DiscreteDistribution):
            return distribution.pmf()[..., : self.bins[variable]]
        assert isinstance(distribution, LatticeDistribution)
        assert edges is not None
        return between(distribution.cdfs_between_bins(edges.to(distribution.spacing).expand(len(distribution.spacing), -1)))

    def reweighted(self, distribution: Distribution, weight: Float[Tensor, "cell bin"], variable: int) -> Distribution:
        """The distributions of one variable with every bin's probability times its weight, made to sum to 1."""
        if isinstance(distribution, DiscreteDistribution):
            return CategoricalDistribution(distribution.log_pmf() + weight.to(distribution.log_pmf()).log())
        edges = self.edges[variable]
        assert isinstance(distribution, LatticeDistribution)
        assert edges is not None
        return ReweightedNumber(
            distribution.spacing,
            distribution,
            edges.to(distribution.spacing).expand(len(weight), -1),
            weight.to(distribution.spacing),
        )


@final
class RowIndex(Binning):
    """Training rows cut into bins: which of them match what is known, and what they hold.

    Beside the bins of a number there are narrow ones, in which frequent values are alone: from `bins[variable]` on.
    """

    def __init__(self, schema: Schema, rows: Values, held: Mask) -> None:
        super().__init__(schema, self.edges_of(schema, rows, held))
        self.narrow = {i: narrow_edges(rows[held[:, i], i], self.spacing[i]) for i in self.numbers}
        self.codes = self.codes_of(rows, held)
        self.near, every = self.narrow_codes_of(rows, self.codes), np.zeros(len(rows), dtype=np.int32)
        more = [len(self.narrow[i]) + 1 if i in self.narrow else 0 for i in range(len(schema))]
        parts = [packed(self.codes[:, i], self.near[:, i], self.bins[i], more[i]) for i in range(len(schema))]
        self.having = np.stack([np.bitwise_or.reduce(part[:bins], axis=0) for part, bins in zip(parts, self.bins, strict=True)])
        self.sets = np.concatenate([*parts, self.having, packed(every, every, 1, 0)])  # and last the set of all rows
        self.size = sizes(self.sets)
        self.first = np.cumsum([0, *map(len, parts)])  # the first set of every variable, and of those that have a value

    @property
    def words(self) -> int:
        """Of a set."""
        return self.sets.shape[1]

    def narrow_codes_of(self, x: Values, codes: Codes) -> Codes:
        """The same codes, but those of the narrow bins of numbers."""
        out = codes.copy()
        for i, edges in self.narrow.items():
            known = codes[:, i] >= 0
            out[known, i] = self.bins[i] + torch.bucketize(x[:, i].contiguous(), edges).numpy()[known]
        return out

    def matching(self, codes: Codes) -> tuple[NDArray[np.bool_], BitRows]:
        """Which rows of codes match enough training rows, and which training rows these are.

        They match if they have the same codes, wherever there is one.
        """
        width, everyone = len(self.bins), len(self.sets) - 1
        sets = np.where(codes >= 0, self.first[:-1] + codes, everyone)
        sets = np.where(codes == HELD, self.first[-1] + np.arange(width), sets)
        sets = np.take_along_axis(sets, np.argsort(self.size[sets], axis=1, kind="stable"), axis=1)  # the smallest first
        possible = np.flatnonzero((codes != NOBODY).all(1))
        enough, step = np.zeros(len(codes), dtype=bool), max(1, INDEX_WORDS_AT_ONCE // self.words)
        found = [np.zeros((0, self.words), dtype=np.uint64)]
        for k in range(0, len(possible), step):
            some = possible[k : k + step]
            left, matching = self._in_all(sets[some])
            enough[some[left]] = True
            found.append(matching)
        return enough, np.concatenate(found)

    def _in_all(self, sets: NDArray[np.int64]) -> tuple[NDArray[np.int64], BitRows]:
        """The training rows that are in all sets of a row, for those rows in which they are enough."""
        left = np.flatnonzero(self.size[sets[:, 0]] >= FEWEST_RECURRING)
        found = self.sets[sets[left, 0]]
        for column in range(1, sets.shape[1]):
            if (sets[left, column] == len(self.sets) - 1).all():
                break
            found &= self.sets[sets[left, column]]
            enough = sizes(found) >= FEWEST_RECURRING
            if not enough.all():
                left, found = left[enough], found[enough]
        return left, found

    def count(self, matching: BitRows, variable: int) -> MaskTable:
        """How many of the matching rows are in every bin of a variable. Empty words are passed over."""
        bins = self.sets[self.first[variable] : self.first[variable] + self.bins[variable]]
        out = np.zeros((len(matching), len(bins)), dtype=np.float32)
        row, word = np.nonzero(matching)
        if len(row):
            each = np.bitwise_count(matching[row, word] & bins[:, word])
            start = np.flatnonzero(np.diff(row, prepend=-1))
            out[row[start]] = np.add.reduceat(each, start, axis=1, dtype=np.int64).T
        return out

    def members(self, matching: NDArray[np.uint64], most: int) -> NDArray[np.int64]:
        """Rows of a set: all, or so many of them, evenly spaced."""
        places = np.flatnonzero(np.unpackbits(matching.view(np.uint8), bitorder="little"))
        return places if len(places) <= most else places[np.linspace(0, len(places) - 1, most).round().astype(np.int64)]


def frequent_values(values: Float[Tensor, " value"]) -> Float[Tensor, " frequent"]:
    """Those that at least `FREQUENT` rows have, at most `MOST_VALUES` of them."""
    value, count = values.unique(return_counts=True)
    most = count.argsort(descending=True, stable=True)[:MOST_FREQUENT_VALUES]
    return value[most[count[most] >= FREQUENT]].sort().values


def narrow_edges(values: Float[Tensor, " value"], spacing: float) -> Float[Tensor, " edge"]:
    """Where a number is cut into narrow bins."""
    if not len(values):
        return values
    bins = max(BINS, min(NARROW_BINS, len(values) // ROWS_IN_ONE))
    alone = frequent_values(values)
    return torch.cat([edges_of(values, spacing, bins), alone - spacing / 2, alone + spacing / 2]).unique()


def packed(codes: NDArray[np.int32], near: NDArray[np.int32], bins: int, more: int) -> BitRows:
    """One set of rows for every bin, then one for every narrow bin."""
    width = -(-len(codes) // 64) * 8
    out = np.zeros((bins + more, width), dtype=np.uint8)
    for code in range(len(out)):
        bits = np.packbits((codes if code < bins else near) == code, bitorder="little")
        out[code, : len(bits)] = bits
    return out.view(np.uint64)


def sizes(sets: BitRows) -> NDArray[np.int64]:
    """How many rows are in every set."""
    return np.bitwise_count(sets).sum(-1, dtype=np.int64)
