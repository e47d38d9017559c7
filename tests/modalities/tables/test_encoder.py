"""Tables of every dataframe library, with all that real tables hold, to numbers and back."""

import datetime as dt
import math

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import InputError
from anyorder.modalities.tables.columns import CategoryColumn, NumberColumn, precision, read_numbers
from anyorder.modalities.tables.dataframes import is_gap
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.schema import Category, Recorded

DATA = {
    "age": [31, 45, None, 62, 45, 31, 45, 28],
    "height": [1.72, 1.8, 1.65, None, 1.72, 1.91, 1.65, 1.72],
    "city": ["Oslo", "Rome", "Rome", None, "Oslo", "Bern", "Oslo", "Rome"],
    "member": [True, False, None, True, True, False, False, True],
    "born": [dt.date(1990, 1, 1), dt.date(1980, 5, 17), None, dt.date(1970, 2, 3), *[dt.date(2000, 1, 1)] * 4],
    "seen": [dt.datetime(2024, 1, 1, 12), None, *[dt.datetime(2025, 6, 30, 8, 30, 15)] * 6],
}
MAKERS = {
    "pandas": lambda data: pd.DataFrame(data),
    "pandas, nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


def rows_of(table):
    """Cells as plain Python values, None for a gap."""
    table = table.to_pylist() if isinstance(table, pa.Table) else table.to_dicts() if isinstance(table, pl.DataFrame) else table
    if isinstance(table, pd.DataFrame):
        table = [{k: None if pd.isna(v) else v for k, v in row.items()} for row in table.astype(object).to_dict("records")]
    return table


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_kinds_are_found_and_gaps_are_kept(make):
    table = make(DATA)
    encoder = TableEncoder.learn(table)
    assert [type(v.domain) for v in encoder.schema][1:4] == [Recorded, Category, Category]
    x, present = encoder.encode(table)
    assert present.tolist() == [[row.get(c.name) is not None for c in encoder.columns] for row in rows_of(table)]
    encoder.schema.check(x, present)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_cell_comes_back_and_filling_touches_gaps_only(make):
    table = make(DATA)
    encoder = TableEncoder.learn(table)
    x, present = encoder.encode(table)
    for i, column in enumerate(encoder.columns):
        rows = present[:, i].nonzero().squeeze(-1).tolist()
        decoded = column.decode(x[rows, i].double().numpy())
        original = [rows_of(table)[r][column.name] for r in rows]
        assert [comparable(v) for v in decoded] == [comparable(v) for v in original]
    filled = encoder.fill(table, torch.nan_to_num(x), ~present)
    assert type(filled) is type(table)
    for before, after in zip(rows_of(table), rows_of(filled), strict=True):
        for name in DATA:
            assert after[name] is not None
            assert before[name] is None or comparable(before[name]) == comparable(after[name])
    if isinstance(table, pd.DataFrame):
        assert (filled.dtypes == table.dtypes).all()
    else:
        assert filled.schema == table.schema


def comparable(value):
    if isinstance(value, pd.Timestamp):
        value = value.to_pydatetime()
    return round(float(value), 9) if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else value


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_numbers_and_gaps_are_read_as_cell_by_cell(make):
    """The fast ways to read a column against the slow one."""
    frame = nw.from_native(make({**DATA, "weight": [1.5, float("nan"), None, -0.25, 1e9, 3.0, 2.0, 0.0]}), eager_only=True)
    nothing = lambda cell: cell is None or cell is pd.NA or cell is pd.NaT or cell != cell  # noqa: E731
    for name in frame.columns:
        cells = frame[name].to_list()
        assert is_gap(frame[name]).tolist() == [nothing(cell) for cell in cells], name
        if name in ("age", "height", "weight"):
            wanted = [math.nan if nothing(cell) else float(cell) for cell in cells]
            np.testing.assert_array_equal(read_numbers(frame[name]), wanted)
    levels = CategoryColumn("city", ("Bern", "Oslo"))
    assert levels.unseen(frame["city"]) == {"Rome"}
    assert CategoryColumn("city", ("Bern", "Oslo", "Rome")).unseen(frame["city"]) == set()


def test_a_pandas_index_and_categories_survive():
    table = pd.DataFrame({"c": pd.Categorical(["a", None, "b", "a"], categories=["b", "a", "z"]), "v": [1.5, 2.5, None, 4.0]})
    table.index = [10, 20, 30, 40]
    encoder = TableEncoder.learn(table)
    x, present = encoder.encode(table)
    filled = encoder.fill(table, torch.nan_to_num(x), ~present)
    assert filled.index.tolist() == [10, 20, 30, 40]
    assert filled["c"].dtype == table["c"].dtype
    assert not filled.isna().any().any()


@given(
    values=st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=30, unique=True),
    decimals=st.integers(0, 4),
)
def test_recorded_decimals_are_found_and_values_come_back_to_the_digit(values, decimals):
    numbers = np.array([round(v / 10**decimals, decimals) for v in values])
    found, spacing, continuous = precision(numbers)
    assert found <= decimals
    assert not continuous
    assert spacing == pytest.approx(10.0**-found)
    table = pd.DataFrame({"v": numbers, "w": np.arange(len(numbers)) + 0.5})
    encoder = TableEncoder.learn(table)
    x, _ = encoder.encode(table)
    scale = max(numbers.std(), 1e-9)
    back = np.array(encoder.columns[0].decode(x[:, 0].double().numpy()))
    np.testing.assert_allclose(back, numbers, atol=max(0, 2e-6 * scale) + 1e-12)


