"""Cells as whole numbers, whole numbers as symbols: nothing is lost on the way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import FormatError
from anyorder.modalities.tables.codec.cell_formats import (
    ELSEWHERE,
    GAP,
    LARGEST_CODED,
    ODD,
    SPECIAL,
    Coded,
    CodedColumn,
    Decimals,
    DictionaryWords,
    Moments,
    byte_planes,
    format_from_json,
    from_planes,
    learn_coded_column,
    learn_format,
    remembers,
)

NUMBERS = st.lists(st.integers(-LARGEST_CODED + 1, LARGEST_CODED - 1) | st.integers(-5, 5), min_size=1, max_size=30)
TEXTS = st.text(max_size=4) | st.integers(-(10**20), 10**20).map(str) | st.floats().map(repr) | st.decimals(places=3).map(str)


@given(st.integers(0, 18), st.integers(0, 18), st.integers(-LARGEST_CODED + 1, LARGEST_CODED - 1))
def test_a_number_is_written_and_read(one, other, number):
    form = Decimals(max(one, other), min(one, other))
    assert form.number(form.text(number)) == number


@given(st.integers(0, 18), st.integers(0, 18), TEXTS)
def test_whatever_is_read_as_a_number_is_written_the_same(one, other, text):
    form = Decimals(max(one, other), min(one, other))
    number = form.number(text)
    assert number is None or form.text(number) == text


@pytest.mark.parametrize(
    "text", ["-0", "-0.0", "00", "1.", ".5", "1e5", "nan", "inf", "+1", " 1", "1 ", "", "\u0661", "1.50", "12_3"]
)
def test_other_ways_of_writing_are_odd(text):
    assert Decimals(2, 0).number(text) is None


@pytest.mark.parametrize(
    ("texts", "most", "least"),
    [(["12", "-3"], 0, 0), (["1.50", "2.25"], 2, 2), (["129.0", "8.3252"], 4, 1), (["1.5", "2"], 1, 0)],
)
def test_decimals_are_found(texts, most, least):
    assert learn_format(texts, np.ones(len(texts), dtype=int)) == Decimals(most, least)


@given(st.datetimes(), st.sampled_from(["", " ", "T"]))
def test_a_moment_is_written_and_read(moment, mark):
    text = moment.replace(microsecond=0).isoformat(mark) if mark else moment.date().isoformat()
    form = learn_format([text], np.ones(1, dtype=int))
    assert form == Moments(mark)
    assert form.text(form.number(text)) == text
    assert format_from_json(form.to_json()) == form


@pytest.mark.parametrize(
    "text", ["2020-02-30", "2020-1-1", "2020-01-01 24:00:00", "2020-01-01T00:00", "20200101", "2020-01-01x00:00:00"]
)
def test_other_moments_are_odd(text):
    assert all(Moments(mark).number(text) is None for mark in ("", " ", "T"))


def test_words_come_by_their_frequency():
    form = learn_format(["a", "b", "7"], np.array([1, 5, 2]))
    assert form == DictionaryWords(("b", "7", "a"))
    assert format_from_json(form.to_json()) == form
    assert form.number("c") is None
    assert form.text(3) is None


@given(NUMBERS, NUMBERS, NUMBERS, st.data())
def test_symbols_give_the_numbers_back(learned, numbers, before, data):
    """Whatever a column was learned from, and whatever it is shown."""
    column = learn_coded_column(Decimals(0, 0), np.array(learned), np.zeros(len(learned), dtype=int))
    numbers = np.array(numbers)
    before = np.resize(np.array(before), len(numbers))
    kind = np.array(data.draw(st.lists(st.sampled_from([0, GAP, ODD]), min_size=len(numbers), max_size=len(numbers))))
    coded = column.coded(numbers, kind, before)
    assert ((coded.symbol >= 0) & (coded.symbol < column.symbols)).all()
    np.testing.assert_array_equal(coded.symbol[kind != 0], kind[kind != 0])
    inside = coded.symbol >= SPECIAL
    symbol, place = coded.symbol[inside], coded.place[inside]
    assert ((place >= 0) & (place < column.widths(symbol))).all()
    np.testing.assert_array_equal(column.number(Coded(symbol, place), before[inside]), numbers[inside])
    levels = column.level(numbers, coded.symbol)
    assert ((levels >= 0) & (levels < column.level_count)).all()


@given(NUMBERS)
def test_what_was_learned_is_inside(learned):
    numbers = np.array(learned)
    column = learn_coded_column(Decimals(0, 0), numbers, np.zeros(len(numbers), dtype=int))
    before = np.concatenate([[column.start], numbers[:-1]])
    assert (column.coded(numbers, np.zeros(len(numbers), dtype=int), before).symbol != ELSEWHERE).all()
    values = None if column.values is None else from_planes(byte_planes(column.values))
    again = CodedColumn.from_json(column.to_json(), values)
    assert again.to_json() == column.to_json()
    np.testing.assert_array_equal(again.values, column.values)


def test_a_clock_is_coded_by_its_changes_and_prices_by_their_values():
    rng, kind = np.random.default_rng(0), np.zeros(5000, dtype=int)
    clock = learn_coded_column(Decimals(0, 0), np.arange(5000) * 60, kind)
    assert clock.change
    assert clock.symbols <= SPECIAL + 2
    price = learn_coded_column(Decimals(0, 0), rng.integers(1, 400, 5000) * 9973, kind)
    assert not price.change
    assert price.values is not None
    noise = learn_coded_column(Decimals(0, 0), rng.integers(0, 2**40, 5000), kind)
    assert noise.values is None


def test_memory_is_found_where_there_is_some():
    rng = np.random.default_rng(0)
    assert remembers(np.cumsum(rng.integers(-1, 2, 2000)))
    assert not remembers(rng.integers(0, 50, 2000))


@pytest.mark.parametrize(
    "change",
    [
        {"edges": [3]},
        {"edges": [3, -1, 5]},
        {"levels": [2, 0]},
        {"start": 2**61},
        {"format": {"kind": "decimals", "most": 99, "least": 0}},
        {"format": {"kind": "other"}},
    ],
)
def test_columns_that_contradict_themselves_are_refused(change):
    column = learn_coded_column(Decimals(0, 0), np.arange(9) % 4, np.zeros(9, dtype=int))
    with pytest.raises(FormatError):
        CodedColumn.from_json(column.to_json() | change, column.values)


@pytest.mark.parametrize("values", [[0, 1, 1, 2], [3, 2, 1, 0], [-(2**63), 0, 1, 2], [0, 1, 2], [0, 1, 2, 3, 4]])
def test_values_that_contradict_their_column_are_refused(values):
    column = CodedColumn(Decimals(0, 0), False, np.arange(4), np.array([0, 2, 4]), np.array([0, 2]), 0)
    assert CodedColumn.from_json(column.to_json(), np.arange(4)).symbols == column.symbols
    with pytest.raises(FormatError):
        CodedColumn.from_json(column.to_json(), np.array(values))


def test_bytes_that_are_no_whole_numbers_are_refused():
    with pytest.raises(FormatError, match="bytes of whole numbers"):
        from_planes(b"1234567")
