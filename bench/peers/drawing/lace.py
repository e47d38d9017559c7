"""Lace: a Bayesian cross-categorisation of the table, which draws rows from all of its states.

It gets 1000 sweeps, or as many as fit into half of its time.
"""

import time

import lace  # type: ignore[import-not-found]
import numpy as np
import polars as pl

from .exchange import Cells, Fitted, Task, serve

STATES, MOST_SWEEPS, SWEEPS_AT_ONCE = 8, 1000, 10
SHARE = 0.5  # of the time, for sweeps


def fit(task: Task) -> Fitted:
    names = [f"x{i}" for i in range(task.train.shape[1])]
    engine = lace.Engine.from_df(frame(task), n_states=STATES, rng_seed=task.seed)
    start = time.process_time()
    for _ in range(MOST_SWEEPS // SWEEPS_AT_ONCE):
        if time.process_time() - start < SHARE * task.seconds:
            engine.update(SWEEPS_AT_ONCE, quiet=True)

    def draw(count: int) -> Cells:
        drawn = engine.simulate(names, n=count)
        return np.stack([numbers(drawn[name]) for name in names], axis=1)

    return Fitted(draw, len(task.train), batch=20_000)


def frame(task: Task) -> pl.DataFrame:
    """Numbers as they are, categories as text."""
    columns: dict[str, list[float | str | None]] = {"ID": [str(r) for r in range(len(task.train))]}
    for i, levels in enumerate(task.levels):
        columns[f"x{i}"] = [None if np.isnan(v) else f"{v:.0f}" if levels else float(v) for v in task.train[:, i]]
    return pl.DataFrame(columns)


def numbers(column: pl.Series) -> Cells:
    return np.array(column.to_list(), dtype=np.float64)


if __name__ == "__main__":
    serve(fit)
