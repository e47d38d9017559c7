"""How good filled cells are: numbers in training standard deviations, categories by their share of hits."""

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


class Scores(NamedTuple):
    """Of one table, mechanism, split and method; None where there is nothing to score or no way to do it."""

    rmse: float | None
    crps: float | None
    coverage: float | None
    covered_of: int  # cells that the coverage was counted on
    accuracy: float | None
    nats: float | None
    fit_seconds: float
    ms_per_row_and_draw: float
    peak_mb: float


def score(filled: Filled) -> Scores:
    number = filled.scale > 0
    scale = filled.scale[number]
    truth, draws = filled.truth[number] / scale, filled.draws[:, number] / scale
    guess = draws.mean(0) if filled.mean is None else filled.mean[number] / scale
    some = bool(number.any())
    return Scores(
        rmse=float(np.sqrt(((guess - truth) ** 2).mean())) if some else None,
        crps=float(crps(draws, truth).mean()) if some else None,
        coverage=coverage(filled, number) if some else None,
        covered_of=int(number.sum()) if filled.pit is None else int(np.isfinite(filled.pit).sum()),
        accuracy=accuracy(filled, ~number) if not number.all() else None,
        nats=filled.nats,
        fit_seconds=filled.fit_seconds,
        ms_per_row_and_draw=filled.ms_per_row_and_draw,
        peak_mb=filled.peak_mb,
    )


def crps(draws: Cells, truth: Cells) -> Cells:
    """The fair estimate from k draws: unbiased for the law they come from, whatever k; one draw is a point, its score the error.

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
    """How many truths lie in the middle `level` of their law: exactly from the pit, else from the quantiles of the draws."""
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
