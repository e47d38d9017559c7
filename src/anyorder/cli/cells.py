"""Values between people and columns: typed text to a column's own values, and values to text."""

import datetime as dt
import math
from collections.abc import Iterable
from typing import Any

from ..errors import InputError
from ..modalities.tables.columns import CategoryColumn, Column, NumberColumn, read_moment
from ..modalities.tables.encoder import TableEncoder
from ..validation import near, some
from .question import Among, Compared, Is, QuestionPart, Wanted, Within, quoted_name


def find_column(encoder: TableEncoder, name: str) -> Column:
    """The column of this name; what is no column of the model is explained."""
    for column in encoder.columns:
        if column.name == name:
            return column
    if name in encoder.left_out:
        raise InputError(f"Column {name!r} was left out of the model: in training it {reason_then(encoder.left_out[name])}.")
    known = [column.name for column in encoder.columns]
    raise InputError(f"The model has no column {name!r}. {near(name, known)}Its columns: {some(known)}.")


def reason_then(reason: str) -> str:
    return reason.replace("is ", "was ", 1) if reason.startswith("is ") else reason.replace("has ", "had ", 1)


def evidence(encoder: TableEncoder, parts: Iterable[QuestionPart]) -> dict[str, Any]:
    """What is known, in the columns' own values, as the estimator wants it."""
    columns = {part.name: find_column(encoder, part.name) for part in parts}
    return {part.name: typed(columns[part.name], part.wanted) for part in parts if part.wanted}


def typed(column: Column, wanted: Wanted) -> Any:
    """A value, a range or a set of values of a column."""
    from ..modalities.tables.ranges import Between, OneOf

    match wanted:
        case Is(text):
            return one_value(column, text)
        case Among(texts):
            return OneOf(tuple(one_value(column, text) for text in texts))
        case Within(low, high):
            return Between(*ends(column, low, high))
        case Compared("!=", text):
            return OneOf(all_but(column, one_value(column, text)))
        case Compared(sign, text):
            return beyond(column, sign, text)


def all_but(column: Column, value: Any) -> tuple[Any, ...]:
    """All levels of a category but one."""
    if not isinstance(column, CategoryColumn):
        name = quoted_name(column.name)
        raise InputError(
            f"{name}!={value}: column {column.name!r} holds numbers. Ask for {name}<{value} and {name}>{value} apart."
        )
    return tuple(level for level in column.levels if level != value)


def beyond(column: Column, sign: str, text: str) -> Any:
    """All values above or below one that is not among them."""
    from ..modalities.tables.ranges import Between, OneOf

    name = quoted_name(column.name)
    if isinstance(column, CategoryColumn) and column.holds_numbers:
        return OneOf(beyond_code(column, sign, code(column, text)))
    if not isinstance(column, NumberColumn):
        raise InputError(f"{name}{sign}{text}: column {column.name!r} is a category and has no order. Write {name} in (a, b).")
    value = typed_number(column, text)
    plain_number = read_moment(column.unit, value) if column.is_moment else float(value)
    end = column.neighbour(plain_number, sign == ">")
    return Between(end, None) if sign == ">" else Between(None, end)


def beyond_code(column: CategoryColumn, sign: str, end: float) -> tuple[Any, ...]:
    """The levels above or below a number."""
    found = tuple(level for level in column.levels if (level > end if sign == ">" else level < end))
    if not found:
        raise InputError(f"{column.name}{sign}{end:g} holds for no value of column {column.name!r}, which {column.says()}.")
    return found


def code(column: CategoryColumn, text: str) -> float:
    """The number in a text, to compare levels with."""
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{column.name}={text}: expected a number, since column {column.name!r} {column.says()}.") from error


def ends(column: Column, low: str | None, high: str | None) -> tuple[Any, Any]:
    """The two ends of a range, None where it is open."""
    written = f"{low or ''}..{high or ''}"
    if isinstance(column, CategoryColumn) and column.holds_numbers:
        return None if low is None else code(column, low), None if high is None else code(column, high)
    if not isinstance(column, NumberColumn):
        name = quoted_name(column.name)
        raise InputError(
            f"{column.name}={written} is a range, but column {column.name!r} is a category. "
            f'Write {name} in (a, b) for several values, or {name}="{written}" if this is one value.'
        )
    first, last = (None if text is None else typed_number(column, text) for text in (low, high))
    if first is not None and last is not None and first > last:
        raise InputError(f"The range {column.name}={written} is empty: its low end is above its high end. Swap the two.")
    return first, last


def one_value(column: Column, text: str) -> Any:
    """The value of the column that the text means."""
    if not isinstance(column, NumberColumn):
        return level(column, text)
    value = typed_number(column, text)
    if column.unit == "whole" and value != round(value):
        lower = math.floor(value)
        raise InputError(
            f"{column.name}={text}: column {column.name!r} holds whole numbers. "
            f"Ask for {lower} or {lower + 1}, or a range such as {lower}..{lower + 1}."
        )
    return int(value) if column.unit == "whole" else value


def level(column: Column, text: str) -> Any:
    """The level that reads like the text: as it stands, or as a truth value in any case, or as a number."""
    levels = column.levels if isinstance(column, CategoryColumn) else ()
    for found in levels:
        if str(found) == text or (isinstance(found, bool) and str(found).lower() == text.lower()):
            return found
    for found in levels:
        if isinstance(found, (int, float)) and not isinstance(found, bool) and same_number(found, text):
            return found
    known = [str(found) for found in levels]
    raise InputError(f"{column.name}={text} is no value of column {column.name!r}. {near(text, known)}Its values: {some(known)}.")


def same_number(value: float | int, text: str) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False


def typed_number(column: NumberColumn, text: str) -> Any:
    """The number or date in a text."""
    expected = {"day": "a date such as 2024-01-31", "instant": "a date such as 2024-01-31 or 2024-01-31 17:30"}
    try:
        if column.unit == "day":
            return dt.date.fromisoformat(text)
        if column.unit == "instant":
            instant = dt.datetime.fromisoformat(text)
            return instant.astimezone(dt.UTC).replace(tzinfo=None) if instant.tzinfo else instant
        if math.isfinite(value := float(text)):
            return value
    except ValueError:
        pass
    raise InputError(
        f"{column.name}={text}: expected {expected.get(column.unit, 'a number')}, since that is what the column holds."
    )
