"""Cells of text files as they were written: what was there keeps every character, what is filled in is written like the rest."""

import datetime as dt
import io
import math
import re
import warnings
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..estimator import AnyOrder
from ..modalities.tables.columns import NumberColumn, plain
from ..modalities.tables.dataframes import as_frame
from ..modalities.tables.table_files import Dialect, Frame, WrittenNumbers, is_delimited, pandas
from .cells import evidence, find_column
from .question import QuestionPart, write_part

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


Document = dict[str, Any]
LOWEST = 5


def impute(model: AnyOrder, frame: Frame, draws: int | None) -> tuple[Frame, Document]:
    """The gaps filled with the best guess, or `draws` tables one below the other."""
    gaps = {c.name: int(gaps_of(model, frame, c.name).sum()) for c in model.encoder_.columns if c.name in frame}
    lacking = [column.name for column in model.encoder_.columns if column.name not in frame]
    if lacking:
        warnings.warn(f"The table lacks {', '.join(lacking)}; add a column as empty cells to have it filled.", stacklevel=2)
    about = {"rows": len(frame), "gaps": sum(gaps.values()), "columns": {name: count for name, count in gaps.items() if count}}
    if draws is None:
        return model.transform(frame), about
    if "draw" in frame:
        raise InputError('The table has a column "draw" already, which is what the number of the draw is called. Rename it.')
    drawn = [one.assign(draw=number) for number, one in enumerate(model.impute(frame, draws))]
    stacked = pandas().concat(drawn, ignore_index=True)
    return stacked[["draw", *frame.columns]], {**about, "draws": draws}


def gaps_of(model: AnyOrder, frame: Frame, name: str) -> Any:
    """Which cells of a column are empty or stand for gaps."""
    column = next((column for column in model.encoder_.columns if column.name == name), None)
    return frame[name].isna() if column is None else model.encoder_.gaps(column, as_frame(frame)[name])


def with_intervals(model: AnyOrder, frame: Frame, filled: Frame, level: float) -> Frame:
    """Behind every number column with gaps the two bounds of each gap."""
    lower, upper = model.intervals(frame, level)
    numbers = {c.name for c in model.encoder_.columns if isinstance(c, NumberColumn)}
    for name in frame.columns:
        gaps = gaps_of(model, frame, name)
        if name not in numbers or not gaps.any():
            continue
        for end, bounds in (("low", lower), ("high", upper)):
            if f"{name}_{end}" in filled:
                raise InputError(f'The table has a column "{name}_{end}" already. Rename it, or leave out --intervals.')
            place = filled.columns.get_loc(name) + (1 if end == "low" else 2)
            filled.insert(place, f"{name}_{end}", bounds[name].where(gaps))
    return filled


def sample(model: AnyOrder, n: int, parts: tuple[QuestionPart, ...], **how: Any) -> tuple[Frame, Document]:
    """New rows given what is known."""
    drawn = model.sample(n, given=evidence(model.encoder_, parts), **how)
    return drawn, {"rows": len(drawn), "given": [write_part(part) for part in parts]}


def score(model: AnyOrder, frame: Frame, target: list[str], given: list[str], **how: Any) -> tuple[Frame, Document]:
    """log p(target | given) of every row, and a summary."""
    for name in (*target, *given):
        find_column(model.encoder_, name)
    asked = target or [c.name for c in model.encoder_.columns if c.name not in given]
    nats = model.score_samples(frame, target or None, given, **how)
    there = [name for name in asked if name in frame]
    order = nats.argsort(kind="stable")
    about = {
        "target": target or None,
        "given": given,
        "rows": len(frame),
        "rows_with_gaps": int(frame[there].isna().any(axis=1).sum()) if len(there) == len(asked) else len(frame),
        "mean": float(nats.mean()),
        "standard_error": float(nats.std() / math.sqrt(len(nats))),
        "spread": float(nats.std()),
        "lowest": [{"row": int(row) + 1, "log_prob": float(nats[row])} for row in order[:LOWEST]],
    }
    return pandas().DataFrame({"row": range(1, len(nats) + 1), "log_prob": nats}), about


def records(model: AnyOrder, frame: Frame) -> list[Document]:
    """The rows of a table as JSON can hold them, gaps as null."""
    columns: dict[str, Any] = {}
    for column in model.encoder_.columns:
        columns |= dict.fromkeys([column.name, f"{column.name}_low", f"{column.name}_high"], column)
    cells = [
        [None if gap else plain(columns.get(name), value) for value, gap in zip(found.astype(object), found.isna(), strict=True)]
        for name, found in frame.items()
    ]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*cells, strict=True)]
