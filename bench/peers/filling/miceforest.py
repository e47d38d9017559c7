"""miceforest: chained LightGBM models with mean matching, learned on the training rows and walked through for new rows.

Categories are drawn by their probabilities ("fast"): matched by log odds, as by default, a category that is certain ends in
an error.
"""

import miceforest  # type: ignore[import-not-found]
import numpy as np
import pandas as pd

from .exchange import Cells, Fitted, Task, serve

DATASETS, ROUNDS = 5, 5


def fit(task: Task) -> Fitted:
    train = frame(task.train, task)
    kernel = miceforest.ImputationKernel(
        train,
        num_datasets=DATASETS,
        variable_schema=list(train.columns),
        mean_match_strategy={f"x{i}": "fast" if levels else "normal" for i, levels in enumerate(task.levels)},
        random_state=task.seed,
    )
    kernel.mice(iterations=ROUNDS, num_threads=1, verbosity=-1)

    def draw(test: pd.DataFrame, k: int) -> Cells:
        dataset = k % DATASETS
        seed = task.seed * 1000 + k
        imputed = kernel.impute_new_data(test, datasets=[dataset], iterations=ROUNDS, random_state=seed)
        filled = imputed.complete_data(dataset=dataset, iteration=ROUNDS)
        return np.stack([filled[name].astype(float).to_numpy() for name in filled.columns], axis=1)

    return Fitted(lambda test: np.stack([draw(frame(test, task), k) for k in range(task.draws)]))


def frame(table: Cells, task: Task) -> pd.DataFrame:
    columns = pd.DataFrame(table, columns=[f"x{i}" for i in range(table.shape[1])])
    for i in task.categories:
        seen = np.unique(task.train[:, i][np.isfinite(task.train[:, i])])
        columns[f"x{i}"] = pd.Categorical(columns[f"x{i}"], categories=seen)
    return columns


if __name__ == "__main__":
    serve({"miceforest": fit})
