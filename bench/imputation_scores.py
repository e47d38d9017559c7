"""How good filled cells are: numbers in training standard deviations, categories by their share of hits."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Filled(NamedTuple):
    """What a method said about the hidden cells, cell by cell in one row of numbers, and what it cost."""

    truth: Cells  # (cell)
    draws: Cells  # (draw, cell)
    scale: Cells  # (cell), the training standard deviation of a number, 0 for a category
    mean: Cells | None  # (cell)
    pit: Cells | None  # (cell)
    nats: float | None  # per hidden cell
    fit_seconds: float
    ms_per_row_and_draw: float
    peak_mb: float
    left: int = 0  # cells that the method left empty and its script filled


class Scores(NamedTuple):
    """Of one table, mechanism, seed and method; None where there is nothing to score or no way to do it."""

    rmse_of_draws: float | None  # of their mean
    rmse: float | None  # of the best guess of those who say one, beside their draws or instead of them
    crps: float | None  # of the draws
    absolute_error: float | None  # of those who do not draw
    coverage: float | None
    covered_of: int  # cells that the coverage was counted on
    accuracy: float | None
    nats: float | None
    fit_seconds: float
    ms_per_row_and_draw: float
    peak_mb: float
    left: int  # cells that the method left empty and its script filled

    def by_name(self) -> dict[str, float | int | None]:
        """As results keep them."""
        found = {heading: getattr(self, name) for name, heading in HEADINGS.items()}
        return {name: value for name, value in found.items() if value is not None} | (
            {"left empty": self.left} if self.left else {}
        )


HEADINGS = {
    "rmse_of_draws": "rmse, mean of draws",
    "rmse": "rmse, best guess",
    "crps": "crps",
    "absolute_error": "absolute error",
}
HEADINGS |= {"coverage": "90 % interval covers", "covered_of": "cells covered of", "accuracy": "accuracy", "nats": "nats a cell"}
HEADINGS |= {"fit_seconds": "fit, s", "ms_per_row_and_draw": "ms a row and draw", "peak_mb": "peak MB"}


class HiddenColumn(NamedTuple):
    """A column that has gaps, in the rows where it has none: what they hold, and what a method draws when it is hidden."""

    truth: Cells  # (row)
    draws: Cells  # (draw, row)
    scale: float  # the training standard deviation of a number, 0 for a category
    missing: float  # the share of all rows with a gap here


class IScores(NamedTuple):
    """Of one table, mechanism, seed and method: the energy I-score and what it is the mean of."""

    iscore: float
    by_column: dict[str, float]
    fit_seconds: float
    ms_per_row_and_draw: float
    peak_mb: float

    def by_name(self) -> dict[str, float]:
        """As results keep them."""
        costs = {HEADINGS[name]: getattr(self, name) for name in ("fit_seconds", "ms_per_row_and_draw", "peak_mb")}
        return {"iscore": self.iscore, **self.by_column, **costs}


def score(filled: Filled) -> Scores:
    number = filled.scale > 0
    scale = filled.scale[number]
    truth, draws = filled.truth[number] / scale, filled.draws[:, number] / scale
    drawn, some = len(draws) > 1, bool(number.any())
    guess = filled.mean[number] / scale if filled.mean is not None else None if drawn else draws[0]
    return Scores(
        rmse_of_draws=rmse(draws.mean(0), truth) if some and drawn else None,
        rmse=rmse(guess, truth) if some and guess is not None else None,
        crps=float(crps(draws, truth).mean()) if some and drawn else None,
        absolute_error=float(np.abs(draws[0] - truth).mean()) if some and not drawn else None,
        coverage=coverage(filled, number) if some else None,
        covered_of=int(number.sum()) if filled.pit is None else int(np.isfinite(filled.pit).sum()),
        accuracy=accuracy(filled, ~number) if not number.all() else None,
        nats=filled.nats,
        fit_seconds=filled.fit_seconds,
        ms_per_row_and_draw=filled.ms_per_row_and_draw,
        peak_mb=filled.peak_mb,
        left=filled.left,
    )


def rmse(guess: Cells, truth: Cells) -> float:
    return float(np.sqrt(((guess - truth) ** 2).mean()))


def crps(draws: Cells, truth: Cells) -> Cells:
    """The fair estimate from k draws: unbiased for the distribution they come from, whatever k; one draw is a point,
    its score the error.

    E|X - y| - E|X - X'| / 2, the second mean over pairs of different draws. With sorted draws x_1 <= ... <= x_k,
    the sum of |x_i - x_j| over all i < j is the sum of (2i - k - 1) x_i.
    """
    k = len(draws)
    error = np.abs(draws - truth).mean(0)
    if k == 1:
        return np.asarray(error)
    weight = 2 * np.arange(1, k + 1) - k - 1
    return np.asarray(error - (weight[:, None] * np.sort(draws, axis=0)).sum(0) / (k * (k - 1)))


def coverage(filled: Filled, number: Mask, level: float = 0.9) -> float | None:
    """How many truths lie in the middle `level` of their distribution: exactly from the pit, else from the quantiles
    of the draws.
    """
    tail = (1 - level) / 2
    if filled.pit is not None:
        told = filled.pit[np.isfinite(filled.pit)]
        return float((np.abs(told - 0.5) <= level / 2).mean()) if len(told) else None
    if len(filled.draws) == 1:
        return None
    low, high = np.quantile(filled.draws[:, number], [tail, 1 - tail], axis=0)
    rounding = 1e-5 * filled.scale[number]  # some draw in float32
    inside = (low - rounding <= filled.truth[number]) & (filled.truth[number] <= high + rounding)
    return float(inside.mean())


def accuracy(filled: Filled, category: Mask) -> float:
    """The best guess is the likeliest category if the method says it, else the most frequent draw."""
    if filled.mean is not None:
        return float((filled.mean[category] == filled.truth[category]).mean())
    codes = filled.draws[:, category].round().astype(np.int64)
    votes = (codes[:, :, None] == np.arange(codes.max() + 1)).sum(0)  # (cell, code)
    return float((votes.argmax(1) == filled.truth[category]).mean())


def energy_iscore(columns: Sequence[HiddenColumn]) -> float:
    """The energy I-score of imputations without truth; lower is better (the papers' score is this one with a minus).

    Every column with gaps is hidden in rows where it is observed and that nobody learned from, all other cells staying as they
    are. Its score is the mean of `column_energy` over these rows; columns are weighted by missing (1 - missing).

    After Naef, Grzesiak and Scornet, "How to rank imputation methods?", from which it differs in this: there the method learns
    anew for every column, from the rows in which it is missing as the method itself filled them, and knows only columns that are
    complete wherever this one is observed. Here it learns once, from training rows with their gaps, and sees rows as they are.
    Numbers are divided by their training standard deviation, and the spread of draws is estimated without bias.
    """
    weights = [column.missing * (1 - column.missing) for column in columns]
    return float(np.average([column_energy(column) for column in columns], weights=weights))


def column_energy(column: HiddenColumn) -> float:
    """The mean over rows of E|X - y| - E|X - X'| / 2: the CRPS of a number; a category is a corner of the unit cube."""
    if column.scale:
        return float(crps(column.draws / column.scale, column.truth / column.scale).mean())
    return float(category_energy(column.draws, column.truth).mean())


def category_energy(draws: Cells, truth: Cells) -> Cells:
    """The fair estimate from k draws: different categories are the root of 2 apart."""
    k = len(draws)
    wrong = (draws != truth).mean(0)
    if k == 1:
        return np.asarray(np.sqrt(2) * wrong)
    codes = draws.round().astype(np.int64)
    votes = (codes[:, :, None] == np.arange(codes.max() + 1)).sum(0)  # (row, code)
    apart = (k * k - (votes**2).sum(1)) / (k * (k - 1))
    return np.asarray(np.sqrt(2) * (wrong - apart / 2))
