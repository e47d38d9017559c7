"""What a person types, in the columns' own values, and back."""

import datetime as dt

import numpy as np
import pytest

from anyorder.cli.cells import ends, find_column, one_value, reason_then, typed
from anyorder.cli.question import Compared, Within
from anyorder.errors import InputError
from anyorder.modalities.tables.columns import CategoryColumn, NumberColumn, kind_of_column, plain
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.modalities.tables.ranges import Between, OneOf

CITY = CategoryColumn("city", ("Oslo", "Rome", "<=50K", ""))
FLAG = CategoryColumn("flag", (False, True))
GRADE = CategoryColumn("grade", (1, 2, 2.5))
AGE = NumberColumn("age", 40.0, 10.0, 1.0, 0, unit="whole")
SIZE = NumberColumn("body size", 1.7, 0.1, 0.01, 2)
DAY = NumberColumn("day", 0.0, 1.0, 1.0, 0, unit="day")
INSTANT = NumberColumn("seen", 0.0, 1e7, 1000.0, 0, unit="instant")
MIDNIGHT = NumberColumn("born", 0.0, 1e9, 86400000.0, 0, unit="instant")
ENCODER = TableEncoder((CITY, AGE, SIZE), {"id": "has 90 different values in 90 rows", "none": "is empty"}, ())


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        (CITY, "Oslo", "Oslo"),
        (CITY, "<=50K", "<=50K"),
        (CITY, "", ""),
        (FLAG, "true", True),
        (FLAG, "False", False),
        (GRADE, "2", 2),
        (GRADE, "2.0", 2),
        (GRADE, "2.5", 2.5),
        (AGE, "39", 39),
        (AGE, "4e1", 40),
        (SIZE, "-1.75", -1.75),
        (DAY, "2024-02-29", dt.date(2024, 2, 29)),
        (INSTANT, "2024-02-29 17:30", dt.datetime(2024, 2, 29, 17, 30)),
        (INSTANT, "2024-02-29T17:30+02:00", dt.datetime(2024, 2, 29, 15, 30)),
        (MIDNIGHT, "2024-02-29", dt.datetime(2024, 2, 29)),
    ],
)
def test_text_becomes_a_value_of_the_column(column, text, value):
    found = one_value(column, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        (CITY, "oslo", "city=oslo is no value of column 'city'. Did you mean 'Oslo'\\? Its values: Oslo, Rome, <=50K"),
        (CITY, "Tokyo", "city=Tokyo is no value of column 'city'. Its values: Oslo"),
        (FLAG, "yes", "flag=yes is no value of column 'flag'. Its values: False, True"),
        (AGE, "old", "age=old: expected a number, since that is what the column holds"),
        (AGE, "nan", "age=nan: expected a number"),
        (AGE, "inf", "age=inf: expected a number"),
        (AGE, "39.5", r"age=39.5: column 'age' holds whole numbers. Ask for 39 or 40, or a range such as 39..40"),
        (SIZE, ">1.8", r"body size=>1.8: expected a number, since that is what the column holds"),
        (DAY, "29.2.2024", "day=29.2.2024: expected a date such as 2024-01-31,"),
        (INSTANT, "soon", "seen=soon: expected a date such as 2024-01-31 or 2024-01-31 17:30"),
    ],
)
def test_what_is_no_value_is_explained(column, text, message):
    with pytest.raises(InputError, match=message):
        one_value(column, text)


def test_ranges():
    assert ends(AGE, "30", None) == (30, None)
    assert ends(AGE, None, "39.5") == (None, 39.5)
    assert ends(DAY, "2024-01-01", "2024-01-01") == (dt.date(2024, 1, 1), dt.date(2024, 1, 1))
    with pytest.raises(InputError, match=r"The range age=40..30 is empty: its low end is above its high end. Swap the two."):
        ends(AGE, "40", "30")
    with pytest.raises(InputError, match=r"is a range, but column 'city' is a category. Write city in \(a, b\)"):
        ends(CITY, "A", "F")


def test_columns_that_are_not_there_are_explained():
    assert find_column(ENCODER, "age") is AGE
    with pytest.raises(InputError, match=r"no column 'Body Sise'. Did you mean 'body size'\? Its columns: city, age"):
        find_column(ENCODER, "Body Sise")
    with pytest.raises(InputError, match="'id' was left out of the model: in training it had 90 different values"):
        find_column(ENCODER, "id")
    assert reason_then("is always 3") == "was always 3"
    assert reason_then("was asked to be left out") == "was asked to be left out"


def test_values_as_json_holds_them():
    assert plain(MIDNIGHT, dt.datetime(2024, 2, 29)) == "2024-02-29"
    assert plain(INSTANT, dt.datetime(2024, 2, 29)) == "2024-02-29 00:00:00"
    assert plain(DAY, dt.date(2024, 2, 29)) == "2024-02-29"
    assert plain(AGE, np.int64(3)) == 3
    assert [kind_of_column(c) for c in (CITY, AGE, SIZE, DAY, INSTANT, MIDNIGHT)] == [
        "category",
        "whole number",
        "number",
        "date",
        "instant",
        "date",
    ]


@pytest.mark.parametrize(
    ("column", "wanted", "expected"),
    [
        (AGE, Compared(">", "60"), Between(61, None)),
        (AGE, Compared("<", "60"), Between(None, 59)),
        (AGE, Compared(">", "60.5"), Between(61, None)),
        (AGE, Within("60", None), Between(60, None)),
        (SIZE, Compared("<", "1.8"), Between(None, 1.79)),
        (DAY, Compared(">", "1980-02-28"), Between(dt.date(1980, 2, 29), None)),
        (CITY, Compared("!=", "Rome"), OneOf(("Oslo", "<=50K", ""))),
        (FLAG, Compared("!=", "true"), OneOf((False,))),
    ],
)
def test_comparisons_are_ranges_and_sets(column, wanted, expected):
    assert typed(column, wanted) == expected


@pytest.mark.parametrize(
    ("column", "wanted", "message"),
    [
        (CITY, Compared(">", "Rome"), r"city>Rome: column 'city' is a category and has no order. Write city in \(a, b\)"),
        (AGE, Compared("!=", "60"), "age!=60: column 'age' holds numbers. Ask for age<60 and age>60 apart"),
        (AGE, Compared("<", "old"), "age=old: expected a number"),
    ],
)
def test_comparisons_that_cannot_be_are_explained(column, wanted, message):
    with pytest.raises(InputError, match=message):
        typed(column, wanted)
