"""How the cells of a column are written: text to whole numbers and back, without a change."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from ....archives.blocks import squeezed
from ....coding import Integers
from ....errors import FormatError

DECIMAL_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:([ T])[0-9]{2}:[0-9]{2}:[0-9]{2})?", re.ASCII)
UNIX_EPOCH, DAY_IN_SECONDS = datetime(1970, 1, 1), 24 * 60 * 60
LARGEST_CODED = 2**60  # numbers are smaller than this, so that their differences fit as well
MOST_DIGITS = 18


class CellFormat(ABC):
    """A way to write numbers; what is not written in it has no number."""

    kind: ClassVar[str]

    @abstractmethod
    def number(self, text: str) -> int | None:
        """The number written like this, if `text` gives the same back."""

    @abstractmethod
    def text(self, number: int) -> str | None:
        """How a number is written, if there is such a number."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...

    def numbers(self, texts: Sequence[str]) -> tuple[Integers, Integers]:
        """The numbers of texts, 0 where there is none, and where there is one."""
        found = [self.number(text) for text in texts]
        known = np.array([n is not None for n in found], dtype=np.int64)
        return np.array([n or 0 for n in found], dtype=np.int64), known


@final
@dataclass(frozen=True)
class Decimals(CellFormat):
    """Numbers with at most so many decimals, and at least so many although they are zeros: 12, 12.0, 12.50."""

    kind: ClassVar[str] = "decimals"
    most: int
    least: int

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most <= MOST_DIGITS:
            raise FormatError(f"A column claims numbers with {self.least} to {self.most} decimals.")

    def number(self, text: str) -> int | None:
        match = DECIMAL_NUMBER.fullmatch(text)
        if match is None or len(text) > 2 * MOST_DIGITS:
            return None
        decimals = match[1] or ""
        if len(decimals) > self.most:
            return None
        number = int(text.replace(".", "") + "0" * (self.most - len(decimals)))
        return number if abs(number) < LARGEST_CODED and self.text(number) == text else None

    def text(self, number: int) -> str:
        digits = str(abs(number)).rjust(self.most + 1, "0")
        whole, decimals = digits[: len(digits) - self.most], digits[len(digits) - self.most :].rstrip("0").ljust(self.least, "0")
        return ("-" if number < 0 else "") + whole + ("." + decimals if decimals else "")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "most": self.most, "least": self.least}


@final
@dataclass(frozen=True)
class Moments(CellFormat):
    """Days as 2020-12-31, or seconds as 2020-12-31 23:59:59 with a mark between day and time."""

    kind: ClassVar[str] = "moments"
    mark: str  # empty: days

    def __post_init__(self) -> None:
        if self.mark not in ("", " ", "T"):
            raise FormatError(f"A column claims moments with {self.mark!r} between day and time.")

    def number(self, text: str) -> int | None:
        match = MOMENT.fullmatch(text)
        if match is None or (match[1] or "") != self.mark:
            return None
        try:
            since = datetime.fromisoformat(text) - UNIX_EPOCH
        except ValueError:
            return None
        number = since.days if not self.mark else since.days * DAY_IN_SECONDS + since.seconds
        return number if self.text(number) == text else None

    def text(self, number: int) -> str | None:
        try:
            moment = UNIX_EPOCH + timedelta(seconds=number) if self.mark else UNIX_EPOCH + timedelta(days=number)
        except OverflowError:
            return None
        return moment.isoformat(self.mark) if self.mark else moment.date().isoformat()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "mark": self.mark}


@final
@dataclass(frozen=True)
class DictionaryWords(CellFormat):
    """One of these texts; a number is a place in the list."""

    kind: ClassVar[str] = "words"
    words: tuple[str, ...]
    places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", {word: place for place, word in enumerate(self.words)})
        if len(self.places) != len(self.words):
            raise FormatError("A column lists a word twice.")

    def number(self, text: str) -> int | None:
        return self.places.get(text)

    def text(self, number: int) -> str | None:
        return self.words[number] if 0 <= number < len(self.words) else None

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.words)}


def format_from_json(item: dict[str, Any]) -> CellFormat:
    if item["kind"] == Decimals.kind:
        return Decimals(int(item["most"]), int(item["least"]))
    if item["kind"] == Moments.kind:
        return Moments(str(item["mark"]))
    if item["kind"] != DictionaryWords.kind:
        raise FormatError(f"A column is written in a way unknown here: {item['kind']!r}.")
    return DictionaryWords(tuple(str(word) for word in item["words"]))


