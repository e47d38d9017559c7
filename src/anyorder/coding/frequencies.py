"""Functions of whole numbers as tables, made with decimal arithmetic: the same numbers on every machine, for ever.

What a network says is a multiple of 1 / 2^GRID. Every table below is a list of integers; no library's exp or log is asked.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

GRID = 10  # a network's number n stands for n / 2^GRID
COARSE_BITS = 6  # the grid of logits and scales in their tables
LARGEST_ARGUMENT = 16  # logits and scales are cut beyond this
STEEP = 16  # one over a scale is a multiple of 1 / 2^STEEP
ARGUMENT = 11  # what the sigmoid is asked, a multiple of 1 / 2^ARGUMENT, cut beyond MOST
SHARE = 20  # what the sigmoid answers, a multiple of 1 / 2^SHARE
WEIGHT = 16  # weights add up to nearly 2^WEIGHT
DECIMALS = Context(prec=40)


@cache
def sigmoid() -> Integers:
    """2^SHARE / (1 + e^-z), rounded down, at z = (i - MOST * 2^ARGUMENT) / 2^ARGUMENT for i = 0, 1, ..."""
    half = LARGEST_ARGUMENT << ARGUMENT
    with localcontext(DECIMALS):
        one, falling = Decimal(1), powers((Decimal(-1) / 2**ARGUMENT).exp(), half + 1)
        above = [int(2**SHARE / (one + power)) for power in falling]  # z = 0, 1, ..., half
    return frozen_array([2**SHARE - value - 1 for value in above[:0:-1]] + above[:-1])


@cache
def exponential() -> Integers:
    """2^WEIGHT e^-d, rounded, at d = i / 2^COARSE up to MOST."""
    with localcontext(DECIMALS):
        ratio = (Decimal(-1) / 2**COARSE_BITS).exp()
        return frozen_array([int(2**WEIGHT * power + Decimal("0.5")) for power in powers(ratio, LARGEST_ARGUMENT << COARSE_BITS)])


@cache
def steepness_table(least: Decimal) -> Integers:
    """2^STEEP / (least + log(1 + e^(r - 1))), rounded down, at r = i / 2^COARSE - MOST, in the middle of its step."""
    count = 2 * LARGEST_ARGUMENT << COARSE_BITS
    with localcontext(DECIMALS):
        start = (Decimal(1) / 2 / 2**COARSE_BITS - LARGEST_ARGUMENT - 1).exp()
        rising = powers((Decimal(1) / 2**COARSE_BITS).exp(), count)
        return frozen_array([int(2**STEEP / (least + (1 + start * power).ln())) for power in rising])


def powers(base: Decimal, count: int) -> Iterator[Decimal]:
    power = Decimal(1)
    for _ in range(count):
        yield power
        power *= base


def frozen_array(values: list[int]) -> Integers:
    table = np.array(values, dtype=np.int64)
    table.flags.writeable = False
    return table


BITS = 24
TOTAL = 2**BITS
PLACE_BITS = 20  # places on the scale -1 .. 1 are multiples of 1 / 2^PLACE


class Frequencies(ABC):
    """For every cell how often each of its `size` symbols is expected in TOTAL; cells may have different sizes."""

    size: int | Integers

    @abstractmethod
    def below(self, symbol: Integers) -> Integers:
        """How many of TOTAL belong to smaller symbols, cell by cell: strictly rising from 0 at 0 to TOTAL at `size`."""


@final
@dataclass(frozen=True)
class Uniform(Frequencies):
    """All symbols alike, at most TOTAL of them."""

    size: int | Integers

    def below(self, symbol: Integers) -> Integers:
        return np.minimum(symbol, self.size) * TOTAL // self.size


@final
@dataclass(frozen=True)
class Binary(Frequencies):
    """0 or 1, from a logit in steps of 1 / 2^GRID."""

    logit: Integers
    size: int = 2

    def below(self, symbol: Integers) -> Integers:
        argument = table_place(-self.logit << (ARGUMENT - GRID))
        zero = 1 + ((TOTAL - 2) * sigmoid()[argument] >> SHARE)
        return np.where(symbol <= 0, 0, np.where(symbol >= 2, TOTAL, zero))


@final
class Scored(Frequencies):
    """Symbols with a score each, in steps of 1 / 2^GRID: as often as e^score."""

    def __init__(self, scores: Integers) -> None:
        weight = weights(scores)
        self.size = size = scores.shape[-1]
        total = weight.sum(-1, keepdims=True)
        share = np.cumsum(weight, -1) * (TOTAL - size) // total
        self.cumulative = np.concatenate([np.zeros_like(share[..., :1]), share + np.arange(1, size + 1)], axis=-1)

    def below(self, symbol: Integers) -> Integers:
        return np.take_along_axis(self.cumulative, symbol.clip(0, self.size)[..., None], axis=-1)[..., 0]


@final
@dataclass(frozen=True)
class Shades(Frequencies):
    """Whole numbers on a scale: a mixture of logistic distributions, the ends owning the tails."""

    weight: Integers  # (cell, component), adding up to at most 2^WEIGHT
    place: Integers  # (cell, component) in 1 / 2^PLACE
    steep: Integers  # (cell, component) in 1 / 2^STEEP
    size: int

    def below(self, symbol: Integers) -> Integers:
        share = (self.weight * self.reached(symbol)).sum(-1)
        inside = symbol + ((TOTAL - self.size) * share >> (SHARE + WEIGHT))
        return np.where(symbol <= 0, 0, np.where(symbol >= self.size, TOTAL, inside))

    def reached(self, symbol: Integers) -> Integers:
        """Of every component what lies below this symbol, in 1 / 2^SHARE."""
        edge = edges(self.size)[symbol.clip(0, self.size)][..., None]
        return sigmoid()[table_place((edge - self.place) * self.steep >> (PLACE_BITS + STEEP - ARGUMENT))]

    def given(self, symbol: Integers) -> Integers:
        """The weights of the components once the symbol is known."""
        above = np.where((symbol >= self.size - 1)[..., None], 1 << SHARE, self.reached(symbol + 1))
        mass = above - np.where((symbol <= 0)[..., None], 0, self.reached(symbol))
        likely = self.weight * (mass + 1)  # a component that cannot be excluded
        return (likely << WEIGHT) // np.maximum(likely.sum(-1, keepdims=True), 1)


def shades(logits: Integers, place: Integers, raw: Integers, size: int, least: Decimal) -> Shades:
    """From a network's numbers, in steps of 1 / 2^GRID: logits, places and scales before they are made positive."""
    return Shades(shares(logits), (place << (PLACE_BITS - GRID)) + starts(logits.shape[-1]), steepness(raw, least), size)


