"""The tables of the imputation benchmark as numbers: where they lie, how their rows are split, how the test rows get gaps.

Files come from `$ANYORDER_DATA` (default: `../shared/data` from the project).
A table, a mechanism and a split always give the same cells.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Cells = NDArray[np.float64]
Mask = NDArray[np.bool_]
SLOPE = 1.5  # of the log odds of a gap, per standard deviation of what it depends on


class Source(NamedTuple):
    file: str
    target: str  # what is predicted where all other columns are known
    without: tuple[str, ...] = ()
    rows: int | None = None  # of a larger table, a random part of so many rows


SOURCES = {
    "energy": Source("uci/energy.csv", "heating load", without=("cooling load",)),
    "yacht": Source("uci/yacht.csv", "residuary_resistance"),
    "concrete": Source("uci/concrete.csv", "strength"),
    "wine": Source("uci/wine_red.csv", "quality"),
    "california": Source("tabular/california_housing.csv.gz", "median_house_value", rows=4000),
    "adult": Source("tabular/adult_train.csv.gz", "income", rows=4000),
}


class Split(NamedTuple):
    """Training and test rows: NaN is a gap in the data, categories are codes."""

    train: Cells
    test: Cells
    levels: NDArray[np.int64]  # per column: how many codes a category has, 0 for a number
    names: list[str]


def data_folder() -> Path:
    beside = Path(__file__).parents[2] / "shared" / "data"
    return Path(os.environ.get("ANYORDER_DATA", beside))


def load_split(table: str, seed: int, most_test_rows: int = 400) -> Split:
    """Nine tenths of the rows to learn from, up to `most_test_rows` of the others to test on."""
    source = SOURCES[table]
    path = data_folder() / source.file
    if not path.exists():
        raise SystemExit(f"{path} is missing. Set ANYORDER_DATA to the folder that holds {source.file}.")
    frame = pd.read_csv(path).drop(columns=list(source.without))
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(frame))[: source.rows]
    cells, levels = as_numbers(frame)
    test_rows = len(order) // 10
    train, test = cells[order[test_rows:]], cells[order[:test_rows][:most_test_rows]]
    for i in np.flatnonzero(levels):  # a level that nobody could learn is no test
        test[~np.isin(test[:, i], train[:, i]), i] = np.nan
    return Split(train, test, levels, list(frame.columns))


def as_numbers(frame: pd.DataFrame) -> tuple[Cells, NDArray[np.int64]]:
    """All columns as float64, and the number of levels of each (0 for numbers)."""
    cells, levels = np.empty(frame.shape), np.zeros(frame.shape[1], dtype=np.int64)
    for i, name in enumerate(frame.columns):
        if pd.api.types.is_numeric_dtype(frame[name]):
            cells[:, i] = frame[name].to_numpy(dtype=np.float64)
        else:
            codes, found = pd.factorize(frame[name], sort=True)
            cells[:, i], levels[i] = np.where(codes < 0, np.nan, codes), len(found)
    return cells, levels


def gaps(test: Cells, mechanism: str, seed: int) -> Mask:
    """Which cells to hide; `mechanism` is mcar, mar or mnar with a rate in percent: mcar20. Real gaps are never among them."""
    kind, rate = mechanism.rstrip("0123456789"), int(mechanism.lstrip("acmnr")) / 100
    rng = np.random.default_rng([seed, 2, int(100 * rate)])
    return MECHANISMS[kind](test, rate, rng) & np.isfinite(test)


def completely_at_random(test: Cells, rate: float, rng: np.random.Generator) -> Mask:
    return rng.random(test.shape) < rate


def at_random(test: Cells, rate: float, rng: np.random.Generator) -> Mask:
    """Two complete columns are never hidden and make gaps in the others likelier; the rate is that of the others."""
    complete = np.flatnonzero(np.isfinite(test).all(0))
    causes = rng.choice(complete, 2, replace=False)
    push = (ranks(test[:, causes]) * rng.choice([-1, 1], 2)).sum(1) / np.sqrt(2)
    hidden = rng.random(test.shape) < chance(push, rate)[:, None]
    hidden[:, causes] = False
    return hidden


def not_at_random(test: Cells, rate: float, rng: np.random.Generator) -> Mask:
    """High values hide more often in some columns, low ones in the others."""
    sides = rng.choice([-1, 1], test.shape[1])
    chances = np.stack([chance(push, rate) for push in (ranks(test) * sides).T], axis=1)
    return rng.random(test.shape) < chances


MECHANISMS: dict[str, Callable[[Cells, float, np.random.Generator], Mask]] = {
    "mcar": completely_at_random,
    "mar": at_random,
    "mnar": not_at_random,
}


def ranks(table: Cells) -> Cells:
    """Ranks within each column with mean 0 and standard deviation 1; ties share a rank, gaps are in the middle."""
    found = pd.DataFrame(table).rank()
    return ((found - found.mean()) / found.std().replace(0, 1)).fillna(0.0).to_numpy()


def chance(push: Cells, rate: float) -> Cells:
    """A logistic chance that grows with `push`, its mean equal to the rate (by bisection of the intercept)."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = (1 / (1 + np.exp(-(SLOPE * push + middle)))).mean()
        low, high = (middle, high) if mean < rate else (low, middle)
    return np.asarray(1 / (1 + np.exp(-(SLOPE * push + low))))