def learn_format(texts: Sequence[str], counts: Integers, share: float = 0.9) -> CellFormat:
    """Of different texts and how often each is there: numbers or moments if nearly all are, else words, frequent ones first."""
    matches = [DECIMAL_NUMBER.fullmatch(text) if len(text) <= MOST_DIGITS + 2 else None for text in texts]
    decimals = np.array([-1 if m is None else len(m[1] or "") for m in matches], dtype=np.int64)
    found = sorted(set(decimals[decimals >= 0].tolist()))
    tried = [Decimals(most, min(found)) for most in found if most <= MOST_DIGITS]
    scores = [int((form.numbers(texts)[1] * counts).sum()) for form in tried[-3:]]
    if scores and max(scores) >= share * counts.sum():
        return tried[-3:][int(np.argmax(scores))]
    marks = {match[1] or "" for text in texts[:100] if (match := MOMENT.fullmatch(text))}
    if len(marks) == 1:
        form = Moments(marks.pop())
        if int((form.numbers(texts)[1] * counts).sum()) >= share * counts.sum():
            return form
    order = np.argsort(-counts, kind="stable")
    return DictionaryWords(tuple(texts[k] for k in order))


ELSEWHERE, GAP, ODD = 0, 1, 2  # a number outside of all bins, no cell, and a cell that is not written like the others
SPECIAL = 3  # symbols before the first bin
MOST_SYMBOLS = 250
FEW_PLACES = 24  # so many symbols need no order; a part of the format


class Coded(NamedTuple):
    """Symbols of some cells, and their places inside the bins."""

    symbol: Integers
    place: Integers


@final
@dataclass(frozen=True)
class CodedColumn:
    """How the cells of a column become symbols; `kind` of a cell is 0, GAP or ODD."""

    format: CellFormat
    change: bool
    values: Integers | None  # all that are coded, rising; None: all whole numbers between the edges
    edges: Integers  # of the bins: their first places, and the end of the last
    levels: Integers  # edges of what the network is told about the row before
    start: int  # what stands for the row before the first

    def __post_init__(self) -> None:
        for name, rising in {"values": self.values, "edges": self.edges, "levels": self.levels}.items():
            if rising is not None and (
                rising.ndim != 1
                or (np.diff(rising) <= 0).any()
                or (rising < -2 * LARGEST_CODED).any()
                or (rising > 2 * LARGEST_CODED).any()
            ):
                raise FormatError(f"The {name} of a column do not rise.")
        if len(self.edges) < 2 or abs(self.start) >= LARGEST_CODED:
            raise FormatError("A column has no bins.")
        if self.values is not None and (self.edges[0] != 0 or self.edges[-1] != len(self.values)):
            raise FormatError("The bins of a column do not hold its values.")

    @property
    def symbols(self) -> int:
        return SPECIAL + len(self.edges) - 1

    @property
    def ordered(self) -> bool:
        return self.symbols > FEW_PLACES

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
    def from_json(cls, item: dict[str, Any], values: Integers | None) -> "CodedColumn":
        """`values` are not in the JSON: there may be many."""
        form = format_from_json(item["format"])
        edges, levels = from_steps(item["edges"]), from_steps(item["levels"])
        return cls(form, item["change"] is True, values, edges, levels, int(item["start"]))


def steps(rising: Integers) -> list[int]:
    return np.diff(rising, prepend=0).tolist()


def from_steps(item: list[int]) -> Integers:
    return np.cumsum(np.array(item, dtype=np.int64))


# Learning


def learn_coded_column(form: CellFormat, number: Integers, kind: Integers) -> CodedColumn | None:
    """The shortest way to code these cells, row after row; None if there is nothing to code."""
    present = number[kind == 0]
    if not len(present):
        return None
    start, levels = int(np.sort(present)[len(present) // 2]), quantiles(present)
    tried = list(ways(form, present, start, levels))
    return min(tried, key=lambda way: way[0])[1]


def ways(form: CellFormat, present: Integers, start: int, levels: Integers) -> Iterator[tuple[float, CodedColumn]]:
    """Columns that could be, and the bits they are estimated to take."""
    changes = np.diff(present, prepend=start)
    for change, told in ((False, present), (True, changes)) if not isinstance(form, DictionaryWords) else ((False, present),):
        values, counts = np.unique(told, return_counts=True)
        own = np.zeros(0, dtype=np.int64) if not change else levels
        edges = np.append(values[first_of_bins(counts)], values[-1] + 1)
        yield estimate(told, edges) + 0.02 * len(told) * change, CodedColumn(form, change, None, edges, own, start)
        if not isinstance(form, DictionaryWords):
            places = np.append(first_of_bins(counts), len(values))
            bits = estimate(np.searchsorted(values, told), places) + 8 * len(squeezed(byte_planes(values)))
            yield bits + 0.02 * len(told) * change, CodedColumn(form, change, values, places, own, start)


def first_of_bins(counts: Integers) -> Integers:
    """Which values begin a bin, so that bins hold about as many cells each; frequent values have their own."""
    if len(counts) <= MOST_SYMBOLS:
        return np.arange(len(counts))
    wanted, firsts, held = counts.sum() / MOST_SYMBOLS, [0], 0
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


def byte_planes(values: Integers) -> bytes:
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
