"""Laws as whole numbers: how many of 2^24 belong to each symbol. Exact sums, no zero, the same on every machine."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import final

import numpy as np

from .tables import ARGUMENT, COARSE, GRID, MOST, SHARE, STEEP, WEIGHT, Integers, exponential, frozen, sigmoid
from .tables import steepness as steepness_table

BITS = 24
TOTAL = 2**BITS
PLACE = 20  # places on the scale -1 .. 1 are multiples of 1 / 2^PLACE


class Frequencies(ABC):
    """For every cell how often each of its `size` symbols is expected in TOTAL; cells may have different sizes."""

    size: int | Integers

    @abstractmethod
    def below(self, symbol: Integers) -> Integers:
        """How many of TOTAL belong to smaller symbols, cell by cell: strictly rising from 0 at 0 to TOTAL at `size`."""


@final
@dataclass(frozen=True)
class Even(Frequencies):
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
        argument = cut(-self.logit << (ARGUMENT - GRID))
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
    """Whole numbers on a scale: a mixture of logistic laws, the ends owning the tails."""

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
        return sigmoid()[cut((edge - self.place) * self.steep >> (PLACE + STEEP - ARGUMENT))]

    def given(self, symbol: Integers) -> Integers:
        """The weights of the components once the symbol is known."""
        above = np.where((symbol >= self.size - 1)[..., None], 1 << SHARE, self.reached(symbol + 1))
        mass = above - np.where((symbol <= 0)[..., None], 0, self.reached(symbol))
        likely = self.weight * (mass + 1)  # a component that cannot be excluded
        return (likely << WEIGHT) // np.maximum(likely.sum(-1, keepdims=True), 1)


def shades(logits: Integers, place: Integers, raw: Integers, size: int, least: Decimal) -> Shades:
    """From a network's numbers, in steps of 1 / 2^GRID: logits, places and scales before they are made positive."""
    return Shades(shares(logits), (place << (PLACE - GRID)) + starts(logits.shape[-1]), steepness(raw, least), size)


def shares(logits: Integers) -> Integers:
    """Weights that add up to at most 2^WEIGHT."""
    weight = weights(logits)
    return (weight << WEIGHT) // weight.sum(-1, keepdims=True)


def weights(logits: Integers) -> Integers:
    """e^logit next to that of the largest, at most 2^WEIGHT."""
    behind = (logits.max(-1, keepdims=True) - logits) >> (GRID - COARSE)
    table = exponential()
    return table[np.minimum(behind, len(table) - 1)]


def steepness(raw: Integers, least: Decimal) -> Integers:
    """One over the scale."""
    table = steepness_table(least)
    return table[((raw >> (GRID - COARSE)) + (MOST << COARSE)).clip(0, len(table) - 1)]


def cut(argument: Integers) -> Integers:
    """Where the sigmoid's table holds this argument."""
    half = MOST << ARGUMENT
    return argument.clip(-half, half - 1) + half


@cache
def edges(size: int) -> Integers:
    """The lower end of every symbol on the scale, and the upper end of the last, in 1 / 2^PLACE."""
    return frozen([round((Fraction(2 * k - 1, size - 1) - 1) * 2**PLACE) for k in range(size + 1)])


@cache
def starts(components: int) -> Integers:
    """Where the components of a mixture stand before the network moves them, in 1 / 2^PLACE."""
    if components == 1:
        return frozen([round(Fraction(-8, 10) * 2**PLACE)])
    return frozen([round((Fraction(16 * k, 10 * (components - 1)) - Fraction(8, 10)) * 2**PLACE) for k in range(components)])
