"""Numbers and dates in columns of text: read as a person means them, filled as they are written, and never changed."""

import datetime as dt

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from anyorder.errors import InputError
from anyorder.modalities.tables.columns import CategoryColumn, NumberColumn
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.modalities.tables.written_cells import Form, find_form, is_blank, meant, strictly, write_number

ROWS = 60
NUMBERS = np.random.default_rng(0).integers(1000, 99999, ROWS) / 10
DAYS = [dt.datetime(2020, 1, 1) + dt.timedelta(days=7 * k) for k in range(ROWS)]
MAKERS = {"pandas": lambda t: t, "polars": pl.from_pandas, "arrow": lambda t: pa.Table.from_pandas(t, preserve_index=False)}

FORMS = {
    "18.7": Form(),
    "18,7": Form(","),
    "1,234.5": Form(".", ","),
    "1.234,5": Form(",", "."),
    "1 234.5": Form(".", " "),
    "1'234.5": Form(".", "'"),
    "45.1%": Form(unit="#%"),
    "45,1 %": Form(",", unit="# %"),
    "$1,234.5": Form(".", ",", "$#"),
    "1.234,5 €": Form(",", ".", "# €"),
}


def series(cells):
    return nw.from_native(pd.Series(cells), series_only=True)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_how_numbers_are_written_is_found_and_they_are_read_back(form):
    texts = [write_number(v, form, 1) for v in NUMBERS]
    assert find_form(series(texts)) == form
    assert [strictly(text, form) for text in texts] == NUMBERS.tolist()


@pytest.mark.parametrize(
    ("text", "form", "number"),
    [
        ("18,7", Form(), 18.7),
        ("18,725", Form(), None),  # or are these thousands?
        ("18.7", Form(","), 18.7),
        ("1,23", Form(".", ","), None),
        ("1,234,567.5", Form(".", ","), 1234567.5),
        ("1,2345", Form(".", ","), None),
        ("-1e3", Form(), -1000.0),
        ("\u22125.5", Form(), -5.5),
        (".5", Form(), 0.5),
        ("5.", Form(), 5.0),
        ("1\u00a0234", Form(".", " "), 1234.0),
        ("45", Form(unit="#%"), None),  # 45 or 4500 per cent
        ("$5", Form(), None),
        ("5", Form(unit="$#"), 5.0),
        ("€5", Form(unit="$#"), None),
        ("1e999", Form(), None),
        ("inf", Form(), None),
        ("18.7 mm", Form(), None),
        (7, Form(), 7.0),
        ("", Form(), None),
    ],
)
def test_single_cells(text, form, number):
    assert meant(text, form) == number


def test_codes_phones_words_and_ambiguous_dates_are_no_numbers():
    for cells in (
        ["01008", "10001", "90210"] * 9,
        ["0171 234567", "0171 234568"] * 9,
        ["a", "1", "2"] * 9,
        ["01/02/2020", "03/04/2020", "05/06/2020"] * 9,
        [True, "1", "2"] * 9,
        [[1], [2]] * 9,
        [None, "?"],
    ):
        assert find_form(series(pd.Series(cells, dtype=object))) is None
    assert [is_blank(text) for text in ("n.a.", " N/A ", "?", "-", "None", "0", "x")] == [True] * 5 + [False] * 2


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_stray_cells_are_gaps_that_are_filled_and_what_holds_a_value_stays(make):
    size = ["n.a.", "?", "18,7", "large", None, *(f"{v:.1f}" for v in NUMBERS[5:])]
    day = ["-", None, "unknown", "never", *(f"{d:%d.%m.%Y}" for d in DAYS[4:])]
    table = make(pd.DataFrame({"size": size, "day": day}))
    encoder = TableEncoder.from_json(TableEncoder.learn(table).to_json())
    with pytest.warns(UserWarning, match="of (size|day) ") as told:
        x, present = encoder.encode(table)
    assert [str(one.message) for one in told] == [
        "3 cells of size are not numbers: taken as gaps ('n.a.', '?', 'large'). "
        "If they are values, fit with kinds={'size': 'category'}.",
        "Cells of size with another decimal mark are read all the same: '18,7' is 18.7.",
        "3 cells of day are not dates: taken as gaps ('-', 'unknown', 'never'). "
        "If they are values, fit with kinds={'day': 'category'}.",
    ]
    assert told[0].message.command_line.endswith("If they are values, fit with --kind size=category.")
    assert present.tolist()[:6] == [[False] * 2] * 2 + [[True, False], [False] * 2, [False, True], [True] * 2]
    filled = encoder.fill(table, torch.where(present, x, x[9]), ~present)
    assert filled.schema == table.schema if not isinstance(table, pd.DataFrame) else (filled.dtypes == table.dtypes).all()
    found = filled.to_pandas() if hasattr(filled, "to_pandas") else filled
    assert found["size"].tolist() == [size[9], size[9], "18,7", "large", size[9], *size[5:]]
    assert found["day"].tolist() == [day[9], day[9], day[9], "never", *day[4:]]


