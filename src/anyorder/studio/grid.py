"""A table cell by cell: gaps and their distributions, what was filled in, what is surprising; and the table as a file."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..modalities.tables.columns import Column
from ..modalities.tables.table_files import in_bytes
from .asking import answer, columns_of, draw_from
from .jobs import Job
from .wording import column_named, command, evidence, jsonable, python_call, question, value_of
from .workspace import Dataset, OpenModel, Workspace

Document = dict[str, Any]
MOST_ROWS_SENT, ROWS_AT_ONCE, MOST_ODD = 500, 2000, 5000
ODD_CHANCE = 0.001
WAYS = ("accepted", "drawn", "typed")


def grid_rows(space: Workspace, data: str, start: int = 0, count: int = 100) -> Document:
    """Some rows of a table as they are now; null is a gap. Cells that were filled in or are surprising are named."""
    found = table_of(space, data)
    if start < 0 or not 1 <= count <= MOST_ROWS_SENT:
        raise InputError(f"Got start={start}, count={count}; expected start from 0 and count from 1 to {MOST_ROWS_SENT}.")
    with found.lock:
        part = found.X.iloc[start : start + count]
        columns = [[jsonable(None, cell) for cell in cells_of(part[name])] for name in part]
        places = [(row, str(name)) for row in range(start, start + len(part)) for name in part]
        marks = [
            {"row": cell[0], "column": cell[1], **said[cell]}
            for said in (found.odd, found.filled)
            for cell in places
            if cell in said
        ]
        return {
            "data": data,
            "name": found.name,
            "rows": len(found.X),
            "columns": [str(name) for name in found.X],
            "start": start,
            "cells": [list(row) for row in zip(*columns, strict=True)],
            "marks": marks,
            "gaps": int(found.X.isna().sum().sum()),
            "filled": len(found.filled),
            "odd": len(found.odd),
        }


def cells_of(series: Any) -> list[Any]:
    """The values of a column of pandas, None for gaps."""
    missing = series.isna().tolist()
    return [None if gap else value for value, gap in zip(series.tolist(), missing, strict=True)]


def table_of(space: Workspace, data: str) -> Dataset:
    found = space.data(data)
    if not hasattr(found.X, "iloc"):
        raise InputError(f"{found.name} is {found.modality.what}, and has no cells to look at one by one.")
    return found


def rest_of_row(kept: OpenModel, found: Dataset, row: int, column: str, verb: str = "conditional") -> tuple[Column, Document]:
    """The column of a cell, and what is known of the rest of its row."""
    columns = columns_of(kept, verb)
    if not 0 <= row < len(found.X):
        raise InputError(f"The table has no row {row}; its rows are 0 to {len(found.X) - 1}.")
    asked = column_named(columns, column)
    with found.lock:
        values = {name: cells_of(found.X[name].iloc[row : row + 1])[0] for name in found.X}
    others = {one.name: one for one in columns if one.name != column}
    known: Document = {}
    for name, value in values.items():
        if name in others and value is not None:
            with suppress(InputError):  # what training never saw says nothing
                known[name] = value_of(others[name], jsonable(None, value))
    return asked, known


def cell(space: Workspace, model: str, data: str, row: int, column: str) -> Document:
    """The distribution of one cell given the rest of its row."""
    kept, found = space.model(model), table_of(space, data)
    asked, known = rest_of_row(kept, found, row, column)
    columns = kept.model.encoder_.columns
    now = cells_of(found.X[column].iloc[row : row + 1])[0] if column in found.X else None
    return {
        "row": row,
        "column": column,
        "now": jsonable(None, now),
        "given": evidence(known, columns),
        **answer(kept, asked, known),
        "python": python_call(kept.name, f"model.conditional({known!r}, {column!r})"),
        "command": command("anyorder", "ask", kept.name, question([column], known, columns)),
    }


def draw_cell(space: Workspace, model: str, data: str, row: int, column: str) -> Document:
    """A value for a cell, drawn given the rest of its row, and written there."""
    kept, found = space.model(model), table_of(space, data)
    asked, known = rest_of_row(kept, found, row, column)
    value = jsonable(asked, draw_from(kept.model.conditional(known, column)))
    return set_cell(space, model, data, row, column, value, "drawn")


def set_cell(space: Workspace, model: str, data: str, row: int, column: str, value: Any, how: str = "typed") -> Document:
    """A value written into a cell; null makes it what it was at first."""
    kept, found = space.model(model), table_of(space, data)
    asked, _ = rest_of_row(kept, found, row, column)
    if column not in found.X:
        raise InputError(f"The table has no column {column!r:.60}.")
    if how not in WAYS:
        raise InputError(f"Got how={how!r:.20}; expected one of {', '.join(WAYS)}.")
    place = list(found.X).index(column)
    with found.lock:
        if found.X is found.original:
            found.X = found.original.copy()
        if value is None:
            found.X.iat[row, place] = found.original.iat[row, place]
            found.filled.pop((row, column), None)
        else:
            write(found.X, row, place, value_of(asked, value))
            found.filled[row, column] = {"how": how}
        found.odd.pop((row, column), None)
        return {"row": row, "column": column, "value": jsonable(None, cells_of(found.X.iloc[row : row + 1, place])[0])}


def write(frame: Any, row: int, place: int, value: Any) -> None:
    name = frame.columns[place]
    try:
        if isinstance(value, float) and frame.dtypes.iloc[place].name == "Int64":
            if not value.is_integer():
                frame[name] = frame[name].astype("float64")
            else:
                value = int(value)
        frame.iat[row, place] = value
    except (TypeError, ValueError) as error:
        raise InputError(f"{value!r} does not fit in column {name!r} of the table, which holds {frame[name].dtype}.") from error


def restore(space: Workspace, data: str) -> Document:
    """The table as it was when it was opened."""
    found = table_of(space, data)
    with found.lock:
        found.X, found.filled, found.odd = found.original, {}, {}
    return {"data": data, "gaps": int(found.X.isna().sum().sum())}


def fill_all(space: Workspace, model: str, data: str) -> Document:
    """Fill every gap with its best guess, and say between which values 90 % of a number lie; as a job."""
    kept, found = space.model(model), table_of(space, data)
    columns_of(kept, "transform")
    python = python_call(kept.name, f"table = pandas.read_csv({found.name!r})\nmodel.transform(table)")
    shown = {
        "python": f"import pandas\n{python}",
        "command": command("anyorder", "impute", kept.name, found.name, "-o", "full.csv"),
    }

    def work(job: Job) -> Document:
        table = found.X
        parts = list(in_parts(job, table, lambda rows: (kept.model.transform(rows), *kept.model.intervals(rows))))
        filled, low, high = (joined([part[which] for part in parts]) for which in range(3))
        new = table.isna().to_numpy() & ~filled.isna().to_numpy()
        marks = {
            (int(row), str(table.columns[place])): {"how": "accepted", **between(low, high, int(row), int(place))}
            for row, place in zip(*new.nonzero(), strict=True)
        }
        with found.lock:
            if found.X is not table:
                raise InputError("The table was changed while its gaps were filled. Fill them again.")
            found.X, found.filled = filled, found.filled | marks
        stay = int(filled.isna().sum().sum())
        return {"data": data, "filled": len(marks), "gaps": stay, **shown}

    return space.jobs.start(f"Fill the gaps of {found.name}", work).document()


def between(low: Any, high: Any, row: int, place: int) -> Document:
    """The ends of the interval of a cell, if it is a number."""
    ends = [jsonable(None, cells_of(end.iloc[row : row + 1, place])[0]) for end in (low, high)]
    return {} if None in ends else {"low": ends[0], "high": ends[1]}


def surprises(space: Workspace, model: str, data: str) -> Document:
    """Find the cells that do not fit the rest of their rows, the oddest first; as a job."""
    kept, found = space.model(model), table_of(space, data)
    columns = {column.name: column for column in columns_of(kept, "anomalies")}
    python = python_call(kept.name, f"table = pandas.read_csv({found.name!r})\nmodel.anomalies(table).to_frame()")
    shown = {"python": f"import pandas\n{python}", "command": command("anyorder", "anomalies", kept.name, found.name)}

    def work(job: Job) -> Document:
        lines = list[Document]()
        starts = iter(range(0, len(found.X), ROWS_AT_ONCE))
        for part in in_parts(job, found.X, lambda rows: kept.model.anomalies(rows).lines(ODD_CHANCE, MOST_ODD)):
            start = next(starts)
            lines += [line | {"row": line["row"] + start} for line in part]
        lines.sort(key=lambda line: (line["chance"], line["probability"]))
        told = [{name: jsonable(columns[line["column"]], value) for name, value in line.items()} for line in lines[:MOST_ODD]]
        with found.lock:
            found.odd = {(one["row"], one["column"]): {"chance": one["chance"], "why": one["why"]} for one in told}
        return {"data": data, "odd": len(lines), "top": told[:50], **shown}

    return space.jobs.start(f"Look for surprising cells in {found.name}", work).document()


def in_parts(job: Job, table: Any, function: Any) -> Any:
    """The function of some thousand rows at a time, so that the job can be watched and cancelled."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        job.tell(done=start, of=len(table))
        yield function(table.iloc[start : start + ROWS_AT_ONCE])
    job.tell(done=len(table), of=len(table))


def joined(parts: list[Any]) -> Any:
    import pandas as pd

    return parts[0] if len(parts) == 1 else pd.concat(parts)


def export(space: Workspace, data: str) -> tuple[str, bytes]:
    """The table as it is now, as a csv file: its name and its content."""
    found = table_of(space, data)
    name = f"{Path(found.name).name.split('.')[0]}-filled.csv" if found.filled else f"{Path(found.name).name.split('.')[0]}.csv"
    with found.lock:
        return name, in_bytes(found.X, Path("table.csv"))
