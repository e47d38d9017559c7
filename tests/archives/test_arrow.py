"""Arrow tables as text and back: compared type by type and bit by bit, and what cannot be kept is refused or kept as bytes."""

import datetime as dt
import decimal
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from anyorder.archives import ArchiveModel, OpenArchive, compress
from anyorder.coding import Archive
from anyorder.errors import FormatError, InputError
from anyorder.modalities.tables.codec.arrow import arrow_table, arrow_texts, exactly_equal, parquet_bytes, parquet_table
from anyorder.modalities.tables.codec.table_archives import ArrowSource, BytesSource, decompress_table, parquet_source
from anyorder.modalities.tables.codec.table_sources import frame_like_source, table_source

PAYLOAD = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
COLUMNS = {
    "float": pa.array([np.nan, None, -0.0, PAYLOAD], from_pandas=False),
    "float32": pa.array(np.array([np.nan, -0.0, 0.1, 1], np.float32)),
    "float16": pa.array(np.array([np.nan, -0.0, 0.1, 1], np.float16)),
    "bool": pa.array([True, None, False, True]),
    "int64": pa.array([2**53 + 1, None, -(2**63), 2**63 - 1]),
    "uint64": pa.array([2**64 - 1, None, 0, 1], pa.uint64()),
    "text": pa.array(["a", "", None, "\u00fc\n"]),
    "large text": pa.array(["a", "", None, "\u00fc"], pa.large_string()),
    "bytes": pa.array([b"a", None, b"", b"\xff"]),
    "two bytes": pa.array([b"aa", None, b"ab", b"\xff\x00"], pa.binary(2)),
    "day": pa.array([dt.date(2020, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "instant": pa.array([1, None, -3, 4]).view(pa.timestamp("us", "Europe/Oslo")),
    "time": pa.array([1, None, 3, 4], pa.int32()).view(pa.time32("ms")),
    "duration": pa.array([1, None, 3, 4]).view(pa.duration("ns")),
    "decimal": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-0.01"), decimal.Decimal("0.00")], pa.decimal128(8, 2)),
    "words": pa.array(["x", None, "y", "x"]).dictionary_encode(),
    "ordered": pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 1], pa.int8()), ["low", "never", "high"], ordered=True),
    "nothing": pa.nulls(4),
}


def round_trip(table):
    return arrow_table(*arrow_texts(table))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [slice(None), slice(1, 3), slice(0, 0)], ids=["all", "some", "none"])
def test_every_type_comes_back(name, rows):
    table = pa.table({name: COLUMNS[name][rows]})
    back = round_trip(table)
    assert back.schema == table.schema
    assert back[name].null_count == table[name].null_count
    assert exactly_equal(back, table)
    first, again = (column[name].combine_chunks() for column in (table, back))
    if pa.types.is_float64(first.type):  # told apart without our own comparison
        assert [v if v is None else np.float64(v).tobytes() for v in again.to_pylist()] == [
            v if v is None else np.float64(v).tobytes() for v in first.to_pylist()
        ]
    elif not pa.types.is_floating(first.type):
        assert again.equals(first)


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"x": [0.0, 1.0]}),
        pa.table({"x": pa.array([-0.0, 1.0], pa.float32())}),
        pa.table({"x": [-0.0, None]}),
        pa.table({"x": pa.array([-0.0, np.nan], from_pandas=False)}),
        pa.table({"x": [-0.0, 1.0]}).replace_schema_metadata({"a": "b"}),
        pa.table({"x": [-0.0, 1.0]}, schema=pa.schema([pa.field("x", pa.float64(), nullable=False)])),
        pa.table({"x": [-0.0, 1.0]}, schema=pa.schema([pa.field("x", pa.float64(), metadata={"unit": "m"})])),
        pa.table({"x": [-0.0, 1.0, 2.0]}),
    ],
    ids=["zero", "type", "null", "nan", "notes", "nullable", "unit", "rows"],
)
def test_what_differs_is_told_apart(other):
    table = pa.table({"x": [-0.0, 1.0]})
    assert exactly_equal(table, pa.table({"x": [-0.0, 1.0]}))
    assert not exactly_equal(table, other)


