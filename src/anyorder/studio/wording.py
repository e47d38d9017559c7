"""Values of a table as JSON says them, and the Python call and the command line that give the same answer."""

import datetime as dt
import shlex
from collections.abc import Iterable, Mapping
from math import isfinite
from re import fullmatch
from typing import Any

from ..errors import InputError
from ..modalities.tables.columns import CategoryColumn, Column, NumberColumn, plain
from ..modalities.tables.ranges import Between, OneOf
from ..validation import near, some

Document = dict[str, Any]


def column_named(columns: Iterable[Column], name: str) -> Column:
    """The column of a model that has this name."""
    known = {column.name: column for column in columns}
    if name not in known:
        raise InputError(f"The model has no column {name!r:.60}. {near(name, list(known))}Its columns: {some(list(known))}.")
    return known[name]


def conditions(columns: Iterable[Column], said: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON says of columns: a value, {"low": ..., "high": ...} or {"in": [...]}; as the verbs of a model take it."""
    columns = list(columns)
    return {name: condition(column_named(columns, name), one) for name, one in said.items()}


def condition(column: Column, said: Any) -> Any:
    if not isinstance(said, dict):
        return value_of(column, said)
    if set(said) == {"in"} and isinstance(said["in"], list) and said["in"]:
        return OneOf(tuple(value_of(column, one) for one in said["in"]))
    if said and set(said) <= {"low", "high"}:
        ends = [None if said.get(end) is None else value_of(column, said[end], as_end=True) for end in ("low", "high")]
        return Between(*ends)
    raise InputError(
        f'What is said of {column.name!r} is not understood; expected a value, {{"low": ..., "high": ...}} or {{"in": [...]}}.'
    )


def value_of(column: Column, said: Any, as_end: bool = False) -> Any:
    """A value of the column; the end of a range need not be one that occurs."""
    if isinstance(column, CategoryColumn):
        if as_end and column.holds_numbers:
            return number_in(column, said)
        for level in column.levels:
            if type(level) is type(said) and level == said:
                return level
        for level in column.levels:
            if str(jsonable(column, level)) == str(said):
                return level
        levels = [str(level) for level in column.levels]
        raise InputError(f"{said!r:.60} is no value of {column.name!r}. {near(str(said), levels)}Its values: {some(levels)}.")
    assert isinstance(column, NumberColumn)
    return moment_in(column, said) if column.is_moment else number_in(column, said)


def moment_in(column: NumberColumn, said: Any) -> Any:
    try:
        instant = dt.datetime.fromisoformat(str(said))
    except ValueError:
        raise InputError(f"{said!r:.60} is no value of {column.name!r}; expected a date such as 2024-01-31.") from None
    if column.unit == "day":
        return instant.date()
    return instant.astimezone(dt.UTC).replace(tzinfo=None) if instant.tzinfo else instant


def number_in(column: Column, said: Any) -> int | float:
    try:
        number = float(said) if isinstance(said, str) else said
        if isinstance(number, int | float) and not isinstance(number, bool) and isfinite(number):
            whole = isinstance(column, NumberColumn) and column.unit == "whole" and float(number).is_integer()
            return int(number) if whole else number
    except (ValueError, OverflowError):
        pass
    raise InputError(f"{said!r:.60} is no value of {column.name!r}; expected a number.")


def jsonable(column: Column | None, value: Any) -> Any:
    """A value as JSON can hold it: null for a gap, text for what is neither number nor truth value."""
    value = plain(column, value)
    if value is None or value != value:
        return None
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)


def described(columns: Iterable[Column], describe: Document) -> list[Document]:
    """The columns of a model for somebody who builds a question: kind, levels or ends, step."""
    by_name = {one["name"]: one for one in describe["columns"]}
    found = []
    for column in columns:
        about = by_name[column.name]
        line: Document = {"name": column.name, "kind": about["kind"]}
        if isinstance(column, CategoryColumn):
            line |= {"levels": [jsonable(column, v) for v in column.levels], "ordered": column.holds_numbers}
        elif isinstance(column, NumberColumn):
            line |= {"low": jsonable(column, about.get("low")), "high": jsonable(column, about.get("high"))}
            line |= {"step": about["precision"], "unit": column.unit}
        found.append(line)
    return found


# The same in Python and on the command line


def python_call(model: str, call: str) -> str:
    """A program of a few lines: what is imported, the model loaded, the call."""
    names = ["AnyOrder", *(name for name in ("Between", "OneOf") if f"{name}(" in call)]
    imports = ["import datetime", ""] if "datetime." in call else []
    imports += [f"from anyorder import {', '.join(names)}"]
    imports += ["from decimal import Decimal"] if "Decimal(" in call else []
    return "\n".join([*imports, "", f"model = AnyOrder.load({model!r})", call])


def command(*words: str) -> str:
    """A line for a shell."""
    return shlex.join(words)


def question(targets: Iterable[str], given: Mapping[str, Any], columns: Iterable[Column]) -> str:
    """As `anyorder ask` reads it: targets | what is known."""
    known = evidence(given, columns)
    return ", ".join(targets) + (f" | {known}" if known else "")


def evidence(given: Mapping[str, Any], columns: Iterable[Column]) -> str:
    by_name = {column.name: column for column in columns}
    return ", ".join(part(by_name[name], value) for name, value in given.items())


def part(column: Column, value: Any) -> str:
    """One condition, as it is typed."""
    name, text = word(column.name), lambda one: "" if one is None else word(str(jsonable(column, one)))
    if isinstance(value, Between):
        return f"{name}={text(value.low)}..{text(value.high)}"
    if isinstance(value, OneOf):
        return f"{name} in ({', '.join(map(text, value.values))})"
    return f"{name}={text(value)}"


def word(text: str) -> str:
    """In quotes, unless nobody could misread it."""
    return text if fullmatch(r"[\w+-]+(\.\w+)?", text) and text != "in" else '"' + text.replace('"', '""') + '"'
