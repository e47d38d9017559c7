"""Questions as a person types them, "income | age=30..40, city in (Oslo, Bergen)": text to parts and back, knowing no model."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

from ..errors import InputError

QUOTED = re.compile(r"\"((?:[^\"]|\"\")*)\"|'((?:[^']|'')*)'")
AFTER_NAME = re.compile(r"\s+in\s*(?P<list>\()|\s*(?P<mark>!=|>\s*=|<\s*=|==|[=<>≥≤≠,|]|\Z)")
AFTER_VALUE = re.compile(r"\s*(\.\.|[,|]|\Z)")
AFTER_END = re.compile(r"\s*([,|]|\Z)")
AFTER_MEMBER = re.compile(r"\s*([,)]|\Z)")
# What cannot stand without quotes.
RISKY_NAME = re.compile(r"[=,|()<>!≥≤≠]|^[\"']|\bin\b")
RISKY_VALUE = re.compile(r"[,|()]|\.\.|^[=.\"']|\.$")  # after =, < or > a = would be read as part of the sign


@final
@dataclass(frozen=True)
class Is:
    """One value."""

    text: str


@final
@dataclass(frozen=True)
class Within:
    """From low to high, both included; an end that is None is open."""

    low: str | None
    high: str | None


@final
@dataclass(frozen=True)
class Among:
    """One of several values."""

    texts: tuple[str, ...]


@final
@dataclass(frozen=True)
class Compared:
    """Above or below a value, or any other one: the sign is <, > or !=."""

    sign: str
    text: str


Wanted = Is | Within | Among | Compared


class QuestionPart(NamedTuple):
    """A column, and what is said about it, if anything."""

    name: str
    wanted: Wanted | None = None


class Asked(NamedTuple):
    """The columns asked for, and what is known."""

    targets: tuple[QuestionPart, ...]
    given: tuple[QuestionPart, ...] = ()


def parse_question(text: str) -> Asked:
    """The question in a text such as "income | age=39, city=Oslo"; without "|" nothing is given.

    >>> parse_question("income | age=30..40").given
    (QuestionPart(name='age', wanted=Within(low='30', high='40')),)
    """
    reader = Reader(text)
    targets = reader.parts()
    given = reader.parts() if reader.last == "|" else []
    if reader.last == "|":
        raise reader.error('there is more than one "|"')
    check_given(text, given)
    check_once(text, [*targets, *given])
    return Asked(tuple(targets), tuple(given))


def parse_evidence(texts: list[str]) -> tuple[QuestionPart, ...]:
    """What is known, from texts such as "city=Oslo" or "age=30..40, sex=F"."""
    parts = [part for text in texts for part in parse_list(text)]
    check_given("; ".join(texts), parts)
    check_once("; ".join(texts), parts)
    return tuple(parts)


def parse_names(texts: list[str]) -> list[str]:
    """Column names, from texts such as "age, city"."""
    parts = [part for text in texts for part in parse_list(text)]
    for part in parts:
        if part.wanted is not None:
            raise InputError(f"Got {write_part(part)!r}; expected names of columns only, such as {quoted_name(part.name)}.")
    return [part.name for part in parts]


def parse_list(text: str) -> list[QuestionPart]:
    reader = Reader(text)
    parts = reader.parts()
    if reader.last == "|":
        raise reader.error('there is a "|", which has a meaning in `anyorder ask` only')
    return parts


def check_given(text: str, given: list[QuestionPart]) -> None:
    for part in given:
        if part.wanted is None:
            name = quoted_name(part.name)
            raise InputError(
                f"In {text!r}, {part.name!r} is given without a value. "
                f"Write {name}=..., {name}=low..high, {name}>low or {name} in (a, b)."
            )


def check_once(text: str, parts: list[QuestionPart]) -> None:
    names = [part.name for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"In {text!r}, {name!r} stands {names.count(name)} times. Name every column once.")


ALIKE = {"==": "=", "≥": ">=", "≤": "<=", "≠": "!="}
SIGNS: dict[str, Callable[[str], Wanted]] = {
    ">=": lambda text: Within(text, None),
    "<=": lambda text: Within(None, text),
    ">": lambda text: Compared(">", text),
    "<": lambda text: Compared("<", text),
    "!=": lambda text: Compared("!=", text),
}


@final
class Reader:
    """Reads a text from left to right; `last` is the mark that ended the last part: "," "|" or "" for the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.last = ","

    def parts(self) -> list[QuestionPart]:
        """All parts up to "|" or the end."""
        found = [self.part()]
        while self.last == ",":
            found.append(self.part())
        return found

    def part(self) -> QuestionPart:
        name, mark = self.word(AFTER_NAME, "the name of a column")
        mark = ALIKE.get(mark, "".join(mark.split()))
        self.last = mark
        if mark == "=":
            return QuestionPart(name, self.value())
        if mark in SIGNS:
            text, self.last = self.word(AFTER_END, f"a value after {mark}")
            return QuestionPart(name, SIGNS[mark](text))
        return QuestionPart(name, self.members()) if mark == "(" else QuestionPart(name)

    def value(self) -> Wanted:
        """One value, or a range: low..high, low.. or ..high."""
        self.skip_blanks()
        if self.text.startswith("..", self.at):
            self.at += 2
            high, self.last = self.word(AFTER_END, "a value after ..")
            return Within(None, high)
        low, mark = self.word(AFTER_VALUE, "a value after =")
        if mark != "..":
            self.last = mark
            return Is(low)
        if ended := AFTER_END.match(self.text, self.at):
            self.at, self.last = ended.end(), ended[1]
            return Within(low, None)
        high, self.last = self.word(AFTER_END, "a value after ..")
        return Within(low, high)

    def members(self) -> Among:
        """The values between the brackets."""
        found = []
        mark = ","
        while mark == ",":
            text, mark = self.word(AFTER_MEMBER, "a value between the brackets")
            found.append(text)
        if mark != ")":
            raise self.error('a ")" is missing')
        ended = AFTER_END.match(self.text, self.at)
        if not ended:
            raise self.error(f"{self.text[self.at :].strip()!r} after the bracket is not understood; expected a comma or the end")
        self.at, self.last = ended.end(), ended[1]
        return Among(tuple(found))

    def word(self, after: re.Pattern[str], expected: str) -> tuple[str, str]:
        """The next word, quoted or bare, and the mark after it."""
        self.skip_blanks()
        inside = QUOTED.match(self.text, self.at)
        if inside:
            end = after.match(self.text, inside.end())
            if not end:
                rest = self.text[inside.end() :].strip()
                raise self.error(f"{rest!r} after {inside[0]} is not understood; a quote inside quotes is written twice")
            word = inside[0][1:-1].replace(inside[0][0] * 2, inside[0][0])
        else:
            if self.text[self.at : self.at + 1] in ('"', "'"):
                raise self.error(f"the quote {self.text[self.at]} at place {self.at + 1} is not closed")
            end = after.search(self.text, self.at)
            assert end  # the end of the text always matches
            word = self.text[self.at : end.start()].strip()
            if not word:
                raise self.error(f"expected {expected} at place {self.at + 1}")
        self.at = end.end()
        return word, end[end.lastindex or 0]

    def skip_blanks(self) -> None:
        self.at = len(self.text) - len(self.text[self.at :].lstrip())

    def error(self, what: str) -> InputError:
        return InputError(
            f"Cannot read {self.text!r}: {what}. A question looks like: income | age>30, city in (Oslo, 'New York')."
        )


def write_question(asked: Asked) -> str:
    """The text of a question; `parse_question` reads it back."""
    targets = ", ".join(map(write_part, asked.targets))
    return f"{targets} | {', '.join(map(write_part, asked.given))}" if asked.given else targets


def write_part(part: QuestionPart) -> str:
    name = quoted_name(part.name)
    match part.wanted:
        case Is(text):
            return f"{name}={quoted(text)}"
        case Within(low, high):
            return f"{name}={'' if low is None else quoted(low)}..{'' if high is None else quoted(high)}"
        case Among(texts):
            return f"{name} in ({', '.join(map(quoted, texts))})"
        case Compared(sign, text):
            return f"{name}{sign}{quoted(text)}"
    return name


def quoted_name(name: str) -> str:
    return quoted(name, RISKY_NAME)


def quoted(text: str, risky: re.Pattern[str] = RISKY_VALUE) -> str:
    """The text as it is, or in quotes if it could be misread without."""
    if text and text == text.strip() and not risky.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