def test_categories_written_in_parts_come_back_through_files():
    content = io.BytesIO()
    with parquet.ParquetWriter(content, pa.schema({"x": pa.dictionary(pa.int32(), pa.string())})) as file:
        for words in (["b", "a"], ["c", "b", None]):
            file.write_table(pa.table({"x": pa.array(words).dictionary_encode()}))
    source = parquet_source(content.getvalue())
    assert isinstance(source, ArrowSource)
    assert parquet_table(parquet_bytes(source.arrow()))["x"].to_pylist() == ["b", "a", "c", "b", None]


def test_a_file_that_pandas_wrote_has_its_notes_whatever_pandas_is_there():
    frame = pd.DataFrame({"x": [1, 2], "k": pd.Categorical(["b", "a"], ["c", "b", "a"], ordered=True)}, index=["r", "s"])
    frame.attrs = {"source": "here"}
    out = io.BytesIO()
    frame.to_parquet(out)
    back = parquet_table(parquet_bytes(parquet_source(out.getvalue()).arrow()))
    assert back.schema.metadata == parquet.read_table(io.BytesIO(out.getvalue())).schema.metadata
    pd.testing.assert_frame_equal(back.to_pandas(), frame)


def test_a_file_that_would_not_come_back_is_kept_as_bytes(monkeypatch):
    out = io.BytesIO()
    parquet.write_table(pa.table({"x": [1, 2]}), out)
    assert isinstance(parquet_source(out.getvalue()), ArrowSource)
    monkeypatch.setattr(
        "anyorder.modalities.tables.codec.table_archives.parquet_bytes", lambda table: parquet_bytes(table.slice(1))
    )
    assert isinstance(parquet_source(out.getvalue()), BytesSource)


# In Python


def through_an_archive(table):
    source, file = table_source(table), io.BytesIO()
    compress(ArchiveModel(), source, file)
    archive = OpenArchive(Archive(file.getvalue()))
    found, lost = decompress_table(archive)
    assert not lost
    return frame_like_source(found, archive.form)


def test_tables_of_pyarrow_come_back():
    table = pa.table(COLUMNS).replace_schema_metadata({"from": b"\xff"})
    assert exactly_equal(through_an_archive(table), table)


def test_frames_of_polars_come_back():
    frame = pl.DataFrame(
        {
            "f": pl.Series([np.nan, None, -0.0]),
            "i": [1, None, 2**62],
            "s": ["a", None, ""],
            "c": pl.Series(["b", None, "a"], dtype=pl.Categorical),
            "e": pl.Series(["b", None, "a"], dtype=pl.Enum(["b", "never", "a"])),
            "t": [dt.datetime(2020, 1, 1), None, dt.datetime(2021, 1, 1)],
        }
    )
    back = through_an_archive(frame)
    assert isinstance(back, pl.DataFrame)
    assert back.schema == frame.schema
    assert back.equals(frame)
    assert back["f"].is_nan().to_list() == [True, None, False]
    assert np.signbit(back["f"][2])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"x": [[1], [2]]}), r"A column is list<item: int64>, which is not kept cell by cell\."),
        (pl.DataFrame({"x": [[1], [2]]}), r"A column is large_list<item: int64>, which is not kept cell by cell\."),
        (pl.DataFrame({"x": pl.Series([1], dtype=pl.Int128)}), "This polars frame cannot be kept: pyarrow has no such table"),
        (
            pl.DataFrame({"x": pl.Series([1], dtype=pl.Object)}),
            "holds objects, which cannot be kept",
        ),
        ([1, 2], "compress got list; expected a table of pandas, polars or pyarrow, or a matrix of numbers."),
        (type("Special", (pd.DataFrame,), {})({"x": [1]}), "compress got Special, which would come back as a plain data frame."),
    ],
    ids=["lists", "lists of polars", "long integers", "objects of polars", "a list", "a class of its own"],
)
def test_what_would_come_back_otherwise_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        table_source(table)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "AAAA"},
        {"schema": "no base"},
        {"words": []},
        {"words": [["a"]]},
        {"schema": None},
        {"words": 3},
    ],
    ids=str,
)
def test_forged_forms_are_refused(change):
    form, texts = arrow_texts(pa.table({"x": pa.array(["a", "b"]).dictionary_encode()}))
    with pytest.raises(FormatError, match=r"The archive (describes no table|claims)"):
        arrow_table(form | change, texts)
