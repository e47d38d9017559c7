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
FREQUENT, MOST_VALUES = 50, 128  # rows that make a value frequent; values of a number that have a set of their own
PRUNE_EVERY = 3  # columns, after which rows with too few matches are not looked at any more


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
            return law.pmf()
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

    Beside the bins there are sets of rows with the same number, for values that are frequent: from `bins[variable]` on.
    """

    def __init__(self, schema: Schema, rows: Values, held: Mask) -> None:
        super().__init__(schema, self.edges_of(schema, rows, held))
        self.frequent = [frequent_values(rows[held[:, i], i]) if i in self.numbers else None for i in range(len(schema))]
        self.codes = self.codes_of(rows, held)
        same = self.exact_codes_of(rows, self.codes)
        self.sets = [packed(self.codes[:, i], same[:, i], self.bins[i], self.frequent[i]) for i in range(len(schema))]
        self.everyone = packed(np.zeros(len(rows), dtype=np.int32), np.zeros(0, dtype=np.int32), 1, None)
        self.having = [np.bitwise_or.reduce(sets[:bins], axis=0) for sets, bins in zip(self.sets, self.bins, strict=True)]

    @property
    def words(self) -> int:
        """Of a set."""
        return self.sets[0].shape[1]

    def exact_codes_of(self, x: Values, codes: Codes) -> Codes:
        """The same, but numbers that are frequent have the bins of their values; -2 for numbers that are not."""
        out = codes.copy()
        for i in self.numbers:
            values, known = self.frequent[i], codes[:, i] >= 0
            assert values is not None
            place = torch.searchsorted(values, x[:, i].contiguous() - self.spacing[i] / 2).clamp(max=max(0, len(values) - 1))
            same = (values[place] - x[:, i]).abs() < self.spacing[i] / 2 if len(values) else torch.zeros(len(x), dtype=torch.bool)
            out[known, i] = np.where(same.numpy(), self.bins[i] + place.numpy(), -2)[known]
        return out

    def matching(self, codes: Codes) -> Words:
        """For every row of codes the training rows with the same, wherever there is one; none, if they are too few.

        One column after the other, those first that tell most apart.
        """
        out = np.repeat(self.everyone, len(codes), axis=0)
        left, since = np.arange(len(codes)), 0
        for i in sorted(range(len(self.bins)), key=lambda i: -self.bins[i]):
            rows = left[codes[left, i] >= 0]
            if not len(rows):
                continue
            out[rows] &= self.sets[i][codes[rows, i]]
            since += 1
            if since % PRUNE_EVERY == 0:
                left = left[sizes(out[left]) >= FEWEST]
        few = np.ones(len(codes), dtype=bool)
        few[left] = sizes(out[left]) < FEWEST
        out[few] = 0
        return out

    def count(self, matching: Words, variable: int) -> Table:
        """How many of the matching rows are in every bin of a variable."""
        bins = self.sets[variable][: self.bins[variable]]
        return np.stack([sizes(matching & one) for one in bins], axis=-1).astype(np.float32)

    def members(self, matching: NDArray[np.uint64], most: int) -> NDArray[np.int64]:
        """Rows of a set: all, or so many of them, evenly spaced."""
        places = np.flatnonzero(np.unpackbits(matching.view(np.uint8), bitorder="little"))
        return places if len(places) <= most else places[np.linspace(0, len(places) - 1, most).round().astype(np.int64)]


def frequent_values(values: Float[Tensor, " value"]) -> Float[Tensor, " frequent"]:
    """Those that at least `FREQUENT` rows have, at most `MOST_VALUES` of them."""
    value, count = values.unique(return_counts=True)
    most = count.argsort(descending=True, stable=True)[:MOST_VALUES]
    return value[most[count[most] >= FREQUENT]].sort().values


def packed(codes: NDArray[np.int32], same: NDArray[np.int32], bins: int, frequent: Tensor | None) -> Words:
    """One set of rows for every bin, then one for every frequent value."""
    width = -(-len(codes) // 64) * 8
    out = np.zeros((bins + (0 if frequent is None else len(frequent)), width), dtype=np.uint8)
    for code in range(len(out)):
        bits = np.packbits((codes if code < bins else same) == code, bitorder="little")
        out[code, : len(bits)] = bits
    return out.view(np.uint64)


def sizes(sets: Words) -> NDArray[np.int64]:
    """How many rows are in every set."""
    return np.bitwise_count(sets).sum(-1, dtype=np.int64)
