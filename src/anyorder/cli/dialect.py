"""How a text file with a table is written: its encoding, what is between its cells, its decimal mark. Sniffed, or as told."""

import csv
import io
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, final

from ..errors import FormatError, InputError

SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
SNIFFED_ROWS = 200
POINTS = r"(?![+-]?\d{1,3}(?:\.\d{3})+$)[+-]?\d+\.\d+"  # 1.234 may be a thousand
BYTE_ORDER = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


class Written(NamedTuple):
    """How a file is written, with nothing left open."""

    encoding: str
    sep: str
    decimal: str

    def decoded(self, content: bytes) -> str:
        return content.decode(self.encoding)


@final
@dataclass(frozen=True)
class Dialect:
    """What was said of it; what is None is sniffed."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None and len(SEPARATORS.get(self.sep, self.sep)) != 1:
            raise InputError(
                f"--sep {self.sep!r} is not understood; expected one character, or tab, comma, semicolon, pipe or space."
            )
        if self.decimal not in (None, ".", ","):
            raise InputError(f"--decimal {self.decimal!r} is not understood; expected . or a comma.")

    def refuse(self, name: str) -> None:
        """For files that are no text."""
        for option in ("sep", "decimal", "encoding"):
            if getattr(self, option) is not None:
                raise InputError(f"--{option} is for .csv and .tsv files; {name} is none.")

    def of(self, content: bytes, path: Path) -> Written:
        """How this file is written; what is not the plain case is said, if nobody asked for it."""
        own = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
        encoding = self.encoding or encoding_of(path.name, content)
        text = decode(path.name, content, encoding)
        sep = SEPARATORS.get(self.sep, self.sep) if self.sep else separator_in(text, own)
        decimal = self.decimal or decimal_in(text, sep)
        said = [f"in the encoding {encoding}"] if self.encoding is None and encoding != "utf-8-sig" else []
        said += [f"separated by {sep!r}"] if self.sep is None and sep != own else []
        said += ["with decimal commas"] if self.decimal is None and decimal != "." else []
        if said:
            remedy = "If that is wrong, say --encoding, --sep or --decimal."
            warnings.warn(f"{path.name} is read as a table {', '.join(said)}. {remedy}", stacklevel=4)
        return Written(encoding, sep, decimal)


def encoding_of(name: str, content: bytes) -> str:
    """UTF-8 if it can be; with the mark of UTF-16 that; else the encoding of Windows in western Europe."""
    if content[:2] in BYTE_ORDER:
        return BYTE_ORDER[content[:2]]
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" not in text:
            return "cp1252"
        line = content[: error.start].count(b"\n") + 1
        remedy = "Say --encoding, or save it as UTF-8"
        raise FormatError(f"{name} is not UTF-8 text: byte {content[error.start]:#x} in line {line}. {remedy}.") from error
    return "utf-8-sig"


def decode(name: str, content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except LookupError as error:
        raise InputError(f"--encoding {encoding!r} is not known; expected a name such as utf-8, latin1 or cp1252.") from error
    except UnicodeError as error:
        raise FormatError(f"{name} cannot be read in the encoding {encoding} ({error}). Say another --encoding.") from error


def separator_in(text: str, own: str) -> str:
    """The first mark under which all rows at the top have as many cells as the header, and more than one; else its own."""
    for mark in (own, *(mark for mark in ",;\t|" if mark != own)):
        try:
            widths = {len(row) for row in rows_of(text, mark)}
        except csv.Error:
            continue
        if len(widths) == 1 and widths != {1}:
            return mark
    return own


def decimal_in(text: str, separator: str) -> str:
    """A comma, if it is not between cells and more numbers have it than a point."""
    if separator == ",":
        return "."
    try:
        cells = [cell.strip() for row in rows_of(text, separator) for cell in row]
    except csv.Error:
        return "."
    commas, points = (sum(re.fullmatch(form, cell) is not None for cell in cells) for form in (r"[+-]?\d[\d.]*,\d+", POINTS))
    return "," if commas > points else "."


def rows_of(text: str, mark: str) -> Iterable[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    return islice(filter(None, reader), SNIFFED_ROWS)
