"""UnmaskingTrees: boosted trees that fill one column after the other in any order, with its own defaults."""

import numpy as np
from utrees import UnmaskingTrees  # type: ignore[import-not-found]

from .exchange import Cells, Fitted, Task, serve

MOST_EXAMPLES = 1_000_000  # rows x columns x maskings: the default of 50 maskings a row would need hours on larger tables


def fit(task: Task) -> Fitted:
    maskings = int(np.clip(MOST_EXAMPLES // task.train.size, 5, 50))
    trees = UnmaskingTrees(duplicate_K=maskings, xgboost_kwargs={"n_jobs": 1}, random_state=task.seed)
    trees.fit(task.train, quantize_cols=["categorical" if levels else "continuous" for levels in task.levels])

    def impute(test: Cells) -> Cells:
        drawn: Cells = trees.impute(n_impute=task.draws, X=test)
        return drawn

    return Fitted(impute)


if __name__ == "__main__":
    serve({"utrees": fit})
