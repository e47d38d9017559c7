"""Symbols to bits and back with constriction's range coder: one procedure for both ways, so that they cannot differ.

A symbol is found by bisection: is it in the upper half of what is left? Each answer is coded with its own probability, for
all cells at once. So any law serves that can say how much lies below a symbol, and no table of all symbols is ever made.
"""

from abc import ABC, abstractmethod
from typing import final

import constriction
import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .frequencies import TOTAL, Even, Frequencies
from .tables import Integers

YES_OR_NO = constriction.stream.model.Bernoulli(perfect=False)
CHUNK = 16  # bits of a plain number that are coded at once


class Coder(ABC):
    """Codes symbols, one for each cell of a law. The encoder writes what it is given, the decoder looks away and reads."""

    def __call__(self, law: Frequencies, symbols: Integers) -> Integers:
        low = np.zeros(symbols.shape, dtype=np.int64)
        below, above = np.zeros_like(low), np.full_like(low, TOTAL)
        for bit in reversed(range((law.size - 1).bit_length())):
            middle = low + (1 << bit)
            counts = law.below(middle)
            chance = (above - counts) / (above - below)
            upper = self._choose(symbols >= middle, chance, middle < law.size)
            low, below, above = np.where(upper, middle, low), np.where(upper, counts, below), np.where(upper, above, counts)
        return low

    def plain(self, numbers: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
        """Numbers of which nothing is expected."""
        out = np.zeros(numbers.shape, dtype=np.uint64)
        for start in range(0, bits, CHUNK):
            size = 1 << min(CHUNK, bits - start)
            part = (numbers >> np.uint64(start)) & np.uint64(size - 1)
            out |= self(Even(size), part.astype(np.int64)).astype(np.uint64) << np.uint64(start)
        return out

    def _choose(self, wanted: NDArray[np.bool_], chance: NDArray[np.float64], possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Upper half or not; where there is no upper half, nothing is coded."""
        if possible.all():
            return self._bits(wanted.ravel(), chance.ravel()).reshape(wanted.shape)
        out = np.zeros_like(wanted)
        out[possible] = self._bits(wanted[possible], chance[possible])
        return out

    @abstractmethod
    def _bits(self, wanted: NDArray[np.bool_], chance: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Yes or no, with the probability of yes."""


@final
class Encoder(Coder):
    """Collects bits."""

    def __init__(self) -> None:
        self.queue = constriction.stream.queue.RangeEncoder()

    def _bits(self, wanted: NDArray[np.bool_], chance: NDArray[np.float64]) -> NDArray[np.bool_]:
        self.queue.encode(wanted.astype(np.int32), YES_OR_NO, chance)
        return wanted

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
