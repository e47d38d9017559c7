"""How the cells of a column are written: text to whole numbers and back, without a change."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, final

import numpy as np

from ...coding import Integers
from ...errors import FormatError

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:([ T])[0-9]{2}:[0-9]{2}:[0-9]{2})?", re.ASCII)
EPOCH, DAY = datetime(1970, 1, 1), 24 * 60 * 60
MOST = 2**60  # numbers are smaller than this, so that their differences fit as well
MOST_DIGITS = 18


class Format(ABC):
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
class Decimals(Format):
    """Numbers with at most so many decimals, and at least so many although they are zeros: 12, 12.0, 12.50."""

    kind: ClassVar[str] = "decimals"
    most: int
    least: int

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most <= MOST_DIGITS:
            raise FormatError(f"A column claims numbers with {self.least} to {self.most} decimals.")

    def number(self, text: str) -> int | None:
        match = NUMBER.fullmatch(text)
        if match is None or len(text) > 2 * MOST_DIGITS:
            return None
        decimals = match[1] or ""
        if len(decimals) > self.most:
            return None
        number = int(text.replace(".", "") + "0" * (self.most - len(decimals)))
        return number if abs(number) < MOST and self.text(number) == text else None

    def text(self, number: int) -> str:
        digits = str(abs(number)).rjust(self.most + 1, "0")
        whole, decimals = digits[: len(digits) - self.most], digits[len(digits) - self.most :].rstrip("0").ljust(self.least, "0")
        return ("-" if number < 0 else "") + whole + ("." + decimals if decimals else "")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "most": self.most, "least": self.least}


@final
@dataclass(frozen=True)
class Moments(Format):
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
            since = datetime.fromisoformat(text) - EPOCH
        except ValueError:
            return None
        number = since.days if not self.mark else since.days * DAY + since.seconds
        return number if self.text(number) == text else None

    def text(self, number: int) -> str | None:
        try:
            moment = EPOCH + timedelta(seconds=number) if self.mark else EPOCH + timedelta(days=number)
        except OverflowError:
            return None
        return moment.isoformat(self.mark) if self.mark else moment.date().isoformat()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "mark": self.mark}


@final
@dataclass(frozen=True)
class Words(Format):
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


def format_from_json(item: dict[str, Any]) -> Format:
    if item["kind"] == Decimals.kind:
        return Decimals(int(item["most"]), int(item["least"]))
    if item["kind"] == Moments.kind:
        return Moments(str(item["mark"]))
    if item["kind"] != Words.kind:
        raise FormatError(f"A column is written in a way unknown here: {item['kind']!r}.")
    return Words(tuple(str(word) for word in item["words"]))


def learn_format(texts: Sequence[str], counts: Integers, share: float = 0.9) -> Format:
    """Of different texts and how often each is there: numbers or moments if nearly all are, else words, frequent ones first."""
    matches = [NUMBER.fullmatch(text) if len(text) <= MOST_DIGITS + 2 else None for text in texts]
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
    return Words(tuple(texts[k] for k in order))
