"""How long encoding, fitting and filling take, next to scikit-learn's imputers in the same run.

python bench/speed.py                                 # all of it, about a quarter of an hour on two cores
python bench/speed.py --data "encode 100,000 x 20"    # some of it
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from results import Results, flags
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.encoder import TableEncoder

Found = dict[str, dict[str, float]]  # of every method


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


def encode(effort: float) -> Found:
    table = mixed_table(100_000, 20)
    learned, encoder = seconds(lambda: TableEncoder.learn(table))
    encoded, _ = seconds(lambda: encoder.encode(table))
    return {"anyorder": {"fit, s": learned, "fill, s": encoded}}


def fit(rows: int, columns: int, effort: float) -> Found:
    """The defaults, and how many nats a five times longer fit saves on new rows."""
    whole = mixed_table(rows + 1000, columns)
    table, new = whole.iloc[:rows], whole.iloc[rows:]
    found: Found = {}
    for name, times in (("anyorder", 1.0), ("anyorder, effort 5", 5.0)):
        spent, model = seconds(lambda times=times: AnyOrder(effort=times * effort).fit(table))  # type: ignore[misc]
        found[name] = {"fit, s": spent, "nats a row": -model.score(new)}
    return found


def transform(effort: float) -> Found:
    """Filling is timed on numbers only, so that all peers can take part."""
    table = mixed_table(12_000, 20).filter(like="x")
    gaps = np.random.default_rng(1).random(table.shape) < 0.2
    table = table.mask(gaps)  # in training too: chained imputers learn nothing about columns without gaps
    train, test = table.iloc[:2000], table.iloc[2000:]
    peers = {
        "anyorder": AnyOrder(effort=effort),
        "chained BayesianRidge": IterativeImputer(max_iter=10, random_state=0),
        "chained ExtraTrees": IterativeImputer(ExtraTreesRegressor(50, random_state=0), max_iter=5, random_state=0),
        "KNN": KNNImputer(),
    }
    found: Found = {}
    for name, peer in peers.items():
        fitted, _ = seconds(lambda peer=peer: peer.fit(train))  # type: ignore[misc]
        filled, _ = seconds(lambda peer=peer: peer.transform(test))  # type: ignore[misc]
        found[name] = {"fit, s": fitted, "fill, s": filled}
    return found


PARTS: dict[str, Callable[[float], Found]] = {
    "encode 100,000 x 20": encode,
    "fit 1000 x 9": partial(fit, 1000, 9),
    "fit 100,000 x 20": partial(fit, 100_000, 20),
    "fill 10,000 x 15 after learning 2000 rows": transform,
}


def main() -> None:
    args = flags(__doc__, PARTS).parse_args()
    results = Results.open("speed", args, "Encoding, fitting, filling", ("what", "method"), protocol="timing")
    results.note(f"{torch.get_num_threads()} threads.")
    for seed in args.seeds:
        for what in args.tables:
            if not results.has(what=what, method="anyorder", seed=seed):
                for method, scores in PARTS[what](args.effort).items():
                    results.add(scores, what=what, method=method, seed=seed)
    results.print()


if __name__ == "__main__":
    main()