def test_values_that_repeat_become_atoms_and_long_fractions_are_continuous():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"zeros": np.where(rng.random(500) < 0.5, 0.0, rng.random(500).round(3)), "free": rng.normal(size=500)})
    zeros, free = TableEncoder.learn(table).columns
    assert 0.0 in zeros.atoms
    assert zeros.decimals == 3
    assert free.continuous
    assert free.atoms == ()
    assert isinstance(free, NumberColumn)


def test_what_cannot_be_modelled_is_left_out_with_a_reason():
    table = pd.DataFrame(
        {
            "id": [f"u{i}" for i in range(60)],
            "same": 7,
            "none": [None] * 60,
            "v": np.arange(60) % 5,
            "text": ["a b c"] * 59 + ["d"],
        }
    )
    encoder = TableEncoder.learn(table, kinds={"text": "leave out"})
    assert [c.name for c in encoder.columns] == ["v"]
    assert encoder.left_out["id"] == "has 60 different values in 60 rows: an identifier or free text"
    assert encoder.left_out["same"] == "is always 7"
    assert encoder.left_out["none"] == "is empty"
    assert encoder.left_out["text"] == "was asked to be left out"
    assert TableEncoder.from_json(encoder.to_json()) == encoder


def test_unseen_categories_are_gaps_with_a_warning_and_columns_may_be_reordered_missing_or_extra():
    encoder = TableEncoder.learn(pd.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 3]}))
    with pytest.warns(UserWarning, match=r"Column 'a' has values not seen in fit, taken as gaps: 'z'"):
        x, present = encoder.encode(pd.DataFrame({"more": [0, 0], "b": [3, 1], "a": ["z", "y"]}))
    assert present.tolist() == [[False, True], [True, True]]
    assert x[1, 0] == 1
    _, present = encoder.encode(pd.DataFrame({"b": [3.0]}))
    assert present.tolist() == [[False, True]]


def test_arrays_are_tables_too():
    array = np.array([[1.0, np.nan], [2.0, 5.5], [3.0, 6.5]])
    encoder = TableEncoder.learn(array)
    x, present = encoder.encode(array)
    filled = encoder.fill(array, torch.nan_to_num(x), ~present)
    assert isinstance(filled, np.ndarray)
    assert filled[0, 1] == encoder.columns[1].centre
    np.testing.assert_array_equal(filled[1:], array[1:])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: TableEncoder.learn(pd.DataFrame({"a": [1, 1]})), "nothing to model in this table: 'a' is always 1"),
        (lambda: TableEncoder.learn(pd.DataFrame()), "nothing to model"),
        (lambda: TableEncoder.learn(pd.DataFrame({"a": [1.0, -1.5e308]})), "Column 'a' holds 1 number.s. beyond 1e.306, where"),
        (lambda: TableEncoder.learn(pd.DataFrame({"a": [1.0, np.inf]})), "Column 'a' holds 1 infinite value"),
        (lambda: TableEncoder.learn(pd.DataFrame([[1, 2]], columns=["a", "a"])), "name"),
        (lambda: TableEncoder.learn("people.csv"), "Cannot read a str as a table"),
        (lambda: TableEncoder.learn(np.zeros(3)), r"shape \(3,\); expected two dimensions"),
        (lambda: TableEncoder.learn(pd.DataFrame({"a": [1, 2]}), {"b": "number"}), "kinds names a column 'b'"),
        (
            lambda: TableEncoder.learn(pd.DataFrame({"a": [1, 2]}), {"a": "colour"}),
            "expected 'category', 'number', 'log', 'linear' or",
        ),
        (
            lambda: TableEncoder.learn(pd.DataFrame({"a": ["x", "y"]}), {"a": "number"}),
            "is 'number', but the column holds String",
        ),
        (
            lambda: TableEncoder.learn(pd.DataFrame({"a": [1, 2]})).encode(pd.DataFrame({"b": [1]})),
            "none of the model's columns: it has b, the model knows a",
        ),
        (
            lambda: TableEncoder.learn(pd.DataFrame({"a": [1, 2]})).encode(pd.DataFrame({"a": ["one"]})),
            "held numbers in fit and holds String now",
        ),
        (
            lambda: TableEncoder.learn(np.ones((2, 2)) * [[1], [2]]).encode(np.ones((2, 3))),
            "X has 3 features, but AnyOrder is expecting 2 features",
        ),
    ],
)
def test_bad_tables_are_explained(act, message):
    with pytest.raises(InputError, match=message):
        act()