def test_one_stray_cell_is_told_of_in_the_singular():
    table = pd.DataFrame({"size": ["?", *(f"{v:.1f}" for v in NUMBERS)]})
    with pytest.warns(UserWarning, match=r"^1 cell of size is not a number: taken as a gap \('\?'\)\."):
        TableEncoder.learn(table).encode(table)


def test_objects_that_are_mostly_numbers_are_filled_with_numbers():
    table = pd.DataFrame({"v": pd.Series([*NUMBERS.tolist(), "n.a.", None], dtype=object)})
    encoder = TableEncoder.learn(table)
    with pytest.warns(UserWarning, match="1 cell of v is not a number"):
        x, present = encoder.encode(table)
    filled = encoder.fill(table, torch.where(present, x, x[0]), ~present)
    assert filled["v"].tolist() == [*NUMBERS.tolist(), NUMBERS[0], NUMBERS[0]]


def test_codes_with_stray_cells_stay_codes_and_texts_without_stay_text():
    texts = ["0", "1", "1"] * 20
    plain = TableEncoder.learn(pd.DataFrame({"c": texts})).columns[0]
    assert plain == CategoryColumn("c", ("0", "1"))
    table = pd.DataFrame({"c": [*texts, "n.a."]})
    encoder = TableEncoder.learn(table)
    assert encoder.columns[0].levels == (0.0, 1.0)
    with pytest.warns(UserWarning, match="1 cell of c is not a number"):
        x, present = encoder.encode(table)
    filled = encoder.fill(table, torch.where(present, x, 1.0), ~present)
    assert filled["c"].tolist() == [*texts, "1"]
    assert encoder.encode(pd.DataFrame({"c": [0, 1]}))[0].tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_dates_as_text_are_dates(make):
    stamps = [f"{d:%Y-%m-%d}T{d.day % 24:02}:30" for d in DAYS]
    zoned = [f"{d:%Y-%m-%d} 12:00:00+02:00" for d in DAYS]
    table = make(pd.DataFrame({"iso": [f"{d:%Y-%m-%d}" for d in DAYS], "at": stamps, "zoned": zoned}))
    encoder = TableEncoder.learn(table)
    assert [column.unit for column in encoder.columns] == ["instant"] * 3
    x, present = encoder.encode(table)
    assert present.all()
    drawn = encoder.frame(x, table)
    found = (drawn.to_pandas() if hasattr(drawn, "to_pandas") else drawn).astype("datetime64[ms]")
    assert found["iso"].tolist() == DAYS
    assert found["zoned"].tolist() == [d + dt.timedelta(hours=10) for d in DAYS]
    gaps = pd.DataFrame(
        {"iso": [None, *[f"{d:%Y-%m-%d}" for d in DAYS[1:]]], "at": [None, *stamps[1:]], "zoned": [None, *zoned[1:]]}
    )
    filled = encoder.fill(make(gaps), x, torch.ones_like(present))
    first = (filled.to_pandas() if hasattr(filled, "to_pandas") else filled).iloc[0].tolist()
    assert first == ["2020-01-01", "2020-01-01T01:30", "2020-01-01 10:00Z"]


def test_a_column_of_numbers_may_come_as_text_later_and_nonsense_is_refused():
    encoder = TableEncoder.learn(pd.DataFrame({"v": NUMBERS}))
    x, _ = encoder.encode(pd.DataFrame({"v": [str(v) for v in NUMBERS]}))
    assert x.equal(encoder.encode(pd.DataFrame({"v": NUMBERS}))[0])
    with pytest.raises(
        InputError, match=r"Column 'v' held numbers in fit and holds String now, such as 'one'\. Convert it first\."
    ):
        encoder.encode(pd.DataFrame({"v": ["one", "two"]}))
    assert isinstance(TableEncoder.learn(pd.DataFrame({"v": ["x", "y", "1.5", "2.5"]}), {"v": "number"}).columns[0], NumberColumn)