def shares(logits: Integers) -> Integers:
    """Weights that add up to at most 2^WEIGHT."""
    weight = weights(logits)
    return (weight << WEIGHT) // weight.sum(-1, keepdims=True)


def weights(logits: Integers) -> Integers:
    """e^logit next to that of the largest, at most 2^WEIGHT."""
    behind = (logits.max(-1, keepdims=True) - logits) >> (GRID - COARSE_BITS)
    table = exponential()
    return table[np.minimum(behind, len(table) - 1)]


def steepness(raw: Integers, least: Decimal) -> Integers:
    """One over the scale."""
    table = steepness_table(least)
    return table[((raw >> (GRID - COARSE_BITS)) + (LARGEST_ARGUMENT << COARSE_BITS)).clip(0, len(table) - 1)]


def table_place(argument: Integers) -> Integers:
    """Where the sigmoid's table holds this argument."""
    half = LARGEST_ARGUMENT << ARGUMENT
    return argument.clip(-half, half - 1) + half


@cache
def edges(size: int) -> Integers:
    """The lower end of every symbol on the scale, and the upper end of the last, in 1 / 2^PLACE."""
    return frozen_array([round((Fraction(2 * k - 1, size - 1) - 1) * 2**PLACE_BITS) for k in range(size + 1)])


@cache
def starts(components: int) -> Integers:
    """Where the components of a mixture stand before the network moves them, in 1 / 2^PLACE."""
    if components == 1:
        return frozen_array([round(Fraction(-8, 10) * 2**PLACE_BITS)])
    return frozen_array(
        [round((Fraction(16 * k, 10 * (components - 1)) - Fraction(8, 10)) * 2**PLACE_BITS) for k in range(components)]
    )
