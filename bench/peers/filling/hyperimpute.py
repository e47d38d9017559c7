"""HyperImpute: chained models, each chosen by search, on training and test rows together: it fills the table it learns from.

It takes a column for a category if it has few different values, and cannot be told otherwise: other codes are rounded.
"""

import numpy as np
import pandas as pd
from hyperimpute.plugins.imputers import Imputers  # type: ignore[import-not-found]

from .exchange import Cells, Fitted, Task, serve


def fit(task: Task) -> Fitted:
    return Fitted(lambda test: impute(task, test)[None])


def impute(task: Task, test: Cells) -> Cells:
    both = pd.DataFrame(np.concatenate([task.train, test]), columns=[f"x{i}" for i in range(task.train.shape[1])])
    imputer = Imputers().get("hyperimpute", random_state=task.seed)
    filled = np.asarray(imputer.fit_transform(both.copy()), dtype=np.float64)[len(task.train) :]
    for i in task.categories:
        filled[:, i] = filled[:, i].round().clip(0, task.levels[i] - 1)
    return np.where(np.isnan(test), filled, test)


if __name__ == "__main__":
    serve({"hyperimpute": fit})
