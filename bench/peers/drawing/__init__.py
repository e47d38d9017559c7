"""Who can draw rows but not be asked about ranges and sets: it learns a table, and one counts among the rows it draws."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .. import run
from .exchange import Answer, Cells, Task, load_answer, save_task

PEERS = ("lace", "utrees")  # the names of their scripts and of their environments
FEW = 20  # numbers with at most so many different values are categories to them, which suits them best
PATIENCE = 3.0  # times the seconds that are allowed, until a peer is stopped


class Drawn(NamedTuple):
    """The rows that a peer drew, as a table like the one it learned, and what they cost."""

    table: pd.DataFrame
    learned: int  # rows
    fit_seconds: float
    draw_seconds: float


def drawn_rows(peer: str, table: pd.DataFrame, rows: int, seconds: float, seed: int) -> Drawn | str:
    """At most so many rows, in about so many CPU seconds; or why there are none."""
    varying = table[[name for name in table.columns if table[name].nunique() > 1]]  # Lace refuses others
    cells, levels = as_cells(varying)
    answer = ask(peer, Task(cells, levels, rows, seconds, seed))
    if isinstance(answer, str):
        return answer
    drawn = as_table(answer.rows, varying)
    for name in table.columns.difference(varying.columns):
        drawn[name] = table[name].mode().iloc[0]
    return Drawn(drawn[list(table.columns)], answer.learned, answer.fit_seconds, answer.draw_seconds)


def ask(peer: str, task: Task) -> Answer | str:
    """From a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        source, answer = Path(folder, "in.npz"), Path(folder, "out.npz")
        save_task(task, source)
        why = run(f"drawing.{peer}", peer, [source, answer], PATIENCE * task.seconds)
        return load_answer(answer) if answer.exists() else why


def as_cells(table: pd.DataFrame) -> tuple[Cells, NDArray[np.int64]]:
    """Numbers as they are, categories as codes; and how many codes each column has, 0 for a number."""
    cells, levels = np.empty(table.shape), np.zeros(table.shape[1], dtype=np.int64)
    for i, name in enumerate(table.columns):
        if is_coded(table[name]):
            values = values_of(table[name])
            codes = pd.Categorical(table[name], categories=values).codes
            cells[:, i], levels[i] = np.where(codes < 0, np.nan, codes), len(values)
        else:
            cells[:, i] = table[name].to_numpy(dtype=np.float64)
    return cells, levels


def as_table(cells: Cells, like: pd.DataFrame) -> pd.DataFrame:
    """Back again; every number becomes the nearest one that was learned, so that single values can be counted."""
    columns = {}
    for name, column in zip(like.columns, cells.T, strict=True):
        values = values_of(like[name])
        places = column.round().astype(int) if is_coded(like[name]) else nearest(column, values.astype(np.float64))
        columns[name] = values[places]
    return pd.DataFrame(columns)


def is_coded(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column) or column.nunique() <= FEW


def values_of(column: pd.Series) -> NDArray[np.generic]:
    """All that occur, sorted."""
    return np.array(sorted(column.dropna().unique()))


def nearest(column: Cells, values: Cells) -> NDArray[np.int64]:
    """The place of the nearest of some sorted values."""
    middles = (values[1:] + values[:-1]) / 2
    return np.searchsorted(middles, column)
