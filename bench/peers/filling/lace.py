"""Lace: a Bayesian cross-categorisation of the table; gaps are simulated together, given the known cells of their row."""

import lace  # type: ignore[import-not-found]
import numpy as np
import polars as pl

from .exchange import Cells, Fitted, Task, serve

STATES, SWEEPS = 8, 1000


def fit(task: Task) -> Fitted:
    engine = lace.Engine.from_df(frame(task.train, task), n_states=STATES, rng_seed=task.seed)
    engine.update(SWEEPS, quiet=True)

    def impute(test: Cells) -> Cells:
        drawn = np.repeat(test[None], task.draws, axis=0)
        for r, row in enumerate(test):
            known = {f"x{i}": value(row[i], task.levels[i]) for i in np.flatnonzero(np.isfinite(row))}
            holes = np.flatnonzero(np.isnan(row))
            if len(holes):
                filled = engine.simulate([f"x{i}" for i in holes], given=known or None, n=task.draws)
                for i in holes:
                    drawn[:, r, i] = [number(v) for v in filled[f"x{i}"].to_list()]
        return drawn

    return Fitted(impute)


def frame(table: Cells, task: Task) -> pl.DataFrame:
    """Numbers as they are, categories as text."""
    columns: dict[str, list[float | str | None]] = {"ID": [str(r) for r in range(len(table))]}
    for i, levels in enumerate(task.levels):
        columns[f"x{i}"] = [None if np.isnan(v) else value(v, levels) for v in table[:, i]]
    return pl.DataFrame(columns)


def value(cell: float, levels: int) -> float | str:
    return f"level {cell:.0f}" if levels else float(cell)


def number(cell: float | str) -> float:
    return float(cell.removeprefix("level ")) if isinstance(cell, str) else cell


if __name__ == "__main__":
    serve({"lace": fit})
