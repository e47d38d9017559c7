"""A table of any dataframe library and (rows, variables) numbers: kinds and precision found, gaps kept, dtypes restored."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import narwhals as nw
import numpy as np
import torch
from torch import Tensor

from ..errors import FormatError, InputError
from ..schema import Schema, Variable
from .columns import (
    CategoryColumn,
    Cells,
    Column,
    NumberColumn,
    column_from_json,
    holds_numbers,
    looks_like_text_or_names,
    read_moment,
    read_numbers,
)
from .frames import Frame, Series, as_frame, column_of, given_back, is_array, is_gap, put, shortlist
from .levels import level_to_json


@final
@dataclass(frozen=True)
class TableEncoder:
    """What was learned about a table: its modelled columns, what was left out and why, and what is always the same."""

    columns: tuple[Column, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()  # all columns of the table, in order

    @classmethod
    def learn(cls, table: Frame, kinds: Mapping[Any, str] | None = None) -> "TableEncoder":
        """Find the kind of every column; `kinds` overrules, with "category", "number" or "leave out"."""
        frame = as_frame(table)
        kinds = {str(name): kind for name, kind in (kinds or {}).items()}
        for name, kind in kinds.items():
            check_kind(name, kind, frame.columns)
        columns: list[Column] = []
        left_out: dict[str, str] = {}
        for name in frame.columns:
            learned = learn_column(name, frame[name], kinds.get(name))
            if isinstance(learned, str):
                left_out[name] = learned
            else:
                columns.append(learned)
        if not columns:
            if not left_out:
                raise InputError(
                    f"There is nothing to model: 0 feature(s) (shape=({len(frame)}, 0)) while a minimum of 1 is required."
                )
            few = f" It has only {len(frame)} sample{'s' if len(frame) != 1 else ''} (rows)." if len(frame) < 2 else ""
            reasons = "; ".join(f"{name!r} {reason}" for name, reason in left_out.items())
            raise InputError(f"There is nothing to model in this table: {reasons}.{few}")
        return cls(tuple(columns), left_out, tuple(frame.columns))

    @property
    def schema(self) -> Schema:
        return Schema(tuple(Variable(column.name, column.domain) for column in self.columns))

    def encode(self, table: Frame) -> tuple[Tensor, Tensor]:
        """(x, present) of the modelled columns, in their order; columns that are missing are all gaps, others are ignored."""
        frame = as_frame(table, names=self.names)
        missing = [column.name for column in self.columns if column.name not in frame.columns]
        if len(missing) == len(self.columns):
            raise InputError(
                f"The table has none of the model's columns: it has {shortlist(frame.columns)}, "
                f"the model knows {shortlist(c.name for c in self.columns)}."
            )
        x = np.full((len(frame), len(self.columns)), np.nan)
        for i, column in enumerate(self.columns):
            if column.name not in missing:
                x[:, i] = encode_column(column, frame[column.name])
        values = torch.tensor(x, dtype=torch.float32)
        return values, values.isfinite()

    def fill(self, table: Frame, x: Tensor, cells: Tensor) -> Frame:
        """The table with those of these cells that are gaps filled with decoded values; what holds a value keeps it.

        A value that was not seen in fit is a gap for the model, and stays what it is in the table.
        """
        frame, filled = as_frame(table, names=self.names), []
        there = set(frame.columns)
        for i, column in enumerate(self.columns):
            if column.name not in there or not cells[:, i].any():
                continue
            series = frame[column.name]
            rows = (cells[:, i].numpy() & is_gap(series)).nonzero()[0].tolist()
            if rows:
                filled.append(put(series, rows, column.decode(x[rows, i].double().numpy())))
        return given_back(frame.with_columns(*filled) if filled else frame, table)

    def frame(self, x: Tensor, like: Frame, exactly: Mapping[str, Any] | None = None) -> Frame:
        """New rows in the container of another table, with its dtypes; numbers that are known `exactly` stay as they are."""
        old = as_frame(like, names=self.names)
        data = {column.name: column.decode(x[:, i].double().numpy()) for i, column in enumerate(self.columns)}
        data |= {str(name): [value] * len(x) for name, value in (exactly or {}).items()}
        made = nw.from_dict(data, backend=old.implementation)
        known = [] if is_array(like) else [name for name in data if name in old.columns]
        return given_back(made.with_columns(*(column_of(data[name], old[name]) for name in known)), like)

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [column.to_json() for column in self.columns],
            "left_out": dict(self.left_out),
            "names": list(self.names),
        }

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> "TableEncoder":
        try:
            return cls(tuple(column_from_json(c) for c in item["columns"]), dict(item["left_out"]), tuple(item["names"]))
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            raise FormatError(f"The table's description cannot be read ({error!r}). The file is damaged.") from error


def learn_column(name: str, series: Series, kind: str | None) -> Column | str:
    """The column, or why it is left out."""
    if kind == "leave out":
        return "was asked to be left out"
    try:
        present = [v for v in series.drop_nulls().unique().to_list() if v == v]
        hash(tuple(present))
    except (TypeError, ValueError, NotImplementedError):
        return f"holds {series.dtype}, no single values"
    if not present:
        return "is empty"
    if len(present) == 1:
        return f"is always {present[0]!r}"
    if kind == "number" and not holds_numbers(series):
        raise InputError(f"kinds[{name!r}] is 'number', but the column holds {series.dtype}. Convert it to numbers first.")
    if holds_numbers(series) and kind != "category" and series.dtype not in (nw.Duration, nw.Time):
        if len(np.unique(read_numbers(series.drop_nulls()))) == 1:
            return "varies by less than a millisecond"
        return NumberColumn.learn(name, series)
    if kind != "category" and series.dtype != nw.Boolean and looks_like_text_or_names(series):
        return f"has {len(present)} different values in {len(series)} rows: an identifier or free text"
    try:
        for level in present:
            level_to_json(level)
    except TypeError as error:
        return f"holds values that {error}: convert them to text or numbers"
    return CategoryColumn.learn(name, series)


def encode_column(column: Column, series: Series) -> Cells:
    if isinstance(column, NumberColumn) and not holds_numbers(series):
        if series.drop_nulls().len() == 0:
            return np.full(len(series), np.nan)
        raise InputError(f"Column {column.name!r} held numbers in fit and holds {series.dtype} now. Convert it first.")
    if isinstance(column, CategoryColumn) and (unseen := column.unseen(series)):
        shown = shortlist(sorted(map(repr, unseen)))
        warnings.warn(f"Column {column.name!r} has values not seen in fit, taken as gaps: {shown}.", stacklevel=4)
    return column.encode(series)


def check_kind(name: str, kind: str, names: list[str]) -> None:
    if name not in names:
        raise InputError(f"kinds names a column {name!r} that the table does not have; it has {shortlist(names)}.")
    if kind not in ("category", "number", "leave out"):
        raise InputError(f"kinds[{name!r}] is {kind!r}; expected 'category', 'number' or 'leave out'.")


def encode_value(column: Column, value: Any, to_whole: Callable[[Any], Any] = np.round) -> float:
    """One value of a column in model space; a number off the lattice goes to the point that `to_whole` chooses."""
    try:
        if isinstance(column, CategoryColumn):
            code = float(column.encode(as_frame(np.array([[value]], dtype=object))["x0"])[0])
        else:
            assert isinstance(column, NumberColumn)
            number = read_moment(column.unit, value) if column.is_moment else float(value)
            code = column.place(number, to_whole) if math.isfinite(number) else math.nan
    except (TypeError, ValueError, AttributeError, OverflowError, nw.exceptions.NarwhalsError) as error:
        raise InputError(f"{value!r} is no value of column {column.name!r}, which {column.says()}.") from error
    if math.isnan(code):
        raise InputError(f"{value!r} is no value of column {column.name!r}, which {column.says()}.")
    return code
