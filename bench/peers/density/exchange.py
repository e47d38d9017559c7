"""Questions to a density model and its answers, as two npz files. Needs numpy only, so that it runs in every environment."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.float64]
Masks = NDArray[np.bool_]
POINTS = 16  # of the cell of a recorded number, to average a density over
FEW = 20  # numbers with at most so many different values may be taken for categories


class Task(NamedTuple):
    """Learn from `train`; then, for every question and test row, how likely are the targets given the given cells?

    NaN is a gap and never given or asked for. Categories are codes 0, 1, ...; numbers are multiples of their spacing.
    """

    train: Cells
    test: Cells
    levels: NDArray[np.int64]  # per column: how many codes a category has, 0 for a number
    spacing: Cells  # per column: the recorded precision of a number, 0 for a category
    given: Masks  # (question, row, column)
    target: Masks  # (question, row, column)
    seed: int


class Answer(NamedTuple):
    """Nats of every question and row, NaN where a method cannot answer, and what it cost."""

    nats: Cells  # (question, row)
    fit_seconds: float
    score_seconds: float


Score = Callable[[Masks, Masks], Cells]  # given and target of every row -> log of the mass of the targets


def save_task(task: Task, path: Path) -> None:
    np.savez(path, **task._asdict())


def load_task(path: Path) -> Task:
    with np.load(path) as file:
        arrays = {name: file[name] for name in Task._fields if name != "seed"}
        return Task(**arrays, seed=int(file["seed"]))


def save_answer(answer: Answer, path: Path) -> None:
    np.savez(path, **answer._asdict())


def load_answer(path: Path) -> Answer:
    with np.load(path) as file:
        return Answer(file["nats"], float(file["fit_seconds"]), float(file["score_seconds"]))


def serve(fit: Callable[[Task], Score], questions: int | None = None) -> None:
    """The main of every script: IN.npz OUT.npz. Only the first `questions` are asked. Seconds are of this process's CPU."""
    source, destination = map(Path, sys.argv[1:])
    task = load_task(source)
    start = time.process_time()
    score = fit(task)
    fitted = time.process_time()
    nats = np.full(task.target.shape[:2], np.nan)
    for i, (given, target) in enumerate(zip(task.given[:questions], task.target[:questions], strict=True)):
        nats[i] = -score(given, target)
    save_answer(Answer(nats, fitted - start, time.process_time() - fitted), destination)


# Density models: the mass of a recorded number is its density averaged over the cell it was rounded from, times the spacing


def spread_out(cells: Cells, task: Task, rng: np.random.Generator) -> Cells:
    """Every number somewhere in the cell that it was rounded from; categories as they are."""
    return cells + (rng.random(cells.shape) - 0.5) * task.spacing


def points(task: Task) -> Cells:
    """The test rows `POINTS` times (point, row, column), their numbers spread out."""
    return spread_out(np.repeat(task.test[None], POINTS, axis=0), task, np.random.default_rng([task.seed, 3]))


def mass(task: Task, log_density: Cells, target: Masks) -> Cells:
    """The log mass (row) from the log densities at the points (point, row)."""
    log_spacing = np.log(np.where(task.spacing > 0, task.spacing, 1.0))
    most = log_density.max(0)
    average: Cells = most + np.log(np.exp(log_density - most).mean(0))
    return average + (target * log_spacing).sum(1)


def few_as_codes(task: Task) -> Task:
    """Numbers with few different values become categories, which is what suits most peers best."""
    train, test = task.train.copy(), task.test.copy()
    levels, spacing = task.levels.copy(), task.spacing.copy()
    for i in np.flatnonzero(task.spacing > 0):
        known = np.unique(train[np.isfinite(train[:, i]), i])
        if len(known) <= FEW:
            train[:, i], test[:, i] = codes(train[:, i], known), codes(test[:, i], known)
            levels[i], spacing[i] = len(known), 0.0
    return task._replace(train=train, test=test, levels=levels, spacing=spacing)


def codes(column: Cells, known: Cells) -> Cells:
    return np.where(np.isin(column, known), np.searchsorted(known, column), np.nan)
