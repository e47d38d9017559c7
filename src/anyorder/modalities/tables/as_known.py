"""Tables from files as a model knows them: which columns stay text, and which types can take what is filled in."""

from typing import Any

from ...errors import FormatError
from ...io.units import Unit, lines, row_group
from .columns import CategoryColumn, Column, NumberColumn
from .dataframes import Frame
from .encoder import TableEncoder
from .table_files import Dialect, is_delimited, read_bytes, table_in, table_suffix


def fit_to(frame: Any, encoder: TableEncoder) -> Any:
    """The frame with columns that can take the model's values: a column of gaps alone says nothing about its type."""
    types: dict[str, Any] = {}
    for column in encoder.columns:
        if column.name not in frame:
            continue
        found = frame[column.name]
        if found.isna().all():
            types[column.name] = empty_type(column)
        elif isinstance(column, NumberColumn) and column.unit == "number" and found.dtype == "Int64":
            types[column.name] = "float64"  # whole numbers so far, and the gaps may be filled with others
        elif isinstance(column, CategoryColumn) and found.dtype == "Int64" and any(isinstance(v, float) for v in column.levels):
            types[column.name] = "float64"
    return frame.astype(types)


def empty_type(column: Column) -> Any:
    if not isinstance(column, NumberColumn):
        return object
    return {"whole": "Int64", "number": "float64"}.get(column.unit, "datetime64[ms]")


def text_columns(encoder: TableEncoder) -> list[str]:
    """Columns whose values are text: a file must not make numbers of them."""
    return [c.name for c in encoder.columns if isinstance(c, CategoryColumn) and any(isinstance(v, str) for v in c.levels)]


def content_of(unit: Unit) -> bytes:
    """What is to be read of a file that is not Parquet."""
    return lines(unit) if unit.end >= 0 else read_bytes(unit.file.path)


def read_unit(unit: Unit, encoder: TableEncoder | None = None, dialect: Dialect = Dialect()) -> Frame:
    """The rows of a unit: of Parquet with the types of the file (pyarrow), of other files as `encoder` knows them (pandas)."""
    if table_suffix(unit.file.path) == ".parquet":
        return row_group(unit)
    if not is_delimited(unit.file.path):
        dialect.refuse(unit.file.name)
    texts = None if encoder is None else text_columns(encoder)
    frame = table_in(content_of(unit), unit.file.path, texts, dialect)
    if unit.rows >= 0 and len(frame) != unit.rows:
        raise FormatError(
            f"{unit} has {len(frame)} rows, and {unit.rows} were counted: a quote mark stands inside a cell. Put such cells "
            "in quotes, with the mark doubled, or save the table as Parquet."
        )
    return frame if encoder is None else fit_to(frame, encoder)
