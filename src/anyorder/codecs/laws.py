"""From a head and the whole numbers a network said to a law in integer frequencies, coded or decoded."""

from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ..coding import Binary, Coder, Integers, Scored, Shades, frequencies, shades
from ..coding.frequencies import PLACE
from ..coding.tables import GRID, frozen
from ..errors import InputError
from ..heads import Bernoulli, Categorical, ColourMixture, Head, LogisticMixture

SLOPES = ((), (0,), (1, 2))  # of red none, of green that on red, of blue those on red and on green


def coded(coder: Coder, head: Head, said: Tensor, symbols: Integers) -> Integers:
    """The symbols of cells whose laws the network described with these numbers, one row each."""
    numbers = (said.double() * 2**GRID).to(torch.int64).numpy()  # multiples of 1 / 2^GRID: nothing is lost
    match head:
        case Bernoulli():
            return coder(Binary(numbers[:, 0]), symbols)
        case Categorical():
            return coder(Scored(numbers), symbols)
        case LogisticMixture():
            logits, place, raw = np.split(numbers, 3, axis=-1)
            return coder(shades(logits, place, raw, head.levels, least(head.min_scale)), symbols)
        case ColourMixture():
            return coded_colour(coder, head, numbers, symbols)
        case _:
            raise InputError(f"There is no code for the law {head.kind!r}.")


def coded_colour(coder: Coder, head: ColourMixture, numbers: Integers, symbols: Integers) -> Integers:
    """Red, then green given red, then blue given both; what is known of the component grows on the way."""
    levels, count = head.shades, head.components
    logits, rest = numbers[:, :count], numbers[:, count:].reshape(len(numbers), count, 9)
    place, raw, slope = rest[..., :3], rest[..., 3:6], rest[..., 6:]
    weight, found = frequencies.shares(logits), list[Integers]()
    for channel, wanted in enumerate((symbols // levels**2, symbols // levels % levels, symbols % levels)):
        lean = sum(
            slope[..., k] * on_scale(levels)[known][:, None] >> GRID for k, known in zip(SLOPES[channel], found, strict=True)
        )
        at = (place[..., channel] << (PLACE - GRID)) + frequencies.starts(count) + lean
        law = Shades(weight, at, frequencies.steepness(raw[..., channel], least(head.min_scale)), levels)
        found.append(coder(law, wanted))
        weight = law.given(found[-1])
    return (found[0] * levels + found[1]) * levels + found[2]


def least(scale: float) -> Decimal:
    return Decimal(str(scale))


@cache
def on_scale(levels: int) -> Integers:
    """Where each level stands between -1 and 1, in 1 / 2^PLACE."""
    return frozen([round((Fraction(2 * level, levels - 1) - 1) * 2**PLACE) for level in range(levels)])
