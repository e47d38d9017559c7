"""Functions of whole numbers as tables, made with decimal arithmetic: the same numbers on every machine, for ever.

What a network says is a multiple of 1 / 2^GRID. Every table below is a list of integers; no library's exp or log is asked.
"""

from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from functools import cache

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

GRID = 10  # a network's number n stands for n / 2^GRID
COARSE = 6  # the grid of logits and scales in their tables
MOST = 16  # logits and scales are cut beyond this
STEEP = 16  # one over a scale is a multiple of 1 / 2^STEEP
ARGUMENT = 11  # what the sigmoid is asked, a multiple of 1 / 2^ARGUMENT, cut beyond MOST
SHARE = 20  # what the sigmoid answers, a multiple of 1 / 2^SHARE
WEIGHT = 16  # weights add up to nearly 2^WEIGHT
EXACT = Context(prec=40)


@cache
def sigmoid() -> Integers:
    """2^SHARE / (1 + e^-z), rounded down, at z = (i - MOST * 2^ARGUMENT) / 2^ARGUMENT for i = 0, 1, ..."""
    half = MOST << ARGUMENT
    with localcontext(EXACT):
        one, falling = Decimal(1), powers((Decimal(-1) / 2**ARGUMENT).exp(), half + 1)
        above = [int(2**SHARE / (one + power)) for power in falling]  # z = 0, 1, ..., half
    return frozen([2**SHARE - value - 1 for value in above[:0:-1]] + above[:-1])


@cache
def exponential() -> Integers:
    """2^WEIGHT e^-d, rounded, at d = i / 2^COARSE up to MOST."""
    with localcontext(EXACT):
        ratio = (Decimal(-1) / 2**COARSE).exp()
        return frozen([int(2**WEIGHT * power + Decimal("0.5")) for power in powers(ratio, MOST << COARSE)])


@cache
def steepness(least: Decimal) -> Integers:
    """2^STEEP / (least + log(1 + e^(r - 1))), rounded down, at r = i / 2^COARSE - MOST, in the middle of its step."""
    count = 2 * MOST << COARSE
    with localcontext(EXACT):
        start = (Decimal(1) / 2 / 2**COARSE - MOST - 1).exp()
        rising = powers((Decimal(1) / 2**COARSE).exp(), count)
        return frozen([int(2**STEEP / (least + (1 + start * power).ln())) for power in rising])


def powers(base: Decimal, count: int) -> Iterator[Decimal]:
    power = Decimal(1)
    for _ in range(count):
        yield power
        power *= base


def frozen(values: list[int]) -> Integers:
    table = np.array(values, dtype=np.int64)
    table.flags.writeable = False
    return table
