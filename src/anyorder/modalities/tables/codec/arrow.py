"""Arrow tables, and so Parquet files, as columns of text and back: nulls and NaN apart, the schema with all its notes."""

import base64
import io
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from ....errors import FormatError, InputError
from ....models.trained import BAD_CONTENT
from .frame_texts import exact_number_text, parsed, texts
from .table_codec import Texts, objects

Table = Any  # pyarrow's
Array = Any
DataType = Any
NUMBERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "halffloat", "float", "double")


def arrow() -> Any:
    """Loaded on first use: only who has such tables needs it."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("This table is one of pyarrow's, which is not installed: pip install pyarrow.") from error
    return pyarrow


def broken() -> tuple[type[Exception], ...]:
    """What pyarrow raises where a table or what is said of one makes no sense."""
    return (*BAD_CONTENT, OSError, arrow().ArrowException)


def parquet_table(content: bytes) -> Table:
    return arrow().parquet.read_table(io.BytesIO(content))


def parquet_bytes(table: Table) -> bytes:
    """A file of this table; how the rows are laid out in it is pyarrow's choice."""
    out = io.BytesIO()
    arrow().parquet.write_table(table, out)
    return out.getvalue()


def whole(table: Table) -> list[Array]:
    """The columns, each in one piece and with one dictionary, if it has one."""
    return [column.combine_chunks() for column in table.unify_dictionaries().columns]


def exactly_equal(one: Table, other: Table) -> bool:
    """Whether two tables are the same: types, notes, what may be null, and every bit of every value."""
    same = one.schema.equals(other.schema, check_metadata=True) and one.num_rows == other.num_rows
    return bool(same) and all(bits(a).equals(bits(b)) for a, b in zip(whole(one), whole(other), strict=True))


def bits(array: Array) -> Array:
    """The array in a form in which NaN equals itself, and -0.0 is not 0.0."""
    pa = arrow()
    if pa.types.is_dictionary(array.type):
        values = pa.array([*cells(array.dictionary)], pa.large_string())
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=array.type.ordered)
    return array.view(pa.type_for_alias(f"uint{array.type.bit_width}")) if pa.types.is_floating(array.type) else array


# Tables as text


def arrow_texts(table: Table) -> tuple[dict[str, Any], list[Texts]]:
    """What must be known of a table, and its columns as text."""
    schema = base64.b64encode(table.schema.serialize().to_pybytes()).decode()
    columns = whole(table)
    words = [[*cells(column.dictionary)] if hasattr(column, "dictionary") else None for column in columns]
    return {"kind": "arrow", "schema": schema, "words": words}, [cells(column) for column in columns]


def arrow_table(form: dict[str, Any], columns: Sequence[Texts]) -> Table:
    """The table again."""
    pa = arrow()
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(form["schema"], validate=True)))
        if not len(schema) == len(form["words"]) == len(columns):
            raise FormatError(f"The archive claims {len(schema)} columns and has {len(columns)}.")
        arrays = [arrow_array_of(*column) for column in zip(schema.types, columns, form["words"], strict=True)]
        table = pa.Table.from_arrays(arrays, schema=schema)
        table.validate()
    except broken() as error:
        raise FormatError(f"The archive describes no table of pyarrow's ({error!r:.200}).") from error
    return table


def cells(array: Array) -> Texts:
    """Every value as text, None for a null; of a dictionary the places."""
    if hasattr(array, "dictionary"):
        return cells(array.indices)
    if (written := plain_text(array.type)) is not None:
        return objects(None if value is None else written[0](value) for value in array.to_pylist())
    stored, gaps = storage(array.type), array.is_null().to_numpy(zero_copy_only=False)
    if arrow().types.is_boolean(stored):
        return texts(array.fill_null(False).to_numpy(zero_copy_only=False), gaps, str)
    return texts(numbers_in(array, numpy_type(stored)), gaps, exact_number_text)


def numbers_in(array: Array, kind: np.dtype[Any]) -> Any:
    """What lies in memory: `to_numpy` would make whole numbers beside nulls floating point."""
    data = array.buffers()[1] if len(array) else b""
    return np.frombuffer(data, kind)[array.offset : array.offset + len(array)]


def arrow_array_of(kind: DataType, column: Texts, words: Sequence[str | None] | None) -> Array:
    """A column again."""
    pa = arrow()
    if pa.types.is_dictionary(kind):
        values = arrow_array_of(kind.value_type, objects(words or ()), None)
        return pa.DictionaryArray.from_arrays(arrow_array_of(kind.index_type, column, None), values, ordered=kind.ordered)
    if (written := plain_text(kind)) is not None:
        return pa.array([None if text is None else written[1](text) for text in column], kind)
    gaps = np.array([text is None for text in column], dtype=bool)
    stored = storage(kind)
    return pa.array(parsed(column, numpy_type(stored), 0), stored, mask=gaps, from_pandas=False).view(kind)


def plain_text(kind: DataType) -> tuple[Callable[[Any], str], Callable[[str], Any]] | None:
    """How one value of a type that is no number is written and read."""
    types = arrow().types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind):
        return str, str
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return bytes.hex, bytes.fromhex
    return (str, Decimal) if types.is_decimal(kind) else None


def storage(kind: DataType) -> DataType:
    """The numbers that a type is made of: days and instants are whole numbers."""
    types = arrow().types
    if types.is_temporal(kind) and not types.is_interval(kind):
        return arrow().type_for_alias(f"int{kind.bit_width}")
    if str(kind) not in NUMBERS:
        raise InputError(f"A column is {kind}, which is not kept cell by cell.")
    return kind


def numpy_type(kind: DataType) -> np.dtype[Any]:
    return np.dtype(kind.to_pandas_dtype())
