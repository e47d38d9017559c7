"""One column given all others: anyorder, which was asked no question while it learned, against boosting tuned for just this one.

    python bench/one_column.py --tables concrete wine --seeds 0 1                                        # development
    python bench/one_column.py --seeds 1000 1001 1002 1003 1004 --out bench/results/one_column.json      # for the report

Every seed splits a table at random into four fifths to learn from and one fifth to test on. One fit of anyorder serves all
targets of a table. Boosting's settings are those that do best on a tenth of the training rows, which also say when to stop; then
it learns all training rows. Numbers are scored in training standard deviations. Probabilities below a millionth are raised to it,
for everybody alike. With `--out`, a split that is in the file already, from the same commit, is not run again.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from few_conditions import adult
from numpy.typing import NDArray
from results import Results, flags
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from tables import as_numbers, data_folder

from anyorder.estimator import AnyOrder

Cells = NDArray[np.float64]
Codes = NDArray[np.int64]
Score = dict[str, float]

MOST_TESTS = 4000
LEAST = 1e-6  # probability of anything
NATIVE = "categories as such"  # else they are codes in the order of the alphabet
GRID: list[dict[str, Any]] = [
    {"learning_rate": 0.1, "max_leaf_nodes": 31, NATIVE: True},
    {"learning_rate": 0.1, "max_leaf_nodes": 8, "min_samples_leaf": 5},
    {"learning_rate": 0.1, "max_leaf_nodes": 31, "l2_regularization": 20.0},
    {"learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 2},
    {"learning_rate": 0.05, "max_leaf_nodes": 15, "min_samples_leaf": 5},
    {"learning_rate": 0.05, "max_leaf_nodes": 63, "l2_regularization": 20.0},
]
MOST_ITERATIONS, PATIENCE = 2000, 30
TREES: dict[str, list[float]] = {"max_features": [1.0, 0.6], "min_samples_leaf": [1, 2]}


class Source(NamedTuple):
    table: Callable[[], pd.DataFrame]
    targets: tuple[str, ...]
    few_rows: bool = False  # then extra trees are a rival too


SOURCES = {
    "adult": Source(adult, ("income", "occupation", "workclass")),
    "california": Source(lambda: pd.read_csv(data_folder() / "tabular" / "california_housing.csv.gz"), ("median_house_value",)),
    "wine": Source(lambda: pd.read_csv(data_folder() / "uci" / "wine_red.csv"), ("quality",), few_rows=True),
    "concrete": Source(lambda: pd.read_csv(data_folder() / "uci" / "concrete.csv"), ("strength",), few_rows=True),
}


class Split(NamedTuple):
    """Rows to learn from and to test on, as tables and as numbers (categories as codes, NaN is a gap)."""

    train: pd.DataFrame
    test: pd.DataFrame
    train_cells: Cells
    test_cells: Cells
    levels: Codes  # per column: how many codes a category has, 0 for a number

    def place(self, target: str) -> int:
        return list(self.train.columns).index(target)

    def inputs(self, target: str) -> tuple[Cells, Cells, NDArray[np.bool_]]:
        """All other columns of both parts, and which of them are categories."""
        others = [i for i in range(len(self.levels)) if i != self.place(target)]
        return self.train_cells[:, others], self.test_cells[:, others], self.levels[others] > 0

    def truth(self, target: str) -> tuple[Cells, Cells]:
        place = self.place(target)
        return self.train_cells[:, place], self.test_cells[:, place]


def split_of(table: str, seed: int, rows: int | None) -> Split:
    frame = SOURCES[table].table()
    order = np.random.default_rng([seed, 11]).permutation(len(frame))[:rows]
    tests = len(order) // 5
    cells, levels = as_numbers(frame)
    test, train = order[:tests][:MOST_TESTS], order[tests:]
    parts = [frame.iloc[part].reset_index(drop=True) for part in (train, test)]
    return Split(parts[0], parts[1], cells[train], cells[test], levels)


# Methods: guesses of a number (row), or the probability of every code (row, code), for the test rows ----------------------------

Method = Callable[[Split, str, int], Cells]


def ours(model: AnyOrder, split: Split, target: str) -> Cells:
    levels = int(split.levels[split.place(target)])
    if not levels:
        return model.predict_mean(split.test, target)
    codes = code_of_level(split, target)
    return spread(model.predict_proba(split.test, target), [codes[level] for level in model.levels(target)], levels)


def code_of_level(split: Split, target: str) -> dict[Any, int]:
    frames, cells = pd.concat([split.train[target], split.test[target]]), np.concatenate(split.truth(target))
    return {level: int(code) for level, code in zip(frames, cells, strict=True) if np.isfinite(code)}


def spread(probabilities: Cells, codes: list[int], levels: int) -> Cells:
    """Over all codes, also those that nobody could learn."""
    table = np.full((len(probabilities), levels), LEAST)
    table[:, codes] = probabilities.clip(LEAST)
    return np.asarray(table / table.sum(1, keepdims=True))


def boosting(split: Split, target: str, seed: int) -> Cells:
    x, new, categories = split.inputs(target)
    y, _ = split.truth(target)
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    levels = int(split.levels[split.place(target)])
    kept = np.random.default_rng([seed, 12]).random(len(y)) < 0.1  # on these settings are chosen
    judges = kept & (np.isin(y, y[~kept]) if levels else True)  # a class it cannot know yet tells nothing
    best, chosen = np.inf, dict[str, Any]()
    for settings in GRID:
        tried = machine(settings, categories, bool(levels), seed, MOST_ITERATIONS, early_stopping=True)
        tried.fit(x[~kept], y[~kept], X_val=x[judges], y_val=y[judges])
        losses = -np.asarray(tried.validation_score_)[1:]  # the first is before any tree
        if losses.min() < best:
            best, chosen = losses.min(), {"settings": settings, "iterations": int(losses.argmin()) + 1}
    last = machine(chosen["settings"], categories, bool(levels), seed, chosen["iterations"], early_stopping=False).fit(x, y)
    if not levels:
        return np.asarray(last.predict(new), dtype=np.float64)
    return spread(last.predict_proba(new), [int(code) for code in last.classes_], levels)


def machine(
    settings: dict[str, Any], categories: NDArray[np.bool_], classify: bool, seed: int, iterations: int, early_stopping: bool
) -> Any:
    """Boosting that is not trained yet."""
    kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    own = {name: value for name, value in settings.items() if name != NATIVE}
    native = categories if settings.get(NATIVE) else None
    return kind(
        **own,
        max_iter=iterations,
        categorical_features=native,
        early_stopping=early_stopping,
        n_iter_no_change=PATIENCE,
        random_state=seed,
    )


def extra_trees(split: Split, target: str, seed: int) -> Cells:
    """Settings by cross-validation on the training rows."""
    x, new, _ = split.inputs(target)
    y, _ = split.truth(target)
    model = ExtraTreesRegressor(500, random_state=seed)
    search = GridSearchCV(model, TREES, scoring="neg_mean_squared_error", cv=3, n_jobs=1).fit(x, y)
    return np.asarray(search.predict(new))


# Scores -------------------------------------------------------------------------------------------------------------------------


def scored(split: Split, target: str, guesses: Cells) -> Score:
    train, test = split.truth(target)
    known = np.isfinite(test)
    if split.levels[split.place(target)]:
        return scored_codes(test[known].astype(int), guesses[known])
    errors = (guesses - test)[known] / np.nanstd(train)
    return {"rmse": float(np.sqrt((errors**2).mean())), "mae": float(np.abs(errors).mean())}


def scored_codes(codes: Codes, probabilities: Cells) -> Score:
    nats = -np.log(probabilities[np.arange(len(codes)), codes])
    found = {"nats": float(nats.mean()), "accuracy": float((probabilities.argmax(1) == codes).mean())}
    if probabilities.shape[1] == 2:
        found["auc"] = float(roc_auc_score(codes, probabilities[:, 1]))
    return found


# The whole of it ----------------------------------------------------------------------------------------------------------------


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    results = Results.open("one_column", args, "One column given all others", ("table", "target", "method"), ("rmse", "nats"))
    for seed in args.seeds:
        for table in args.tables:
            last = {"table": table, "target": SOURCES[table].targets[-1], "seed": seed}
            if not results.has(method="anyorder", **last):
                for (target, method), scores in one_split(table, seed, args).items():
                    results.add(scores, table=table, target=target, method=method, seed=seed)
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, SOURCES)
    parser.add_argument("--rows", type=int, help="of a table, a random part of so many rows")
    args: argparse.Namespace = parser.parse_args()
    return args


def one_split(table: str, seed: int, args: argparse.Namespace) -> dict[tuple[str, str], dict[str, Any]]:
    """Scores of every target and method, with the CPU seconds that a method needed for it; anyorder is the last one."""
    split = split_of(table, seed, args.rows)
    start = time.process_time()
    model = AnyOrder(effort=args.effort, random_state=seed).fit(split.train)
    fitted = {"fit cpu seconds, all columns": time.process_time() - start}
    methods: dict[str, Method] = {"boosting": boosting}
    if SOURCES[table].few_rows:
        methods["extra trees"] = extra_trees
    methods["anyorder"] = lambda split, target, seed: ours(model, split, target)
    found = {}
    for target in SOURCES[table].targets:
        for name, method in methods.items():
            start = time.process_time()
            guesses = method(split, target, seed)
            spent = {"cpu_seconds": time.process_time() - start, **(fitted if name == "anyorder" else {})}
            found[target, name] = {**scored(split, target, guesses), **spent}
    return found


if __name__ == "__main__":
    main()
