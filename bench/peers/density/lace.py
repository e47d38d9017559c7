"""Lace: a Bayesian cross-categorisation; numbers with few different values are categories to it, the others are spread out."""

import lace  # type: ignore[import-not-found]
import numpy as np
import polars as pl

from .exchange import Cells, Masks, Score, Task, few_as_codes, mass, points, serve, spread_out

STATES = 8
MOST_CELL_SWEEPS = 24_000_000  # rows x columns x sweeps of a state; small tables get at most 1000 sweeps


def fit(task: Task) -> Score:
    task = few_as_codes(task)
    engine = lace.Engine.from_df(frame(task), n_states=STATES, rng_seed=task.seed)
    engine.update(int(min(1000, MOST_CELL_SWEEPS // task.train.size)), quiet=True)
    spread = points(task)

    def score(given: Masks, target: Masks) -> Cells:
        log_density = np.zeros(spread.shape[:2])
        for r in np.flatnonzero(target.any(1)):
            asked = np.flatnonzero(target[r])
            once = not (task.spacing[asked] > 0).any()  # codes are the same at all points
            some = spread[: 1 if once else None, r]
            values = pl.DataFrame({f"x{i}": [value(v, task.levels[i]) for v in some[:, i]] for i in asked})
            known = {f"x{i}": value(task.test[r, i], task.levels[i]) for i in np.flatnonzero(given[r])}
            log_density[:, r] = np.asarray(engine.logp(values, given=known or None))
        return mass(task, log_density, target)

    return score


def frame(task: Task) -> pl.DataFrame:
    """Numbers spread out, categories as text."""
    table = spread_out(task.train, task, np.random.default_rng([task.seed, 4]))
    columns: dict[str, list[float | str | None]] = {"ID": [str(r) for r in range(len(table))]}
    for i, levels in enumerate(task.levels):
        columns[f"x{i}"] = [None if np.isnan(v) else value(v, levels) for v in table[:, i]]
    return pl.DataFrame(columns)


def value(cell: float, levels: int) -> float | str:
    return f"level {cell:.0f}" if levels else float(cell)


if __name__ == "__main__":
    serve(fit)
