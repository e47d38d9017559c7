"""Values that stand for gaps: 999, unknown, -1; in every column or in some."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .frames import Series, is_gap, shortlist
from .levels import level_from_json, level_to_json


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
