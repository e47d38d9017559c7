"""Cells of text files as they were written: what was there keeps every character, what is filled in is written like the rest."""

import datetime as dt
import io
import re
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .table_files import Dialect, Frame, WrittenNumbers, is_delimited, pandas

Style = Callable[[str], str]
TIMES = {16: "minutes", 19: "seconds", 23: "milliseconds", 26: "microseconds"}  # how long a date with such a time is


def as_written(filled: Frame, frame: Frame, source: Path, content: bytes, output: Path, dialect: Dialect = Dialect()) -> Frame:
    """The filled table as it is to be written: from one text file to another, cells are texts and only gaps get new ones."""
    if not (is_delimited(source) and is_delimited(output)):
        return filled
    written = dialect.of(content, source)
    texts = read_texts(content, written)
    cells = {name: written_back(texts[name], frame[name], filled[name], written.decimal) for name in texts}
    return pandas().DataFrame({name: cells.get(name, filled[name]) for name in filled})


def separator(source: Path, content: bytes, dialect: Dialect) -> str:
    """What is between the cells of a .csv file, so that one is written like the other; a comma for other files."""
    found = dialect.of(content, source).sep if is_delimited(source) else ","
    return "," if found == "\t" else found


def read_texts(content: bytes, written: WrittenNumbers) -> Frame:
    """Every cell with the characters it has, gaps included; the rows are those of `read_csv`."""
    text = io.StringIO(written.decoded(content))
    return pandas().read_csv(text, sep=written.sep, dtype=str, na_filter=False)


def written_back(texts: Any, before: Any, after: Any, decimal: str = ".") -> Any:
    """The texts of one column, or of several draws of it one below the other, new ones where a gap was filled."""
    draws = len(after) // len(texts)
    cells = np.tile(texts.to_numpy(dtype=object), draws)
    there = np.tile(before.notna().to_numpy(), draws)
    new = ~there & after.notna().to_numpy()
    new[there] = (
        np.tile(before.to_numpy(dtype=object), draws)[there] != after.to_numpy(dtype=object)[there]
    )  # 999, say, for a gap
    if new.any():
        plain = after.astype(str).to_numpy(dtype=object)[new]
        own = pandas().api.types.is_string_dtype(after)  # text has no other way to be written
        write = str if own else style_of(set(texts[before.notna().to_numpy()]), decimal)
        cells[new] = [write(text) for text in plain]
    return cells


def style_of(texts: Collection[str], decimal: str = ".") -> Style:
    """How booleans, numbers or dates are written in a column, if all are written alike."""
    if decimal == ",":
        plain = style_of({text.replace(".", "").replace(",", ".") for text in texts})
        return lambda text: plain(text).replace(".", ",")
    for case in (str.upper, str.lower):
        if texts and all(text in (case("true"), case("false")) for text in texts):
            return case
    if (digits := common(digits_of, texts)) and any(text.startswith("0") for text in texts):
        return lambda text: text.zfill(digits) if text.isdecimal() else text
    if decimals := common(decimals_of, texts):
        return partial(with_decimals, decimals)
    if marks := common(marks_of, texts):
        return partial(with_marks, *marks)
    return str


def common(trait: Callable[[str], Any], texts: Collection[str]) -> Any:
    """What all texts have in common, None if they differ."""
    found = {trait(text) for text in texts}
    return found.pop() if len(found) == 1 else None


def digits_of(text: str) -> int | None:
    return len(text) if text.isdecimal() else None


def decimals_of(text: str) -> int | None:
    found = re.fullmatch(r"[+-]?\d*\.(\d+)", text)
    return len(found[1]) if found else None


def with_decimals(decimals: int, text: str) -> str:
    """1.5 as 1.50, and 1.625 as it is."""
    longer = f"{float(text):.{decimals}f}"
    return longer if float(longer) == float(text) else text


def marks_of(text: str) -> tuple[int, str] | None:
    """How long a date is, and what is between day and time."""
    found = re.fullmatch(r"\d{4}-\d\d-\d\d(?:([T ])[\d:.]+)?", text)
    return (len(text), found[1] or " ") if found else None


def with_marks(length: int, between: str, text: str) -> str:
    """2024-01-31 17:30:00 as 2024-01-31T17:30; a time that would be cut off stays."""
    instant = dt.datetime.fromisoformat(text)
    other = instant.date().isoformat() if length == 10 else instant.isoformat(between, TIMES.get(length, "auto"))
    return other if dt.datetime.fromisoformat(other) == instant else instant.isoformat(between)
