"""Any dataframe behind one face: read with text for names, changed cell by cell, given back with its own labels and dtypes."""

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .columns import level_from_json, level_to_json

Frame = Any  # a pandas, polars or pyarrow table, or a 2-D numpy array
Series = nw.Series[Any]


def as_frame(table: Frame, names: tuple[str, ...] = ()) -> "nw.DataFrame[Any]":
    """The table behind narwhals' face; a numpy array gets the names it had in fit, or x0, x1, ..."""
    if is_array(table):
        return array_frame(np.asarray(table), names)
    if not has_text_labels(table):
        table = table.set_axis([str(label) for label in table.columns], axis=1)
    try:
        frame = nw.from_native(table, eager_only=True)
    except (TypeError, ValueError) as error:
        duplicate = "duplicate" in str(error).lower() or "unique" in str(error).lower()
        remedy = "Give every column its own name." if duplicate else "Pass a pandas, polars or pyarrow table, or a 2-D array."
        raise InputError(f"Cannot read a {type(table).__name__} as a table: {error}. {remedy}") from error
    if not isinstance(frame, nw.DataFrame):
        raise InputError(f"Expected a table, got a {type(table).__name__}. Pass a frame with named columns.")
    if len(set(frame.columns)) < len(frame.columns):
        raise InputError(f"Two columns have the same name among {shortlist(frame.columns)}. Rename one of them.")
    return frame


def is_array(table: Frame) -> bool:
    """A list of rows, or what numpy can read and is no dataframe."""
    frame = hasattr(table, "columns") or hasattr(table, "column_names")
    return isinstance(table, list) or (hasattr(table, "__array__") and not frame)


def array_frame(table: NDArray[Any], names: tuple[str, ...] = ()) -> "nw.DataFrame[Any]":
    """An array as a frame, in whatever dataframe library is there."""
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
    backend: Any = next((b for b in ("pandas", "polars", "pyarrow") if importlib.util.find_spec(b)), None)
    if backend is None:
        raise InputError("Reading arrays needs pandas, polars or pyarrow, and none is installed: pip install pandas.")
    names = names or tuple(f"x{i}" for i in range(table.shape[1]))
    columns = {name: table[:, i] if table.dtype != object else table[:, i].tolist() for i, name in enumerate(names)}
    return nw.from_dict(columns, backend=backend)


def given_back(frame: "nw.DataFrame[Any]", like: Frame) -> Frame:
    """The frame as what it came from: an array, or a table whose labels need not be text."""
    if is_array(like):
        return frame.to_numpy()
    made = frame.to_native()
    if has_text_labels(like):
        return made
    places = {str(label): place for place, label in enumerate(like.columns)}
    return made.set_axis(like.columns[[places[name] for name in made.columns]], axis=1)


def rows_of(table: Frame, chosen: Any) -> Frame:
    """Some of the rows of a table, in what it came as."""
    return given_back(as_frame(table).filter(chosen.tolist()), table)


def has_text_labels(table: Frame) -> bool:
    """All libraries but pandas have no others."""
    return not hasattr(table, "set_axis") or all(isinstance(label, str) for label in table.columns)


def is_gap(series: Series) -> NDArray[np.bool_]:
    """Which cells hold nothing; NaN is nothing."""
    gaps = series.is_null()
    if series.dtype.is_float():
        gaps = (gaps | series.is_nan()).fill_null(True)
    return gaps.to_numpy().astype(bool)


def put_cells(series: Series, rows: list[int], values: list[Any]) -> Series:
    """The column with some cells replaced, its dtype kept."""
    if not series.implementation.is_pyarrow() or series.dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Duration):
        return series.scatter(rows, column_of(values, series))
    cells = series.to_list()  # pyarrow replaces neither lengths of time nor any text but its plain one
    for row, value in zip(rows, values, strict=True):
        cells[row] = value
    return column_of(cells, series)


