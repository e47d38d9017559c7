"""scikit-learn's imputers: the mean, chained Bayesian ridge (drawn from its posterior), chained extra trees, nearest neighbours.

They know numbers only: columns are standardised, and a category becomes one column per level, of which the largest wins.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge

from .exchange import Cells, Fitted, Task, serve

ROUNDS = 10
NEIGHBOURS = [(k, weights) for k in (3, 5, 10) for weights in ("uniform", "distance")]


def mean(task: Task) -> Fitted:
    """The floor: what every peer should beat."""
    spread = Spread(task)
    imputer = SimpleImputer().fit(spread.out(task.train))
    return Fitted(lambda test: spread.back(imputer.transform(spread.out(test)), test)[None])


def ridge(task: Task) -> Fitted:
    spread = Spread(task)
    imputer = chain(BayesianRidge(), spread, task, sample_posterior=True)
    return Fitted(lambda test: np.stack([spread.back(imputer.transform(spread.out(test)), test) for _ in range(task.draws)]))


def extratrees(task: Task) -> Fitted:
    spread = Spread(task)
    trees = ExtraTreesRegressor(n_estimators=100, random_state=task.seed, n_jobs=1)
    imputer = chain(trees, spread, task)
    return Fitted(lambda test: spread.back(imputer.transform(spread.out(test)), test)[None])


def knn(task: Task) -> Fitted:
    """The number of neighbours and their weights are those that best fill hidden cells of a fifth of the training rows."""
    spread = Spread(task)
    wide = spread.out(task.train)
    rng = np.random.default_rng(task.seed)
    rows = rng.permutation(len(wide))
    held, rest = wide[rows[: len(rows) // 5]], wide[rows[len(rows) // 5 :]]
    hidden = rng.random(held.shape) < 0.3

    def error(setting: tuple[int, str]) -> float:
        filled = neighbours(setting).fit(rest).transform(np.where(hidden, np.nan, held))
        return float(np.nanmean((filled - held)[hidden] ** 2))

    imputer = neighbours(min(NEIGHBOURS, key=error)).fit(wide)
    return Fitted(lambda test: spread.back(imputer.transform(spread.out(test)), test)[None])


def neighbours(setting: tuple[int, str]) -> KNNImputer:
    return KNNImputer(n_neighbors=setting[0], weights=setting[1])


def chain(estimator: object, spread: "Spread", task: Task, sample_posterior: bool = False) -> IterativeImputer:
    """Complete training rows need one round of fitting, others three; the last round's models are then walked through ten times.

    Without this, scikit-learn stops after one round on complete rows, and fills new rows with one round only.
    """
    rounds = 3 if np.isnan(task.train).any() else 1
    imputer = Chain(estimator, max_iter=rounds, tol=0.0, sample_posterior=sample_posterior, random_state=task.seed)
    imputer.owner = spread.owner()
    imputer.fit(spread.out(task.train))
    last = imputer.imputation_sequence_[-len(imputer.imputation_sequence_) // imputer.n_iter_ :]
    imputer.imputation_sequence_, imputer.n_iter_ = last * ROUNDS, ROUNDS
    return imputer


class Chain(IterativeImputer):  # type: ignore[misc]
    """A level's column is not predicted from those of the other levels: they sum to one, so it would stay at its first guess."""

    owner: NDArray[np.int64]  # the column of the table that each column came from

    def _get_neighbor_feat_idx(self, n_features: int, feat_idx: int, abs_corr_mat: object) -> NDArray[np.int64]:
        return np.flatnonzero(self.owner != self.owner[feat_idx])


class Spread:
    """Columns standardised by the training rows, categories spread over one column per level that occurs."""

    def __init__(self, task: Task) -> None:
        self.levels = task.levels
        self.mean, self.scale = np.nanmean(task.train, axis=0), np.nanstd(task.train, axis=0)
        self.seen = [np.unique(column[np.isfinite(column)]) for column in task.train.T]

    def owner(self) -> NDArray[np.int64]:
        widths = [len(seen) if levels else 1 for seen, levels in zip(self.seen, self.levels, strict=True)]
        return np.repeat(np.arange(len(widths)), widths)

    def out(self, table: Cells) -> Cells:
        blocks = []
        for i, levels in enumerate(self.levels):
            column = table[:, i : i + 1]
            flags = np.where(np.isnan(column), np.nan, column == self.seen[i])
            blocks.append(flags if levels else (column - self.mean[i]) / self.scale[i])
        return np.concatenate(blocks, axis=1)

    def back(self, wide: Cells, table: Cells) -> Cells:
        filled, at = table.copy(), 0
        for i, levels in enumerate(self.levels):
            width = len(self.seen[i]) if levels else 1
            block = wide[:, at : at + width]
            values = self.seen[i][block.argmax(1)] if levels else block[:, 0] * self.scale[i] + self.mean[i]
            filled[:, i] = np.where(np.isnan(table[:, i]), values, table[:, i])
            at += width
        return filled


if __name__ == "__main__":
    serve({"mean": mean, "ridge": ridge, "extratrees": extratrees, "knn": knn})
