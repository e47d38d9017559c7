"""Training rows cut into bins, as sets of bits: which of them match what is known, and what they hold."""

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from .conditionals import between
from .heads import CategoricalLaw, DiscreteLaw, LatticeLaw, Law
from .heads.reweighted import ReweightedNumber
from .recurring import BINS, edges_of
from .schema import Mask, Recorded, Schema, Values, levels_of, spacing_of

Codes = NDArray[np.int32]  # (row, variable): the bin of every cell, -1 where there is none
Words = NDArray[np.uint64]  # (set, word): sets of training rows, 64 of them in a word
Table = NDArray[np.float32]  # (set, bin)

FEWEST = 10  # matching rows below which nothing is counted
UNKNOWN, NOBODY, HELD = -1, -2, -3  # in place of a bin: any row matches, none does, every one that has a value
NARROW_BINS, ROWS_IN_ONE = 128, 100  # narrow bins of a number, at most; and how many rows they should hold
FREQUENT, MOST_VALUES = 50, 128  # rows that make a value frequent; values of a number that have a narrow bin of their own
WORDS_AT_ONCE = 2**15  # of sets that are compared together: 256 kB, which caches hold


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

    def masses(self, law: Law, variable: int) -> Float[Tensor, "cell bin"]:
        """The probability of every bin of one variable."""
        edges = self.edges[variable]
        if isinstance(law, DiscreteLaw):
            return law.pmf()[..., : self.bins[variable]]
        assert isinstance(law, LatticeLaw)
        assert edges is not None
        return between(law.cdfs_between_bins(edges.to(law.spacing).expand(len(law.spacing), -1)))

    def reweighted(self, law: Law, weight: Float[Tensor, "cell bin"], variable: int) -> Law:
        """The laws of one variable with every bin's probability times its weight, made to sum to 1."""
        if isinstance(law, DiscreteLaw):
            return CategoricalLaw(law.log_pmf() + weight.to(law.log_pmf()).log())
        edges = self.edges[variable]
        assert isinstance(law, LatticeLaw)
        assert edges is not None
        return ReweightedNumber(law.spacing, law, edges.to(law.spacing).expand(len(weight), -1), weight.to(law.spacing))


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

    def matching(self, codes: Codes) -> tuple[NDArray[np.bool_], Words]:
        """Which rows of codes match enough training rows, and which training rows these are.

        They match if they have the same codes, wherever there is one.
        """
        width, everyone = len(self.bins), len(self.sets) - 1
        sets = np.where(codes >= 0, self.first[:-1] + codes, everyone)
        sets = np.where(codes == HELD, self.first[-1] + np.arange(width), sets)
        sets = np.take_along_axis(sets, np.argsort(self.size[sets], axis=1, kind="stable"), axis=1)  # the smallest first
        possible = np.flatnonzero((codes != NOBODY).all(1))
        enough, step = np.zeros(len(codes), dtype=bool), max(1, WORDS_AT_ONCE // self.words)
        found = [np.zeros((0, self.words), dtype=np.uint64)]
        for k in range(0, len(possible), step):
            some = possible[k : k + step]
            left, matching = self._in_all(sets[some])
            enough[some[left]] = True
            found.append(matching)
        return enough, np.concatenate(found)

    def _in_all(self, sets: NDArray[np.int64]) -> tuple[NDArray[np.int64], Words]:
        """The training rows that are in all sets of a row, for those rows in which they are enough."""
        left = np.flatnonzero(self.size[sets[:, 0]] >= FEWEST)
        found = self.sets[sets[left, 0]]
        for column in range(1, sets.shape[1]):
            if (sets[left, column] == len(self.sets) - 1).all():
                break
            found &= self.sets[sets[left, column]]
            enough = sizes(found) >= FEWEST
            if not enough.all():
                left, found = left[enough], found[enough]
        return left, found

    def count(self, matching: Words, variable: int) -> Table:
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
    most = count.argsort(descending=True, stable=True)[:MOST_VALUES]
    return value[most[count[most] >= FREQUENT]].sort().values


def narrow_edges(values: Float[Tensor, " value"], spacing: float) -> Float[Tensor, " edge"]:
    """Where a number is cut into narrow bins."""
    if not len(values):
        return values
    bins = max(BINS, min(NARROW_BINS, len(values) // ROWS_IN_ONE))
    alone = frequent_values(values)
    return torch.cat([edges_of(values, spacing, bins), alone - spacing / 2, alone + spacing / 2]).unique()


def packed(codes: NDArray[np.int32], near: NDArray[np.int32], bins: int, more: int) -> Words:
    """One set of rows for every bin, then one for every narrow bin."""
    width = -(-len(codes) // 64) * 8
    out = np.zeros((bins + more, width), dtype=np.uint8)
    for code in range(len(out)):
        bits = np.packbits((codes if code < bins else near) == code, bitorder="little")
        out[code, : len(bits)] = bits
    return out.view(np.uint64)


def sizes(sets: Words) -> NDArray[np.int64]:
    """How many rows are in every set."""
    return np.bitwise_count(sets).sum(-1, dtype=np.int64)
