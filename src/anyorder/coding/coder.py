"""Symbols to bits and back with constriction's range coder: one procedure for both ways, so that they cannot differ.

A symbol is found by bisection: is it in the upper half of what is left? Each answer is coded with its own probability, for
all cells at once. So any distribution serves that can say how much lies below a symbol, and no table of all symbols is ever made.
"""

from abc import ABC, abstractmethod
from typing import final

import constriction
import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .frequencies import TOTAL, Frequencies, Integers, Uniform

YES_OR_NO = constriction.stream.model.Bernoulli(perfect=False)
CHUNK_BITS = 16  # bits of a plain number that are coded at once


class Coder(ABC):
    """Codes symbols, one for each cell of a distribution. The encoder writes what it is given, the decoder looks away
    and reads.
    """

    def __call__(self, distribution: Frequencies, symbols: Integers) -> Integers:
        low = np.zeros(symbols.shape, dtype=np.int64)
        below, above = np.zeros_like(low), np.full_like(low, TOTAL)
        for bit in reversed(range((int(np.max(distribution.size, initial=1)) - 1).bit_length())):
            middle = low + (1 << bit)
            counts = distribution.below(middle)
            chance = (above - counts) / (above - below)
            upper = self._choose(symbols >= middle, chance, middle < distribution.size)
            low, below, above = np.where(upper, middle, low), np.where(upper, counts, below), np.where(upper, above, counts)
        return low

    def plain(self, numbers: Integers, bits: int | Integers) -> Integers:
        """Numbers from 0 of which nothing is expected but how many bits they have, at most 63."""
        out, bits = np.zeros(numbers.shape, dtype=np.int64), np.broadcast_to(bits, numbers.shape)
        for start in range(0, int(bits.max(initial=0)), CHUNK_BITS):
            here = bits > start
            size = 1 << np.minimum(CHUNK_BITS, bits[here] - start)
            out[here] |= self(Uniform(size), (numbers[here] >> start) & (size - 1)) << start
        return out

    def evenly(self, numbers: Integers, size: Integers) -> Integers:
        """Numbers from 0 to size - 1, all alike; of more than 2^CHUNK of them the lower bits are plain."""
        plain = np.maximum(bit_length(size - 1) - CHUNK_BITS, 0)
        high = self(Uniform(((size - 1) >> plain) + 1), numbers >> plain)
        return (high << plain) | self.plain(numbers & ((1 << plain) - 1), plain)

    def signed(self, numbers: Integers) -> Integers:
        """Any numbers below 2^62 in size: how long they are, then their bits."""
        folded = np.where(numbers < 0, ~numbers << 1 | 1, numbers << 1)
        bits = self(Uniform(64), bit_length(folded))
        folded = self.plain(folded, bits)
        return np.where(folded & 1, ~(folded >> 1), folded >> 1)

    def _choose(self, wanted: NDArray[np.bool_], chance: NDArray[np.float64], possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Upper half or not; where there is no upper half, nothing is coded."""
        if possible.all():
            return self._bits(wanted.ravel(), chance.ravel()).reshape(wanted.shape)
        out = np.zeros_like(wanted)
        out[possible] = self._bits(wanted[possible], chance[possible])
        return out

    @property
    def written(self) -> int:
        """How many were written so far."""
        return 0

    @abstractmethod
    def _bits(self, wanted: NDArray[np.bool_], chance: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Yes or no, with the probability of yes."""


def bit_length(numbers: Integers) -> Integers:
    """Of numbers from 0: how many bits they have."""
    out, left = np.zeros_like(numbers), numbers.copy()
    while left.any():
        out += left > 0
        left >>= 1
    return out


@final
class Encoder(Coder):
    """Collects bits."""

    def __init__(self) -> None:
        self.queue = constriction.stream.queue.RangeEncoder()

    def _bits(self, wanted: NDArray[np.bool_], chance: NDArray[np.float64]) -> NDArray[np.bool_]:
        self.queue.encode(wanted.astype(np.int32), YES_OR_NO, chance)
        return wanted

    @property
    def written(self) -> int:
        return int(self.queue.num_bits())

    def content(self) -> bytes:
        return self.queue.get_compressed().astype("<u4").tobytes()


@final
class Decoder(Coder):
    """Gives back what was collected."""

    def __init__(self, content: bytes) -> None:
        if len(content) % 4:
            raise FormatError(f"A stream of {len(content)} bytes; expected a multiple of 4.")
        self.queue = constriction.stream.queue.RangeDecoder(np.frombuffer(content, dtype="<u4").astype(np.uint32))

    def _bits(self, wanted: NDArray[np.bool_], chance: NDArray[np.float64]) -> NDArray[np.bool_]:
        try:
            return self.queue.decode(YES_OR_NO, chance).astype(bool)
        except AssertionError as error:  # what constriction raises for bits that no encoder writes
            raise FormatError(f"A stream does not fit its model ({error}).") from error
