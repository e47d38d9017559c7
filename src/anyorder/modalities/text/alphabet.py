"""Characters as codes: the commonest have one each, all others share one, and no character is lost."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from jaxtyping import Int, UInt8

from ...errors import FormatError, InputError

END, OTHER, FIRST = 0, 1, 2  # the border between two documents, any rare character, the commonest character
MOST_CHARACTERS = 254  # so that codes are bytes
MOST_RARE = 4096  # rare characters whose counts are kept
CODE_POINTS = 0x110000  # halves of surrogates among them: bytes that are no UTF-8 are kept as such
Codes = UInt8[np.ndarray, " place"]


@final
@dataclass(frozen=True)
class Alphabet:
    """The characters with a code of their own, the commonest first, and how often rarer ones occurred.

    >>> alphabet = Alphabet.of(["banana"], most=2)
    >>> alphabet.encode("band").tolist()
    [1, 2, 3, 1]
    >>> alphabet.decode(alphabet.encode("nana"))
    'nana'
    >>> round(math.exp(alphabet.log_other("b")), 2)
    0.33
    """

    characters: str
    rare: Mapping[str, int]

    @classmethod
    def of(cls, pieces: Iterable[str], most: int = MOST_CHARACTERS) -> "Alphabet":
        """From all pieces of some texts."""
        counts = np.zeros(CODE_POINTS, np.int64)
        for piece in pieces:
            points = code_points(piece)
            if len(points):
                found = np.bincount(points)
                counts[: len(found)] += found
        order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
        if not len(order):
            raise InputError("There is no text to learn from: all texts are empty.")
        names = [chr(point) for point in order]
        rare = {name: int(counts[ord(name)]) for name in names[most : most + MOST_RARE]}
        return cls("".join(names[:most]), rare)

    @property
    def levels(self) -> int:
        return FIRST + len(self.characters)

    def encode(self, text: str) -> Codes:
        return self._codes[code_points(text)]

    def decode(self, codes: Int[np.ndarray, " place"] | Codes, text: str = "") -> str:
        """As text; a rare character is that of the `text` at the same place, or the commonest rare one."""
        usual = next(iter(self.rare), "\ufffd")
        names = ["", usual, *self.characters]
        return "".join(text[i] if code == OTHER and i < len(text) else names[code] for i, code in enumerate(codes.tolist()))

    def log_other(self, character: str) -> float:
        """How likely a rare character is this one, in nats: as often as it was seen, and all that never were alike."""
        total, kinds = sum(self.rare.values()), len(self.rare)
        if character in self.rare:
            return math.log(self.rare[character] / (total + kinds + 1))
        return math.log((kinds + 1) / (total + kinds + 1) / (CODE_POINTS - len(self.characters) - kinds))

    def log_others(self, text: str, codes: Codes) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The same at every place of a text; 0 where a character has a code of its own."""
        out = np.zeros(len(codes))
        for place in np.flatnonzero(codes == OTHER):
            out[place] = self.log_other(text[place])
        return out

    @cached_property
    def _codes(self) -> UInt8[np.ndarray, " point"]:
        codes = np.full(CODE_POINTS, OTHER, np.uint8)
        for code, name in enumerate(self.characters, FIRST):
            codes[ord(name)] = code
        return codes

    def to_json(self) -> dict[str, Any]:
        """As numbers: not every character may stand in a file of UTF-8."""
        return {"characters": [ord(c) for c in self.characters], "rare": [[ord(c), n] for c, n in self.rare.items()]}

    @classmethod
    def from_json(cls, about: Mapping[str, Any]) -> "Alphabet":
        characters = "".join(chr(point) for point in about["characters"])
        rare = {chr(point): int(count) for point, count in about["rare"]}
        if len({*characters, *rare}) != len(characters) + len(rare) or not 1 <= len(characters) <= MOST_CHARACTERS:
            raise FormatError("The file contradicts itself: the characters of its text are none, too many or not all different.")
        if any(count < 1 for count in rare.values()):
            raise FormatError("The file contradicts itself: a character of its text occurs less than once.")
        return cls(characters, rare)


def code_points(text: str) -> Int[np.ndarray, " place"]:
    """Of every character."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)


def named(characters: Sequence[str], most: int = 40) -> str:
    """A few characters to be read by a person."""
    shown = "".join(c if c.isprintable() else " " for c in sorted(characters[:most]))
    return shown + ("…" if len(characters) > most else "")
