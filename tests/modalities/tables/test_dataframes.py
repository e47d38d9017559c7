"""What tables of real libraries look like: labels that are no text, time zones, small whole numbers, odd levels, lists."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from anyorder.errors import FormatError, InputError
from anyorder.modalities.tables.columns import FARTHEST_IN_SCALES, CategoryColumn, level_from_json, level_to_json
from anyorder.modalities.tables.encoder import TableEncoder, encode_value
from anyorder.modalities.tables.table_files import read_table

MAKERS = {"pandas": lambda t: t, "polars": pl.from_pandas, "arrow": lambda t: pa.Table.from_pandas(t, preserve_index=False)}


def filled_with(table, places):
    """The table with all its gaps filled with these places of model space."""
    encoder = TableEncoder.learn(table)
    x, present = encoder.encode(table)
    return encoder, encoder.fill(table, torch.where(present, x, places), ~present)


def cells_of(table, name):
    column = table[name]
    return column.to_pylist() if isinstance(column, pa.ChunkedArray) else list(column)


@pytest.mark.parametrize("labels", [[0, 1], [("a", 1), ("a", 2)], ["a", 2], [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]])
def test_labels_need_not_be_text_and_come_back(labels):
    table = pd.DataFrame([[0.5, 1.0], [np.nan, 2.0], [1.5, 3.5]])
    table = table.set_axis(labels, axis=1)
    encoder, filled = filled_with(table, 0.0)
    assert filled.columns.tolist() == table.columns.tolist() == encoder.frame(torch.zeros(2, 2), table).columns.tolist()
    assert filled.notna().all().all()
    assert encoder.schema.index(labels[1]) == 1
    assert isinstance(TableEncoder.learn(table, {labels[0]: "category"}).columns[0], CategoryColumn)


@pytest.mark.parametrize(
    "labels", [pd.Index(["a", "b"], name="what"), pd.MultiIndex.from_product([["a"], [1, 2]], names=["x", "y"])]
)
def test_names_of_labels_come_back(labels):
    table = pd.DataFrame([[0.5, 1.0], [np.nan, 2.0], [1.5, 3.5]], columns=labels)
    assert filled_with(table, 0.0)[1].columns.names == labels.names


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_is_there_stays_to_the_nanosecond(make):
    times = pd.Series(pd.to_datetime([0, 1_700_000_000_123_456_789, 3, None, 1_600_000_000_000_000_001])).astype("datetime64[ns]")
    table = make(pd.DataFrame({"t": times, "v": [0.5, 1.0, 1.5, 2.0, 3.5]}))
    _, filled = filled_with(table, 0.0)
    after = filled.to_pandas() if hasattr(filled, "to_pandas") else filled
    assert after["t"].notna().all()
    assert after["t"].astype("datetime64[ns]")[times.notna()].tolist() == times.dropna().tolist()


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("dtype", ["Int8", "UInt8", "Int16", "UInt16", "Int64"])
def test_whole_numbers_stop_where_their_type_does(make, dtype):
    ends = np.iinfo(dtype.lower())
    values = [0, 100, min(int(ends.max), 2**40), 7, None, None]
    table = make(pd.DataFrame({"u": pd.array(values, dtype=dtype), "w": [0.5, 1.0, 1.5, 2.0, 2.5, 3.5]}))
    for far in (-50.0, 50.0):
        found = cells_of(filled_with(table, far)[1], "u")
        assert found[:4] == values[:4]
        wanted = int(ends.min) if far < 0 else int(ends.max)
        assert found[4:] == [wanted] * 2 or dtype == "Int64"


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("zone", ["Europe/Oslo", "UTC", None])
def test_instants_keep_their_time_zone(make, zone):
    times = pd.Series(pd.date_range("2024-03-30 12:00", periods=30, freq="h", tz=zone))  # summer time begins in between
    table = make(pd.DataFrame({"t": times.where(times.index % 7 != 3), "v": np.arange(30.0)}))
    encoder = TableEncoder.learn(table)
    x, _ = encoder.encode(make(pd.DataFrame({"t": times, "v": np.arange(30.0)})))
    gaps = torch.tensor([[k % 7 == 3, False] for k in range(30)])
    assert cells_of(encoder.fill(table, x, gaps), "t") == cells_of(make(pd.DataFrame({"t": times})), "t")
    assert cells_of(encoder.frame(x, table), "t") == cells_of(make(pd.DataFrame({"t": times})), "t")
    column = encoder.columns[0]
    for value in (times[5], times[5].isoformat(), times[5].to_pydatetime()):
        assert encode_value(column, value) == pytest.approx(x[5, 0].item(), abs=1e-6)


def test_a_day_is_an_instant_and_days_may_be_objects():
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=k * k) for k in range(30)]
    table = pd.DataFrame({"d": days, "v": np.arange(30.0)})
    gaps = table.assign(d=[None if k % 5 == 2 else day for k, day in enumerate(days)])
    encoder = TableEncoder.learn(gaps)
    assert encoder.columns[0].unit == "day"
    x, _ = encoder.encode(table)
    assert encoder.fill(gaps, x, torch.ones_like(x, dtype=torch.bool))["d"].tolist() == days
    assert encode_value(encoder.columns[0], "2024-01-10") == encode_value(encoder.columns[0], dt.date(2024, 1, 10))
    instants = TableEncoder.learn(table.assign(d=pd.to_datetime(table["d"]))).columns[0]
    wanted = encode_value(instants, dt.datetime(2024, 1, 10))
    assert [encode_value(instants, v) for v in (dt.date(2024, 1, 10), "2024-01-10", np.datetime64("2024-01-10"))] == [wanted] * 3


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string()])
def test_text_of_pyarrow_is_filled_whatever_its_type(kind):
    text = pa.array(["a", None, "b", "a", None, "c"])
    table = pa.table(
        {"s": text.dictionary_encode() if pa.types.is_dictionary(kind) else text.cast(kind), "v": [1, 2, 3, 4, 5, 7]}
    )
    encoder, filled = filled_with(table, 1.0)
    assert filled["s"].type == kind
    assert filled["s"].to_pylist() == ["a", "b", "b", "a", "b", "c"]
    assert encoder.frame(torch.zeros(2, 2), table)["s"].type == kind


LEVELS = [
    [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    [dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 1, 2, microsecond=7)],
    [dt.time(5), dt.time(6, 30)],
    [dt.timedelta(hours=1), dt.timedelta(days=-2, microseconds=3)],
    [Decimal("1.50"), Decimal("2")],
    [b"\x00", b"ab"],
    [pd.Interval(0.1, 0.25), pd.Interval(0.25, 1.0)],
    ["a", "b"],
    [True, False],
    [1.5, 2],
]


@pytest.mark.parametrize("levels", LEVELS, ids=lambda levels: type(levels[0]).__name__)
def test_levels_of_every_type_are_kept_in_a_file(levels):
    table = pd.DataFrame({"c": pd.Series([*levels, *levels, None], dtype=object), "v": [1.0, 2.0, 3.0, 4.0, 5.5]})
    encoder = TableEncoder.learn(table, {"c": "category"})
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again.columns == encoder.columns
    assert [level_from_json(json.loads(json.dumps(level_to_json(level)))) for level in levels] == levels
    x, present = again.encode(table)
    assert again.fill(table, torch.nan_to_num(x), ~present)["c"].notna().all()


@pytest.mark.parametrize(
    "level", [{"day": "2024-13-01"}, {"decimal": "x"}, {"colour": "red"}, {"bytes": "zz"}, {}, {"interval": "1"}]
)
def test_levels_that_cannot_be_read_are_a_fault_of_the_file(level):
    item = TableEncoder.learn(pd.DataFrame({"c": ["a", "b", "a"]})).to_json()
    item["columns"][0]["levels"] = [level, "b"]
    with pytest.raises(FormatError, match="description cannot be read"):
        TableEncoder.from_json(item)


def test_what_no_file_can_keep_and_what_is_no_single_value_is_left_out_with_the_reason():
    lists = pl.DataFrame({"c": [[1, 2], [3]] * 3, "v": [1.0, 2.0, 3.0, 4.0, 5.0, 6.5]})
    for table in (lists, lists.to_pandas(), lists.to_arrow()):
        assert "no single values" in TableEncoder.learn(table).left_out["c"]
    odd = pd.DataFrame({"c": [1j, 2j, 1j], "v": [1.0, 2.0, 3.5]}, dtype=object).astype({"v": float})
    assert "cannot be kept in a file" in TableEncoder.learn(odd).left_out["c"]
    same = pd.DataFrame({"c": pd.to_datetime(1_700_000_000_000_000_000 + np.arange(3)), "v": [1.0, 2.0, 3.5]})
    assert "less than a millisecond" in TableEncoder.learn(same).left_out["c"]


def test_numbers_far_beyond_are_far_out_and_infinities_are_refused():
    table = pd.DataFrame({"v": [1.0, 2.0, 3.5], "w": [0.5, 1.0, 2.5]})
    encoder = TableEncoder.learn(table)
    x, present = encoder.encode(table.assign(v=[1e25, -1e300, 2.0]))
    assert present.all()
    assert x[:, 0].tolist()[:2] == [FARTHEST_IN_SCALES, -FARTHEST_IN_SCALES]
    assert encode_value(encoder.columns[0], 1e300) == FARTHEST_IN_SCALES
    for value in (np.inf, -np.inf, np.nan):
        with pytest.raises(InputError, match="is no value of column 'v'"):
            encode_value(encoder.columns[0], value)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_new_rows_have_the_dtypes_of_the_table(make):
    table = make(
        pd.DataFrame(
            {
                "g": pd.Categorical(["x", "y", "x", "y"], categories=["x", "y", "never"]),
                "i": pd.array([1, 2, 5, 9], dtype="Int16"),
                "f": np.array([0.5, 1.0, 2.5, 3.5], dtype="float32"),
                "b": [True, False, True, True],
            }
        )
    )
    encoder = TableEncoder.learn(table)
    x, _ = encoder.encode(table)
    made = encoder.frame(x, table, exactly={"f": 0.25})
    types = lambda t: t.schema.types if isinstance(t, pa.Table) else list(t.dtypes)  # noqa: E731
    assert types(made) == types(table)
    assert cells_of(made, "i") == [1, 2, 5, 9]
    assert cells_of(made, "f") == [0.25] * 4


def test_nan_beside_null_is_a_gap_in_every_library(tmp_path):
    """Arrow, Parquet and polars keep NaN apart from null; whichever it is, there is no value."""
    number = [1.5, float("nan"), None, 2.5, 0.0, float("nan")]
    table = pa.table({"number": pa.array(number, from_pandas=False), "whole": pa.array([1.0, 2, None, float("nan"), 3, 4])})
    pq.write_table(table, tmp_path / "t.parquet")
    masked = pd.DataFrame(
        {name: pd.array(column.to_numpy(), dtype="Float64") for name, column in zip("ab", table.columns, strict=True)}
    )
    hidden = pd.DataFrame({name: column / column * column for name, column in masked.items()})  # 0 / 0 is NaN, and no NA
    arrow = table.to_pandas(types_mapper=pd.ArrowDtype)
    for made in (
        table,
        read_table(tmp_path / "t.parquet"),
        pl.from_arrow(table),
        pl.read_parquet(tmp_path / "t.parquet"),
        masked,
        arrow,
    ):
        x, present = TableEncoder.learn(made).encode(made)
        assert present.tolist() == [[True, True], [False, True], [False, False], [True, False], [True, True], [False, True]]
        assert x[present].isfinite().all()
    x, present = TableEncoder.learn(hidden).encode(hidden)
    assert present[:, 0].tolist() == [True, False, False, True, False, False]
    assert x[present].isfinite().all()