def test_columns_too_wide_for_their_precision_keep_to_values_that_could_be_written():
    rng = np.random.default_rng(0)
    cents = np.exp(rng.normal(9, 3, 500)).round(2)
    seconds = pd.to_datetime(rng.integers(0, 700_000_000, 500) * 1_000_000_000)
    encoder = TableEncoder.learn(
        pd.DataFrame({"cents": cents, "whole": np.exp(rng.normal(12, 3, 500)).astype(int), "at": seconds}),
        {"cents": "linear", "whole": "linear"},
    )
    x = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0))
    made = encoder.frame(x, pd.DataFrame())
    assert np.abs(made["cents"] * 100 - (made["cents"] * 100).round()).max() < 1e-4
    assert (made["at"].dt.microsecond == 0).all()
    assert all(column.spacing < 1.1e-6 * column.scale for column in encoder.columns)
    assert [column.spacing % unit for column, unit in zip(encoder.columns[1:], (1.0, 1000.0), strict=True)] == [0.0, 0.0]


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_huge_and_tiny_numbers_keep_their_place(size):
    values = np.array([1.0, 2.5, -3.25, 7.125, 0.5, 2.5]) * size
    encoder = TableEncoder.learn(pd.DataFrame({"v": values}))
    x, present = encoder.encode(pd.DataFrame({"v": values}))
    assert present.all()
    assert x.abs().max() < 10
    back = np.array(encoder.columns[0].decode(x[:, 0].double().numpy()))
    np.testing.assert_allclose(back, values, rtol=0, atol=1e-5 * 7 * size)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([17.0, 40.0, 90.0], (0.0, 126.0)),  # half as much on either side is -19.5 to 126.5: nobody is younger than 0
        ([-5.0, -2.0, -0.5], (-7.2, 0.0)),
        ([-1.0, 0.0, 3.0], (-3.0, 5.0)),
        ([100.25, 101.5, 102.25], (99.25, 103.25)),
        ([1e-3, 2.0, 62.42], (0.0, 93.629)),
        ([1995.0, 2005.0, 2015.0], (1985.0, 2025.0)),
    ],
)
def test_numbers_are_expected_within_what_was_seen_and_half_as_much_again(values, wanted):
    column = NumberColumn.learn("a", nw.from_native(pd.Series(values * 2), series_only=True))
    assert column.bounds == pytest.approx(wanted)
    low, high = column.domain.bounds
    steps = np.array([low, high]) * column.scale / column.spacing
    assert np.allclose(steps, steps.round())
    assert column.decode(np.array([low, high])) == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("decimals", "size"), [(2, 50_000.0), (0, 5e6), (0, 30.0), (6, 1.0)])
def test_every_value_that_was_seen_lies_within_the_bounds(seed, decimals, size):
    """Also where the lattice is coarser than the values, and 0 none of its points: money with cents, many of them 0."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(300) < 0.3, 0.0, size * rng.lognormal(size=300)).round(decimals) * rng.choice([-1, 1])
    column = NumberColumn.learn("a", nw.from_native(pd.Series(values), series_only=True))
    low, high = column.domain.bounds
    half = column.domain.spacing / 2
    places = column.encode(nw.from_native(pd.Series(values), series_only=True))
    assert ((places > low - half) & (places < high + half)).all()
    assert column.decode(np.array([low if values.max() > 0 else high]))[0] == pytest.approx(0.0, abs=column.spacing)


def test_the_calendar_ends():
    days = [dt.date(2020, 1, 1), dt.date(9999, 12, 31)] * 3
    column = NumberColumn.learn("a", nw.from_native(pl.Series(days), series_only=True))
    assert column.decode(np.array(column.domain.bounds))[1] == dt.date(9999, 12, 31)


def test_days_have_no_sign():
    column = NumberColumn.learn("a", nw.from_native(pl.Series([dt.date(1971, 1, 1), dt.date(1980, 1, 1)]), series_only=True))
    assert column.bounds[0] < 0
    assert column.decode(np.array(column.domain.bounds)) == [dt.date(1966, 7, 3), dt.date(1984, 7, 1)]
