"""A table to learn and the rows drawn from it, as two npz files. Needs numpy only, so that it runs in every environment."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.float64]


class Task(NamedTuple):
    """Learn from `train` and draw at most `rows`, in about so many CPU seconds. NaN is a gap, categories are codes."""

    train: Cells
    levels: NDArray[np.int64]  # per column: how many codes a category has, 0 for a number
    rows: int
    seconds: float
    seed: int


class Answer(NamedTuple):
    """Rows without gaps, how many it learned from, and CPU seconds."""

    rows: Cells
    learned: int
    fit_seconds: float
    draw_seconds: float


class Fitted(NamedTuple):
    draw: Callable[[int], Cells]
    learned: int
    batch: int  # rows that are drawn at once; between batches one looks at the clock


def save_task(task: Task, path: Path) -> None:
    np.savez(path, **task._asdict())


def load_task(path: Path) -> Task:
    with np.load(path) as file:
        return Task(file["train"], file["levels"], int(file["rows"]), float(file["seconds"]), int(file["seed"]))


def load_answer(path: Path) -> Answer:
    with np.load(path) as file:
        return Answer(file["rows"], int(file["learned"]), float(file["fit_seconds"]), float(file["draw_seconds"]))


def serve(fit: Callable[[Task], Fitted]) -> None:
    """The main of every script: IN.npz OUT.npz. It draws in batches, one at least, until there are enough or time is over."""
    source, destination = map(Path, sys.argv[1:])
    task = load_task(source)
    start = time.process_time()
    fitted = fit(task)
    fit_seconds = time.process_time() - start
    drawn = [fitted.draw(min(fitted.batch, task.rows))]
    while sum(map(len, drawn)) < task.rows and time.process_time() - start < task.seconds:
        drawn.append(fitted.draw(min(fitted.batch, task.rows - sum(map(len, drawn)))))
    rows = np.concatenate(drawn)
    assert np.isfinite(rows).all(), f"{(~np.isfinite(rows)).sum()} cells were left empty"
    spent = time.process_time() - start - fit_seconds
    np.savez(destination, **Answer(rows, fitted.learned, fit_seconds, spent)._asdict())