def column_of(values: list[Any], like: Series) -> Series:
    """Values as a column with the name and the dtype of another; whole numbers stop where the dtype does."""
    dtype = like.dtype
    if dtype.is_integer():
        values = within_dtype(values, str(dtype))
    made = nw.new_series(like.name, values, backend=like.implementation)
    zone = getattr(dtype, "time_zone", None)
    if zone is not None and made.dtype == nw.Datetime and made.dtype.time_zone is None:  # type: ignore[attr-defined]
        made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    native, wanted = made.to_native(), like.to_native()
    if hasattr(wanted, "type"):  # pyarrow
        native = native.cast(wanted.type)
    else:
        native = native.astype(wanted.dtype) if hasattr(native, "astype") else native.cast(wanted.dtype)
    return nw.from_native(native, series_only=True).alias(like.name)


def within_dtype(values: list[Any], dtype: str) -> list[Any]:
    """As near as a type such as UInt8 comes."""
    bits = int(dtype.lstrip("UInt"))
    least, most = (0, 2**bits - 1) if dtype.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return [min(max(value, least), most) for value in values]


def shortlist(names: Any) -> str:
    names = list(names)
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")


@final
@dataclass(frozen=True)
class Sentinels:
    """Pairs of a column and a value; of all columns, if none is named."""

    pairs: tuple[tuple[str | None, Any], ...] = ()

    @classmethod
    def of(cls, na: Any) -> "Sentinels":
        """From a value, several, or {column: a value or several}; under None those of every column. None alone says nothing.

        >>> Sentinels.of({"age": [-1, 999], "city": "unknown"}).pairs
        (('age', -1), ('age', 999), ('city', 'unknown'))
        >>> Sentinels.of("unknown").pairs
        ((None, 'unknown'),)
        """
        if na is None:
            return cls()
        if isinstance(na, Mapping):
            return cls(
                tuple((name if name is None else str(name), value) for name, values in na.items() for value in several(values))
            )
        return cls(tuple((None, value) for value in several(na)))

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def check(self, columns: list[str]) -> None:
        for name, value in self.pairs:
            if name is not None and name not in columns:
                raise InputError(f"na names a column {name!r} that the table does not have; it has {shortlist(columns)}.")
            if not isinstance(value, (str, int, float)):
                raise InputError(f"na holds {value!r}; expected numbers or texts that stand for gaps.")

    def marks(self, series: Series) -> NDArray[np.bool_]:
        """Which cells hold one of them."""
        if not any(name in (None, series.name) for name, _ in self.pairs) or series.dtype.is_temporal():
            return np.zeros(len(series), dtype=bool)
        found = {value for value in series.drop_nulls().unique().to_list() if self.stands_for_gap(series.name, value)}
        return np.array([v in found for v in series.to_list()], dtype=bool) if found else np.zeros(len(series), dtype=bool)

    def stands_for_gap(self, name: str, value: Any) -> bool:
        return any(column in (None, name) and same(value, sentinel) for column, sentinel in self.pairs)

    def gaps(self, series: Series) -> NDArray[np.bool_]:
        """Which cells hold one of them, or nothing."""
        return is_gap(series) | self.marks(series) if self else is_gap(series)

    def without(self, series: Series) -> Series:
        """The column with nothing in their places."""
        marks = self.marks(series) if self else np.zeros(0, dtype=bool)
        if not marks.any():
            return series
        keep = nw.new_series("keep", (~marks).tolist(), nw.Boolean, backend=series.implementation)
        frame = nw.from_dict({"column": series.alias("column"), "keep": keep}, backend=series.implementation)
        return frame.select(nw.when(nw.col("keep")).then(nw.col("column")).alias(series.name))[series.name]

    def to_json(self) -> list[Any]:
        return [[name, level_to_json(value)] for name, value in self.pairs]

    @classmethod
    def from_json(cls, item: list[Any]) -> "Sentinels":
        return cls(tuple((name, level_from_json(value)) for name, value in item))


def several(values: Any) -> list[Any]:
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]


def same(value: Any, sentinel: Any) -> bool:
    """As numbers, if both are, however they are written; else as text."""
    try:
        return float(value) == float(sentinel)
    except (TypeError, ValueError):
        return str(value).strip() == str(sentinel).strip()
