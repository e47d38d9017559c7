"""A table of any dataframe library and (rows, variables) numbers: kinds and precision found, gaps kept, dtypes restored."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import narwhals as nw
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import FormatError, InputError, Note
from ...schema import Schema, Variable
from .columns import (
    CategoryColumn,
    Column,
    NumberColumn,
    Numbers,
    column_from_json,
    holds_numbers,
    level_from_json,
    level_to_json,
    read_moment,
    read_numbers,
)
from .dataframes import Frame, Sentinels, Series, as_frame, column_of, given_back, is_array, is_gap, put_cells, shortlist
from .kinds import CATEGORY, COLUMN_KIND_NAMES, LEAVE_OUT, LINEAR, LOG, NUMBER, kind_of_numbers, kind_of_text
from .log_columns import as_learned
from .written_cells import Form, Read, find_form, is_blank, is_text, meant, read_cells, writer

Shares = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Finding:
    """What a column was taken for, and why."""

    name: str
    column: Column | None  # None if it is left out
    why: str  # "has ..." or "is ..."
    constant: Any = None  # its value, if it has only one
    guessed: bool = False  # left out because of what its values look like, and could be modelled all the same
    strays: Mapping[str, int] = field(default_factory=dict)  # texts in a column of numbers
    distinct: int = 0
    gaps: int = 0

    @property
    def kind(self) -> str:
        return self.column.kind if self.column else LEAVE_OUT

    @property
    def label(self) -> str:
        """The kind in words."""
        if isinstance(self.column, NumberColumn):
            return {"whole": "whole number", "day": "date", "instant": "date"}.get(self.column.unit, "number")
        return "left out" if self.column is None else self.column.kind

    def note(self) -> Note | None:
        """What whoever trains a model should know of it."""
        if self.guessed:
            other = NUMBER if "whole number" in self.why or "counts up" in self.why else CATEGORY
            advice = f"To model it all the same: kinds={{{self.name!r}: {other!r}}}."
            return Note(f"Column {self.name!r} is left out of the model: it {self.why}.", advice, None)
        form = getattr(self.column, "form", ())
        if form and Form(*form) != Form():
            return note_of_form(self.name, Form(*form))
        return None


@final
@dataclass(frozen=True)
class TableEncoder:
    """What was learned about a table: its modelled columns, what was left out and why, and what is always the same."""

    columns: tuple[Column, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()  # all columns of the table, in order
    constants: Mapping[str, Any] = field(default_factory=dict)  # of those that are left out because they have one value
    sentinels: Sentinels = Sentinels()

    @classmethod
    def learn(cls, table: Frame, kinds: Mapping[Any, str] | None = None, na: Any = None) -> "TableEncoder":
        """Find the kind of every column; `kinds` overrules (see `kinds.KINDS`); `na` stands for gaps."""
        return cls.of(look_at(table, kinds, na), len(as_frame(table)), Sentinels.of(na))

    @classmethod
    def of(cls, found: list[Finding], rows: int, sentinels: Sentinels = Sentinels()) -> "TableEncoder":
        columns = tuple(one.column for one in found if one.column)
        left_out = {one.name: one.why for one in found if not one.column}
        if not columns and not left_out:
            raise InputError(f"There is nothing to model: 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required.")
        if not columns:
            few = f" It has only {rows} sample{'s' if rows != 1 else ''} (rows)." if rows < 2 else ""
            reasons = "; ".join(f"{name!r} {reason}" for name, reason in left_out.items())
            raise InputError(f"There is nothing to model in this table: {reasons}.{few}")
        constants = {one.name: one.constant for one in found if one.constant is not None}
        return cls(columns, left_out, tuple(one.name for one in found), constants, sentinels)

    @property
    def schema(self) -> Schema:
        return Schema(tuple(Variable(column.name, column.domain) for column in self.columns))

    def encode(self, table: Frame) -> tuple[Tensor, Tensor]:
        """(x, present) of the modelled columns, in their order; columns that are missing are all gaps, others are ignored."""
        frame = as_frame(table, names=self.names)
        missing = [column.name for column in self.columns if column.name not in frame.columns]
        if len(missing) == len(self.columns):
            raise InputError(
                f"The table has none of the model's columns: it has {shortlist(frame.columns)}, "
                f"the model knows {shortlist(c.name for c in self.columns)}."
            )
        x = np.full((len(frame), len(self.columns)), np.nan)
        for i, column in enumerate(self.columns):
            if column.name not in missing:
                x[:, i] = encode_column(column, self.sentinels.without(frame[column.name]))
        values = torch.tensor(x, dtype=torch.float32)
        return values, values.isfinite()

    def log_shares(self, table: Frame) -> Shares:
        """(rows, variables): log of the share that a rare value has of all rare values of its column; 0 for all others."""
        frame = as_frame(table, names=self.names)
        found = np.zeros((len(frame), len(self.columns)))
        for i, column in enumerate(self.columns):
            if isinstance(column, CategoryColumn) and column.rare and column.name in frame.columns:
                found[:, i] = column.log_shares(frame[column.name])
        return found

    def fill(self, table: Frame, x: Tensor, cells: Tensor, rng: np.random.Generator | None = None) -> Frame:
        """The table with those of these cells that are gaps filled; what holds a value keeps it.

        Gaps are empty cells, sentinels, and in a column of numbers texts that say "no value". A value that was not seen in
        fit, or is no number, is a gap for the model, and stays what it is in the table. Rare values are drawn with `rng`.
        Gaps of a column that was always the same are filled with its value.
        """
        frame, filled = as_frame(table, names=self.names), []
        there = set(frame.columns)
        for i, column in enumerate(self.columns):
            if column.name not in there or not cells[:, i].any():
                continue
            series = frame[column.name]
            rows = (cells[:, i].numpy() & self.gaps(column, series)).nonzero()[0].tolist()
            if rows:
                filled.append(put_cells(series, rows, cells_of(column, series, x[rows, i].double().numpy(), rng)))
        for name, value in self.constants.items():
            if name in there and (rows := (self.sentinels.gaps(frame[name])).nonzero()[0].tolist()):
                filled.append(put_cells(frame[name], rows, [value] * len(rows)))
        return given_back(frame.with_columns(*filled) if filled else frame, table)

    def gaps(self, column: Column, series: Series) -> NDArray[np.bool_]:
        """Which cells of a column are gaps, and are filled."""
        empty = self.sentinels.gaps(series)
        if is_text(series) and means_numbers(column):
            empty |= np.array([is_blank(cell) for cell in series.to_list()], dtype=bool)
        return empty

    def says_nothing(self, name: str, value: Any) -> bool:
        """Whether one value is a gap of the column: None, NaN, a sentinel, or among numbers a text such as n.a."""
        if value is None or value != value or self.sentinels.stands_for_gap(name, value):
            return True
        return is_blank(value) and any(column.name == name and means_numbers(column) for column in self.columns)

    def frame(
        self,
        x: Tensor,
        like: Frame,
        exactly: Mapping[str, Any] | None = None,
        rng: np.random.Generator | None = None,
    ) -> Frame:
        """New rows in the container of another table, with its dtypes; values that are known `exactly` stay as they are.

        Numbers that were written as text come as numbers.
        """
        old = as_frame(like, names=self.names)
        exactly = {str(name): value for name, value in (exactly or {}).items()}
        data: dict[str, list[Any]] = {}
        for column, places in zip(self.columns, x.double().numpy().T, strict=True):
            given = column.name in exactly
            data[column.name] = [exactly[column.name]] * len(x) if given else model_cells(column, places, rng)
        made = nw.from_dict(data, backend=old.implementation)
        known = (
            [] if is_array(like) else [c.name for c in self.columns if c.name in old.columns and not came_as_text(c, old[c.name])]
        )
        return given_back(made.with_columns(*(column_of(data[name], old[name]) for name in known)), like)

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [column.to_json() for column in self.columns],
            "left_out": dict(self.left_out),
            "names": list(self.names),
            **({"constants": {k: level_to_json(v) for k, v in self.constants.items()}} if self.constants else {}),
            **({"sentinels": self.sentinels.to_json()} if self.sentinels else {}),
        }

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> "TableEncoder":
        try:
            columns = tuple(column_from_json(c) for c in item["columns"])
            constants = {name: level_from_json(value) for name, value in item.get("constants", {}).items()}
            sentinels = Sentinels.from_json(item.get("sentinels", []))
            return cls(columns, dict(item["left_out"]), tuple(item["names"]), constants, sentinels)
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            raise FormatError(f"The table's description cannot be read ({error!r}). The file is damaged.") from error


def look_at(table: Frame, kinds: Mapping[Any, str] | None = None, na: Any = None) -> list[Finding]:
    """What every column is taken for."""
    frame, sentinels = as_frame(table), Sentinels.of(na)
    kinds = {str(name): kind for name, kind in (kinds or {}).items()}
    for name, kind in kinds.items():
        check_kind(name, kind, frame.columns)
    sentinels.check(frame.columns)
    return [look_at_column(name, sentinels.without(frame[name]), kinds.get(name)) for name in frame.columns]


def look_at_column(name: str, series: Series, kind: str | None) -> Finding:
    gaps = int(is_gap(series).sum())
    if kind == LEAVE_OUT:
        return Finding(name, None, "was asked to be left out", gaps=gaps)
    form = find_form(series, 0.0 if kind == NUMBER else 0.9) if is_text(series) and kind != CATEGORY else None
    if form is None:
        return replace(learn_column(name, series, kind), gaps=gaps)
    found = read_cells(series, form)
    gaps = int(is_gap(found.series).sum())
    learned = replace(learn_column(name, found.series, kind), gaps=gaps, strays=dict(found.strays))
    if isinstance(learned.column, NumberColumn):
        return replace(learned, column=replace(learned.column, form=tuple(form)))
    if found.strays and isinstance(learned.column, CategoryColumn):
        return learned  # codes, and texts that are none
    return replace(learn_column(name, series, kind), gaps=int(is_gap(series).sum()))


def learn_column(name: str, series: Series, kind: str | None) -> Finding:
    """The column, or why it is left out."""
    try:
        present = [v for v in series.drop_nulls().unique().to_list() if v == v]
        hash(tuple(present))
    except (TypeError, ValueError, NotImplementedError):
        return Finding(name, None, f"holds {series.dtype}, no single values")
    if len(present) < 2:
        return alike_texts(name, present)
    moments = series.dtype.is_temporal() and series.dtype not in (nw.Duration, nw.Time)
    numbers = holds_numbers(series) and (moments or not series.dtype.is_temporal())
    if kind in (NUMBER, LOG, LINEAR) and not numbers:
        raise InputError(f"kinds[{name!r}] is {kind!r}, but the column holds {series.dtype}. Convert it to numbers first.")
    distinct = len(present)
    if numbers and kind != CATEGORY:
        values = read_numbers(series.drop_nulls())
        if len(np.unique(values)) == 1:
            return Finding(name, None, "varies by less than a millisecond", distinct=distinct)
        what, why = NUMBER, "holds moments"
        if not series.dtype.is_temporal() and series.dtype != nw.Object and np.isfinite(values[~np.isnan(values)]).all():
            what, why = kind_of_numbers(name, values[~np.isnan(values)], series.dtype.is_integer())
    else:
        what, why = kind_of_text(distinct, len(series) - int(is_gap(series).sum()))
        what = CATEGORY if series.dtype == nw.Boolean else what
    if kind is not None:
        scaled = kind in (LOG, LINEAR)
        what, why = (NUMBER, f"was asked to be learned on a {kind} scale") if scaled else (kind, f"was asked to be a {kind}")
    if what == LEAVE_OUT:
        return Finding(name, None, why, guessed=True, distinct=distinct)
    if what == NUMBER:
        return Finding(name, as_learned(NumberColumn.learn(name, series), series, kind), why, distinct=distinct)
    return category(name, series, present, why)


def alike_texts(name: str, present: list[Any]) -> Finding:
    """The finding of a column with one value or none; what says "no value" is none."""
    if not present or is_blank(present[0]):
        return Finding(name, None, "is empty")
    try:
        level_to_json(present[0])
    except TypeError:
        return Finding(name, None, f"is always {present[0]!r}", distinct=1)
    return Finding(name, None, f"is always {present[0]!r}", constant=present[0], distinct=1)


def category(name: str, series: Series, present: list[Any], why: str) -> Finding:
    try:
        for level in present:
            level_to_json(level)
    except TypeError as error:
        return Finding(name, None, f"holds values that {error}: convert them to text or numbers", distinct=len(present))
    return Finding(name, CategoryColumn.learn(name, series), why, distinct=len(present))


def model_cells(column: Column, places: Numbers, rng: np.random.Generator | None) -> list[Any]:
    """Values that may stand in the table."""
    if isinstance(column, NumberColumn):
        return column.cells(places)
    return column.decode(places, rng) if isinstance(column, CategoryColumn) else column.decode(places)


def cells_of(column: Column, series: Series, places: Numbers, rng: np.random.Generator | None) -> list[Any]:
    """The same, as the cells of this very column are written."""
    cells = model_cells(column, places, rng)
    if not is_text(series):
        return cells
    if isinstance(column, NumberColumn) and not (column.unit == "day" and series.dtype == nw.Object):
        return [*map(writer(series, form_of(column), column.decimals), cells)]
    if isinstance(column, CategoryColumn) and column.holds_numbers:
        return [*map(writer(series, Form(), max(map(decimals_of, column.levels))), cells)]
    return cells


def decimals_of(level: Any) -> int:
    return len(f"{float(level):.9f}".rstrip("0").partition(".")[2])


def means_numbers(column: Column) -> bool:
    return isinstance(column, NumberColumn) or (isinstance(column, CategoryColumn) and column.holds_numbers)


def came_as_text(column: Column, series: Series) -> bool:
    """Numbers or moments in a column of text."""
    return series.dtype == nw.String and means_numbers(column)


def form_of(column: NumberColumn) -> Form:
    return Form(*column.form) if column.form else Form(date="Y-M-D") if column.is_moment else Form()


def encode_column(column: Column, series: Series) -> Numbers:
    if is_text(series) and isinstance(column, NumberColumn) and not holds_numbers(series):
        return column.encode(as_numbers(column, series))
    if is_text(series) and isinstance(column, CategoryColumn) and column.holds_numbers and has_texts(series):
        found = read_cells(series, Form())
        warn_of_strays(column.name, found, "numbers")
        series = found.series
    if isinstance(column, NumberColumn) and not holds_numbers(series):
        raise InputError(f"Column {column.name!r} held numbers in fit and holds {series.dtype} now. Convert it first.")
    codes = column.encode(series)
    if isinstance(column, CategoryColumn) and np.isnan(codes).any() and (unseen := column.unseen(series)):
        shown = shortlist(sorted(map(repr, unseen)))
        warnings.warn(f"Column {column.name!r} has values not seen in fit, taken as gaps: {shown}.", stacklevel=4)
    return codes


def has_texts(series: Series) -> bool:
    return any(isinstance(cell, str) for cell in series.unique().to_list())


def as_numbers(column: NumberColumn, series: Series) -> Series:
    """Text, or objects, as the numbers or instants that they mean; texts that mean none are gaps."""
    form = form_of(column)
    found = read_cells(series, form)
    if found.series.drop_nulls().len() == 0 and not found.blank.all() and series.drop_nulls().len():
        raise InputError(
            f"Column {column.name!r} held {form.says} in fit and holds {series.dtype} now, such as "
            f"{next(iter(found.strays))!r}. Convert it first."
        )
    warn_of_strays(column.name, found, form.says)
    if column.unit == "day":
        days = [None if cell is None else read_moment("day", cell) for cell in found.series.to_list()]
        return nw.new_series(series.name, days, nw.Float64(), backend=series.implementation)
    return found.series


def warn_of_strays(name: str, found: Read, what: str) -> None:
    """About texts in a column of numbers or dates: which are gaps, and which are read although they are written otherwise."""
    advice = f"If they are values, fit with kinds={{{name!r}: 'category'}}."
    command_line = f"If they are values, fit with --kind {name}=category."
    if found.strays:
        count, shown = found.strays.total(), shortlist(map(repr, found.strays))
        are = (
            f"cells of {name} are not {what}: taken as gaps"
            if count > 1
            else f"cell of {name} is not a {what[:-1]}: taken as a gap"
        )
        warnings.warn(Note(f"{count} {are} ({shown}).", advice, command_line), stacklevel=6)
    if found.odd:
        shown = shortlist(f"{text!r} is {value:g}" for text, value in found.odd.items())
        warnings.warn(f"Cells of {name} with another decimal mark are read all the same: {shown}.", stacklevel=6)


def note_of_form(name: str, form: Form) -> Note:
    if form.date:
        text = f"Column {name!r} is text and read as dates" + (f", {form.date}." if form.date != "Y-M-D" else ".")
    else:
        marks = [f"decimal mark {form.decimal!r}"]
        marks += [f"thousands mark {form.thousands!r}"] if form.thousands else []
        marks += [f"written as {form.unit!r}"] if form.unit != "#" else []
        text = f"Column {name!r} is text and read as numbers: {', '.join(marks)}."
    advice = "If it is not, fit with kinds={" + repr(name) + ": 'category'}."
    return Note(text, advice, f"If it is not, fit with --kind {name}=category.")


def tell_of_gaps(encoder: TableEncoder, filled: Frame) -> None:
    """One note about all cells that are gaps still, with the reason."""
    frame = as_frame(filled, names=encoder.names)
    modelled = {column.name for column in encoder.columns}
    left = {name: int(encoder.sentinels.gaps(frame[name]).sum()) for name in frame.columns if name not in modelled}
    told = []
    for name, count in left.items():
        if count:
            reason = f"it {encoder.left_out[name]}" if name in encoder.left_out else "the model does not know the column"
            told.append(f"{count} of {name} ({reason})")
    if told:
        total = sum(left.values())
        warnings.warn(f"{total} gap{'s' if total > 1 else ''} stay: {', '.join(told)}.", stacklevel=3)


def check_kind(name: str, kind: str, names: list[str]) -> None:
    if name not in names:
        raise InputError(f"kinds names a column {name!r} that the table does not have; it has {shortlist(names)}.")
    if kind not in COLUMN_KIND_NAMES:
        raise InputError(f"kinds[{name!r}] is {kind!r}; expected 'category', 'number', 'log', 'linear' or 'leave out'.")


def encode_value(column: Column, value: Any, to_whole: Callable[[Any], Any] = np.round) -> float:
    """One value of a column in model space; a number off the lattice goes to the point that `to_whole` chooses."""
    try:
        if isinstance(column, CategoryColumn):
            code = column.code_of(value)
        else:
            assert isinstance(column, NumberColumn)
            value = meant(value, form_of(column)) if isinstance(value, str) and (column.form or not column.is_moment) else value
            number = read_moment(column.unit, value) if column.is_moment else float(value)
            code = column.place(number, to_whole) if math.isfinite(number) else math.nan
    except (TypeError, ValueError, AttributeError, OverflowError, nw.exceptions.NarwhalsError) as error:
        raise InputError(f"{value!r} is no value of column {column.name!r}, which {column.says()}.") from error
    if math.isnan(code):
        raise InputError(f"{value!r} is no value of column {column.name!r}, which {column.says()}.")
    return code
