"""A table of any dataframe library and (rows, variables) numbers: kinds and precision found, gaps kept, dtypes restored."""

import importlib.util
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import narwhals as nw
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import FormatError, InputError
from ..schema import Schema, Variable
from .columns import CategoryColumn, Cells, Column, NumberColumn, column_from_json, looks_like_text_or_names, read_numbers

Frame = Any  # a pandas, polars or pyarrow table, or a 2-D numpy array


@final
@dataclass(frozen=True)
class TableEncoder:
    """What was learned about a table: its modelled columns, what was left out and why, and what is always the same."""

    columns: tuple[Column, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()  # all columns of the table, in order

    @classmethod
    def learn(cls, table: Frame, kinds: Mapping[str, str] | None = None) -> "TableEncoder":
        """Find the kind of every column; `kinds` overrules, with "category", "number" or "leave out"."""
        frame = as_frame(table)
        kinds = dict(kinds or {})
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
        frame = as_frame(table, names=self.names)
        for i, column in enumerate(self.columns):
            if column.name not in frame.columns:
                continue
            rows = (cells[:, i].numpy() & is_gap(frame[column.name])).nonzero()[0].tolist()
            if rows:
                values = column.decode(x[rows, i].double().numpy())
                frame = frame.with_columns(put(frame[column.name], rows, values))
        return frame.to_numpy() if isinstance(table, np.ndarray) else frame.to_native()

    def frame(self, x: Tensor, like: Frame) -> Frame:
        """New rows in the container of another table."""
        backend = as_frame(like, names=self.names).implementation
        data = {column.name: column.decode(x[:, i].double().numpy()) for i, column in enumerate(self.columns)}
        made = nw.from_dict(data, backend=backend)
        return made.to_numpy() if isinstance(like, np.ndarray) else made.to_native()

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
        except (KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"The table's description cannot be read ({error!r}). The file is damaged.") from error


def as_frame(table: Frame, names: tuple[str, ...] = ()) -> "nw.DataFrame[Any]":
    """Any dataframe behind one face; a numpy array gets the names it had in fit, or x0, x1, ..."""
    if isinstance(table, list) or (
        hasattr(table, "__array__") and not hasattr(table, "columns") and not hasattr(table, "column_names")
    ):
        table = np.asarray(table)
        if table.dtype.kind == "c":
            raise InputError(
                "Complex data not supported: the array holds complex numbers. Give real and imaginary parts a column each."
            )
        if table.ndim != 2:
            raise InputError(f"The array has shape {table.shape}; expected two dimensions, (rows, columns). Reshape your data.")
        if names and table.shape[1] != len(names):
            raise InputError(
                f"X has {table.shape[1]} features, but AnyOrder is expecting {len(names)} features as input: {shortlist(names)}."
            )
        return array_frame(table, list(names) or [f"x{i}" for i in range(table.shape[1])])
    try:
        frame = nw.from_native(table, eager_only=True)
    except (TypeError, ValueError) as error:
        duplicate = "duplicate" in str(error).lower() or "unique" in str(error).lower()
        remedy = "Give every column its own name." if duplicate else "Pass a pandas, polars or pyarrow table, or a 2-D array."
        raise InputError(f"Cannot read a {type(table).__name__} as a table: {error}. {remedy}") from error
    if not isinstance(frame, nw.DataFrame):
        raise InputError(f"Expected a table, got a {type(table).__name__}. Pass a frame with named columns.")
    names_found = [str(name) for name in frame.columns]
    if len(set(names_found)) < len(names_found):
        raise InputError(f"Two columns have the same name among {shortlist(names_found)}. Rename one of them.")
    return frame


def is_array(table: Frame) -> bool:
    """A list of rows, or what numpy can read and is no dataframe."""
    frame = hasattr(table, "columns") or hasattr(table, "column_names")
    return isinstance(table, list) or (hasattr(table, "__array__") and not frame)


def array_frame(table: NDArray[Any], names: list[str]) -> "nw.DataFrame[Any]":
    """An array as a frame, in whatever dataframe library is there."""
    backend: Any = next((b for b in ("pandas", "polars", "pyarrow") if importlib.util.find_spec(b)), None)
    if backend is None:
        raise InputError("Reading arrays needs pandas, polars or pyarrow, and none is installed: pip install pandas.")
    columns = {name: table[:, i] if table.dtype != object else table[:, i].tolist() for i, name in enumerate(names)}
    return nw.from_dict(columns, backend=backend)


def learn_column(name: str, series: "nw.Series[Any]", kind: str | None) -> Column | str:
    """The column, or why it is left out."""
    present = [v for v in series.drop_nulls().unique().to_list() if v == v]
    if kind == "leave out":
        return "was asked to be left out"
    if not present:
        return "is empty"
    if len(present) == 1:
        return f"is always {present[0]!r}"
    numeric = series.dtype.is_numeric() or series.dtype.is_temporal()
    if kind == "number" and not numeric:
        raise InputError(f"kinds[{name!r}] is 'number', but the column holds {series.dtype}. Convert it to numbers first.")
    if kind == "category" or series.dtype == nw.Boolean:
        return CategoryColumn.learn(name, series)
    if numeric and series.dtype not in (nw.Duration, nw.Time):
        return NumberColumn.learn(name, series)
    if looks_like_text_or_names(series):
        return f"has {len(present)} different values in {len(series)} rows: an identifier or free text"
    return CategoryColumn.learn(name, series)


def is_gap(series: "nw.Series[Any]") -> NDArray[np.bool_]:
    """Which cells hold nothing; NaN is nothing."""
    gaps = series.is_null() | series.is_nan() if series.dtype.is_float() else series.is_null()
    return gaps.fill_null(True).to_numpy().astype(bool)


def encode_column(column: Column, series: "nw.Series[Any]") -> Cells:
    if isinstance(column, NumberColumn) and not (series.dtype.is_numeric() or series.dtype.is_temporal()):
        if series.drop_nulls().len() == 0:
            return np.full(len(series), np.nan)
        raise InputError(f"Column {column.name!r} held numbers in fit and holds {series.dtype} now. Convert it first.")
    if isinstance(column, CategoryColumn) and (unseen := column.unseen(series)):
        shown = shortlist(sorted(map(repr, unseen)))
        warnings.warn(f"Column {column.name!r} has values not seen in fit, taken as gaps: {shown}.", stacklevel=4)
    return column.encode(series)


def put(series: "nw.Series[Any]", rows: list[int], values: list[Any]) -> "nw.Series[Any]":
    """The column with some cells replaced, its dtype kept."""
    if series.dtype in (nw.Categorical, nw.Enum, nw.Object):
        return series.scatter(rows, values)
    return series.scatter(rows, nw.new_series(series.name, values, backend=series.implementation).cast(series.dtype))


def check_kind(name: str, kind: str, names: list[str]) -> None:
    if name not in names:
        raise InputError(f"kinds names a column {name!r} that the table does not have; it has {shortlist(names)}.")
    if kind not in ("category", "number", "leave out"):
        raise InputError(f"kinds[{name!r}] is {kind!r}; expected 'category', 'number' or 'leave out'.")


def shortlist(names: Any) -> str:
    names = list(names)
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")


def encode_value(column: Column, value: Any, to_whole: Callable[[Any], Any] = np.round) -> float:
    """One value of a column in model space; a number off the lattice goes to the point that `to_whole` chooses."""
    try:
        frame = as_frame(np.array([[value]], dtype=object if isinstance(column, CategoryColumn) else None))
        if isinstance(column, CategoryColumn):
            code = float(column.encode(frame["x0"])[0])
        else:
            code = column.place(float(read_numbers(frame["x0"])[0]), to_whole)  # type: ignore[attr-defined]
    except (TypeError, ValueError, AttributeError, nw.exceptions.NarwhalsError) as error:
        raise InputError(f"{value!r} is no value of column {column.name!r}, which {column.says()}.") from error
    if math.isnan(code):
        raise InputError(f"{value!r} is no value of column {column.name!r}, which {column.says()}.")
    return code
