"""Tables in memory as items of an archive, and what was given made again of what comes back."""

import sys
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from ....errors import InputError
from .table_archives import ArrowSource, FrameSource, TableSource


def table_source(X: Any, verify: bool = True) -> TableSource:
    """A table of pandas, polars or pyarrow, or a matrix of numbers; it comes back as one."""
    if isinstance(X, pd.DataFrame):
        return FrameSource(X, verify)
    if nw.dependencies.is_pyarrow_table(X):
        return ArrowSource(X, verify)
    if nw.dependencies.is_polars_dataframe(X):
        return polars_source(X, verify)
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "biufc":
        raise InputError(
            f"compress got {type(X).__name__}; expected a table of pandas, polars or pyarrow, or a matrix of numbers."
        )
    source = FrameSource(pd.DataFrame(X), verify)
    source.form["array"] = True
    return source


def polars_source(X: Any, verify: bool) -> ArrowSource:
    """As polars gives it to pyarrow, if it takes the same back."""
    polars = sys.modules["polars"]
    if polars.Object in X.dtypes:  # which pyarrow takes for addresses in memory
        raise InputError("This polars frame holds objects, which cannot be kept. Turn them into numbers, text or dates first.")
    try:
        table = X.to_arrow(compat_level=polars.CompatLevel.oldest())
    except (ImportError, ValueError, polars.exceptions.PolarsError) as error:
        raise InputError(f"This polars frame cannot be kept: pyarrow has no such table ({error!r:.200}).") from error
    source = ArrowSource(table, verify)
    back = polars_frame(source.arrow())
    if back.schema != X.schema or not back.equals(X):
        raise InputError("This polars frame cannot be kept exactly: polars does not get the same back from pyarrow.")
    source.form["polars"] = True
    return source


def polars_frame(table: Any) -> Any:
    try:
        import polars
    except ImportError as error:
        raise InputError("This table is one of polars', which is not installed: pip install polars.") from error
    return polars.from_arrow(table)


def frame_like_source(found: Any, form: Mapping[str, Any]) -> Any:
    """As the kind of table that was given."""
    if form.get("array") and isinstance(found, pd.DataFrame):
        return found.to_numpy()
    return polars_frame(found) if form.get("polars") and form["kind"] == "arrow" else found
