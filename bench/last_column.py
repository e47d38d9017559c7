"""One column given all others: anyorder's `predict` against regressors that were trained for this one question."""

from collections.abc import Callable, Iterable
from statistics import mean, stdev

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from tables import SOURCES, Split, load_split

from anyorder import AnyOrder

Cells = NDArray[np.float64]
Predict = Callable[[Split, int, int], Cells]  # (split, place of the target, seed) -> guesses for the test rows

# The defaults and a few settings around them, chosen by cross-validation on the training rows.
TREES: dict[str, list[float]] = {"max_features": [1.0, 0.6], "min_samples_leaf": [1, 2]}
BOOSTING: dict[str, list[float]] = {"max_iter": [100, 400], "max_leaf_nodes": [31, 8], "min_samples_leaf": [20, 5, 2]}


def compare_on_target(tables: Iterable[str], splits: Iterable[int], with_ours: bool = True) -> None:
    """A markdown table of RMSE in training standard deviations, mean +- standard deviation over splits."""
    methods: dict[str, Predict] = {"anyorder": ours} if with_ours else {}
    methods |= {"extra trees": extra_trees, "histogram boosting": histogram_boosting}
    print("| table, target | " + " | ".join(methods) + " |\n|---" + "|---" * len(methods) + "|")
    for table in tables:
        target = SOURCES[table].target
        found: dict[str, list[float]] = {name: [] for name in methods}
        for seed in splits:
            split = load_split(table, seed)
            place = split.names.index(target)
            if split.levels[place]:
                break
            for name, predict in methods.items():
                found[name].append(rmse(split, place, predict(split, place, seed)))
        cells = [f"{mean(v):.3f} +- {stdev(v):.3f}" if len(v) > 1 else "-" for v in found.values()]
        print(f"| {table}, {target} | " + " | ".join(cells) + " |", flush=True)


def rmse(split: Split, place: int, guesses: Cells) -> float:
    errors = (guesses - split.test[:, place]) / np.nanstd(split.train[:, place])
    return float(np.sqrt(np.nanmean(errors**2)))


def ours(split: Split, place: int, seed: int) -> Cells:
    torch.set_num_threads(1)
    frames = [as_frame(table, split) for table in (split.train, split.test)]
    model = AnyOrder(random_state=seed).fit(frames[0])
    return np.array(model.predict(frames[1], split.names[place]), dtype=np.float64)


def extra_trees(split: Split, place: int, seed: int) -> Cells:
    return tuned(ExtraTreesRegressor(500, random_state=seed), TREES, split, place)


def histogram_boosting(split: Split, place: int, seed: int) -> Cells:
    return tuned(HistGradientBoostingRegressor(random_state=seed), BOOSTING, split, place)


def tuned(model: RegressorMixin, settings: dict[str, list[float]], split: Split, place: int) -> Cells:
    search = GridSearchCV(model, settings, scoring="neg_mean_squared_error", cv=3, n_jobs=1)
    known = np.isfinite(split.train[:, place])
    search.fit(inputs(split.train, split, place)[known], split.train[known, place])
    return np.asarray(search.predict(inputs(split.test, split, place)))


def inputs(table: Cells, split: Split, place: int) -> Cells:
    """All other columns, categories as one column per level."""
    blocks = []
    for i, levels in enumerate(split.levels):
        if i != place:
            blocks.append(table[:, i : i + 1] == np.arange(levels) if levels else table[:, i : i + 1])
    return np.concatenate(blocks, axis=1).astype(np.float64)


def as_frame(table: Cells, split: Split) -> pd.DataFrame:
    """Numbers as they are, categories as text."""
    columns = {}
    for i, (name, levels) in enumerate(zip(split.names, split.levels, strict=True)):
        column = table[:, i]
        columns[name] = [None if np.isnan(v) else f"level {v:.0f}" for v in column] if levels else column
    return pd.DataFrame(columns)
