"""MissForest: chained LightGBM models, with its default, a linear model in every leaf, and with constant leaves (`_plain`).

It is fitted on the training rows alone: it takes its first guesses for labels, so test rows would learn them by heart.
"""

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor  # type: ignore[import-not-found]
from missforest import MissForest  # type: ignore[import-not-found]

from .exchange import Cells, Fitted, Task, serve


def default(task: Task) -> Fitted:
    return fit(task, linear=True)


def plain(task: Task) -> Fitted:
    return fit(task, linear=False)


def fit(task: Task, linear: bool) -> Fitted:
    names = [f"x{i}" for i in range(task.train.shape[1])]
    settings = {"linear_tree": linear, "verbosity": -1, "n_jobs": 1, "random_state": task.seed}
    forest = MissForest(
        clf=LGBMClassifier(**settings),
        rgr=LGBMRegressor(**settings),
        categorical=[names[i] for i in task.categories] or None,
        verbose=0,
    )
    train = pd.DataFrame(task.train, columns=names)
    if not train.isna().any().any():
        train.iloc[0, 0] = np.nan  # it refuses complete tables
    forest.fit(train)

    def impute(test: Cells) -> Cells:
        filled = forest.transform(pd.DataFrame(test, columns=names))
        return filled[names].to_numpy(dtype=np.float64)[None]

    return Fitted(impute)


if __name__ == "__main__":
    serve({"missforest": default, "missforest_plain": plain})
