"""How long encoding, fitting and filling take, next to scikit-learn's imputers in the same run.

python bench/speed.py                    # all of it, about a quarter of an hour on two cores
python bench/speed.py encode transform   # some of it
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.encoder import TableEncoder


def mixed_table(rows: int, columns: int, seed: int = 0) -> pd.DataFrame:
    """Correlated numbers of several precisions and categories with 3 to 30 levels, a few factors behind all of them."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(rows, 4))
    table = {}
    for i in range(columns):
        signal = np.sin(factors @ rng.normal(size=4)) + factors @ rng.normal(size=4) + 0.3 * rng.normal(size=rows)
        if i % 4 == 3:
            levels = 3 + 9 * (i // 4 % 4)
            table[f"c{i}"] = np.array([f"level {k}" for k in range(levels)])[pd.qcut(signal, levels, labels=False)]
        else:
            table[f"x{i}"] = signal.round(i % 4 + 1)
    return pd.DataFrame(table)


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def encode() -> None:
    table = mixed_table(100_000, 20)
    learned, encoder = seconds(lambda: TableEncoder.learn(table))
    encoded, _ = seconds(lambda: encoder.encode(table))
    print(f"encode 100,000 x 20: {learned:.2f} s to learn the columns, {encoded:.2f} s to encode (wanted: 3 s)")


def fit(rows: int, columns: int, wanted: float) -> None:
    """The defaults, and how many nats a five times longer fit saves on new rows."""
    whole = mixed_table(rows + 1000, columns)
    table, new = whole.iloc[:rows], whole.iloc[rows:]
    spent, model = seconds(lambda: AnyOrder().fit(table))
    longer, better = seconds(lambda: AnyOrder(effort=5.0).fit(table))
    nats, best = -model.score(new), -better.score(new)
    print(
        f"fit {rows:,} x {columns}: {spent:.0f} s (wanted: {wanted:.0f} s), {nats:.2f} nats a row on new rows; "
        f"five times longer {longer:.0f} s, {best:.2f} nats: {100 * (nats / best - 1):+.1f} % (wanted: at most 2 %)"
    )


def transform() -> None:
    """Filling is timed on numbers only, so that all peers can take part."""
    table = mixed_table(12_000, 20).filter(like="x")
    gaps = np.random.default_rng(1).random(table.shape) < 0.2
    table = table.mask(gaps)  # in training too: chained imputers learn nothing about columns without gaps
    train, test = table.iloc[:2000], table.iloc[2000:]
    print(f"transform {len(test):,} x {table.shape[1]} with 20 % gaps, after fitting {len(train):,} rows:")
    print("| | fit s | transform s |\n|---|---|---|")
    peers = {
        "anyorder": AnyOrder(),
        "chained BayesianRidge": IterativeImputer(max_iter=10, random_state=0),
        "chained ExtraTrees": IterativeImputer(ExtraTreesRegressor(50, random_state=0), max_iter=5, random_state=0),
        "KNN": KNNImputer(),
    }
    for name, peer in peers.items():
        fitted, _ = seconds(lambda peer=peer: peer.fit(train))  # type: ignore[misc]
        filled, _ = seconds(lambda peer=peer: peer.transform(test))  # type: ignore[misc]
        print(f"| {name} | {fitted:.1f} | {filled:.1f} |", flush=True)


PARTS: dict[str, Callable[[], None]] = {
    "encode": encode,
    "small": lambda: fit(1000, 9, 30),
    "large": lambda: fit(100_000, 20, 300),
    "transform": transform,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default="all", choices=[*PARTS, "all"])
    print(f"{torch.get_num_threads()} threads")
    asked = parser.parse_args().parts
    for part in PARTS if "all" in asked else asked:
        PARTS[part]()
