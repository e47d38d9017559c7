"""TabularARGN (the package mostlyai-engine): an any-order autoregressive network over binned numbers, with its own defaults.

It fills the gaps of a row given all its known cells, a pattern of gaps at a time. Values are not protected: that is for privacy,
and would take rare ones away. It stops by itself when rows kept back no longer gain, at the latest after `MINUTES`.
"""

import numpy as np
import pandas as pd
from mostlyai.engine import TabularARGN  # type: ignore[import-not-found]

from .exchange import Cells, Fitted, Task, serve

MINUTES = 5.0


def fit(task: Task) -> Fitted:
    model = TabularARGN(max_training_time=MINUTES, value_protection=False, device="cpu", random_state=task.seed)
    model.fit(frame(task.train, task))

    def impute(test: Cells) -> Cells:
        filled = model.impute(frame(np.tile(test, (task.draws, 1)), task))
        return cells(filled, task).reshape(task.draws, *test.shape)

    return Fitted(impute)


def frame(table: Cells, task: Task) -> pd.DataFrame:
    """Numbers as they are, categories as text."""
    columns = {}
    for i, levels in enumerate(task.levels):
        column = table[:, i]
        columns[f"x{i}"] = [None if np.isnan(v) else f"level {v:.0f}" for v in column] if levels else column
    return pd.DataFrame(columns)


def cells(table: pd.DataFrame, task: Task) -> Cells:
    columns = []
    for i, levels in enumerate(task.levels):
        column = table[f"x{i}"]
        columns.append(column.str.removeprefix("level ") if levels else column)
    return np.stack([column.to_numpy(dtype=np.float64) for column in columns], axis=1)


if __name__ == "__main__":
    serve({"argn": fit})
