"""One column of a table as symbols: a few hundred bins that a network can know, and the place inside a bin, evenly.

A number is coded as it is or as its change since the row before; on the lattice of all numbers with its decimals, or among
the values that were there when the codec was learned: whichever is estimated to be shorter.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from ...coding import Integers
from ...errors import FormatError
from ..blocks import squeezed
from .formats import MOST, Format, Words, format_from_json

ELSEWHERE, GAP, ODD = 0, 1, 2  # a number outside of all bins, no cell, and a cell that is not written like the others
SPECIAL = 3  # symbols before the first bin
BINS = 250
FEW = 24  # so many symbols need no order; a part of the format


class Coded(NamedTuple):
    """Symbols of some cells, and their places inside the bins."""

    symbol: Integers
    place: Integers


@final
@dataclass(frozen=True)
class Column:
    """How the cells of a column become symbols; `kind` of a cell is 0, GAP or ODD."""

    format: Format
    change: bool
    values: Integers | None  # all that are coded, rising; None: all whole numbers between the edges
    edges: Integers  # of the bins: their first places, and the end of the last
    levels: Integers  # edges of what the network is told about the row before
    start: int  # what stands for the row before the first

    def __post_init__(self) -> None:
        for name, rising in {"values": self.values, "edges": self.edges, "levels": self.levels}.items():
            if rising is not None and (
                rising.ndim != 1 or (np.diff(rising) <= 0).any() or (rising < -2 * MOST).any() or (rising > 2 * MOST).any()
            ):
                raise FormatError(f"The {name} of a column do not rise.")
        if len(self.edges) < 2 or abs(self.start) >= MOST:
            raise FormatError("A column has no bins.")
        if self.values is not None and (self.edges[0] != 0 or self.edges[-1] != len(self.values)):
            raise FormatError("The bins of a column do not hold its values.")

    @property
    def symbols(self) -> int:
        return SPECIAL + len(self.edges) - 1

    @property
    def ordered(self) -> bool:
        return self.symbols > FEW

    @property
    def level_count(self) -> int:
        return SPECIAL + len(self.levels) + 1 if self.change else self.symbols

    def coded(self, number: Integers, kind: Integers, before: Integers) -> Coded:
        """The symbols of cells; numbers that are in no bin are elsewhere."""
        told = number - before if self.change else number
        if self.values is None:
            place, hit = told, (told >= self.edges[0]) & (told < self.edges[-1])
        else:
            place = np.searchsorted(self.values, told).clip(0, len(self.values) - 1)
            hit = self.values[place] == told
        found = np.searchsorted(self.edges, place, side="right") - 1
        found = found.clip(0, len(self.edges) - 2)
        symbol = np.where(kind != 0, kind, np.where(hit, found + SPECIAL, ELSEWHERE))
        return Coded(symbol, np.where(symbol >= SPECIAL, place - self.edges[found], 0))

    def widths(self, symbol: Integers) -> Integers:
        """How many places the bin of each symbol has."""
        return np.diff(self.edges)[symbol - SPECIAL]

    def number(self, coded: Coded, before: Integers) -> Integers:
        """The number of every symbol that has a bin."""
        place = self.edges[coded.symbol - SPECIAL] + coded.place
        told = place if self.values is None else self.values[place.clip(0, len(self.values) - 1)]
        return told + before if self.change else told

    def level(self, number: Integers, symbol: Integers) -> Integers:
        """What the network is told of a cell in the next row, and of this one in the columns after it."""
        if not self.change:
            return symbol
        near = SPECIAL + np.searchsorted(self.levels, number, side="right")
        return np.where((symbol == GAP) | (symbol == ODD), symbol, near)

    def to_json(self) -> dict[str, Any]:
        """All but the values; rising numbers are written as their steps, which are small."""
        return {
            "format": self.format.to_json(),
            "change": self.change,
            "edges": steps(self.edges),
            "levels": steps(self.levels),
            "start": self.start,
        }

    @classmethod
    def from_json(cls, item: dict[str, Any], values: Integers | None) -> "Column":
        """`values` are not in the JSON: there may be many."""
        form = format_from_json(item["format"])
        edges, levels = from_steps(item["edges"]), from_steps(item["levels"])
        return cls(form, item["change"] is True, values, edges, levels, int(item["start"]))


def steps(rising: Integers) -> list[int]:
    return np.diff(rising, prepend=0).tolist()


def from_steps(item: list[int]) -> Integers:
    return np.cumsum(np.array(item, dtype=np.int64))


# Learning


def learn_column(form: Format, number: Integers, kind: Integers) -> Column | None:
    """The shortest way to code these cells, row after row; None if there is nothing to code."""
    present = number[kind == 0]
    if not len(present):
        return None
    start, levels = int(np.sort(present)[len(present) // 2]), quantiles(present)
    tried = list(ways(form, present, start, levels))
    return min(tried, key=lambda way: way[0])[1]


def ways(form: Format, present: Integers, start: int, levels: Integers) -> Iterator[tuple[float, Column]]:
    """Columns that could be, and the bits they are estimated to take."""
    changes = np.diff(present, prepend=start)
    for change, told in ((False, present), (True, changes)) if not isinstance(form, Words) else ((False, present),):
        values, counts = np.unique(told, return_counts=True)
        own = np.zeros(0, dtype=np.int64) if not change else levels
        edges = np.append(values[first_of_bins(counts)], values[-1] + 1)
        yield estimate(told, edges) + 0.02 * len(told) * change, Column(form, change, None, edges, own, start)
        if not isinstance(form, Words):
            places = np.append(first_of_bins(counts), len(values))
            bits = estimate(np.searchsorted(values, told), places) + 8 * len(squeezed(planes(values)))
            yield bits + 0.02 * len(told) * change, Column(form, change, values, places, own, start)


def first_of_bins(counts: Integers) -> Integers:
    """Which values begin a bin, so that bins hold about as many cells each; frequent values have their own."""
    if len(counts) <= BINS:
        return np.arange(len(counts))
    wanted, firsts, held = counts.sum() / BINS, [0], 0
    for place, count in enumerate(counts.tolist()):
        if held and held + count / 2 > wanted:
            firsts.append(place)
            held = 0
        held += count
    return np.array(firsts)


def estimate(told: Integers, edges: Integers) -> float:
    """Bits of bins by their frequency, and of places inside them."""
    counts = np.bincount(np.searchsorted(edges, told, side="right") - 1, minlength=len(edges) - 1)
    used = counts > 0
    each = np.log2(len(told) / counts[used]) + np.log2(np.diff(edges)[used].astype(np.float64))
    return float((counts[used] * each).sum())


def planes(values: Integers) -> bytes:
    """Steps between rising values: all first bytes, then all second bytes, and so on, so that the zeros lie together."""
    return np.diff(values, prepend=0).astype("<i8").view(np.uint8).reshape(-1, 8).T.tobytes()


def from_planes(content: bytes) -> Integers:
    if len(content) % 8:
        raise FormatError("The values of a column are no bytes of whole numbers.")
    return np.cumsum(np.frombuffer(content, np.uint8).reshape(8, -1).T.copy().view("<i8")[:, 0].astype(np.int64))


def quantiles(present: Integers) -> Integers:
    """Where levels end, about as many cells in each."""
    values, counts = np.unique(present, return_counts=True)
    return values[first_of_bins(counts)][1:]


def remembers(symbol: Integers, parts: int = 8) -> bool:
    """Whether a column's symbols tell something about those of the next row: more bits than chance would."""
    if len(symbol) < 64:
        return False
    rank = np.unique(symbol, return_inverse=True)[1]
    ends = np.unique(np.quantile(rank, np.arange(1, parts) / parts, method="lower"))
    group = np.searchsorted(ends, rank)
    pair = np.bincount(group[:-1] * (len(ends) + 1) + group[1:], minlength=(len(ends) + 1) ** 2).reshape(len(ends) + 1, -1)
    joint = pair / pair.sum()
    alone = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    used = joint > 0
    bits = float((joint[used] * np.log2(joint[used] / alone[used])).sum())
    return bits - len(ends) ** 2 / (2 * len(symbol) * math.log(2)) > 0.02
