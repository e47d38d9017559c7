"""Which measurement next: the target's error against the number, or the price, of measurements (SFARM's Fig. 5).

    python bench/acquisition.py --tables energy yacht concrete nltcs adult --seeds 0-3 --plots FOLDER
    python bench/acquisition.py --speed

Nothing is known of a test row at the start; one variable a step is measured, until all are. Every method chooses for every row
on its own, and its own model guesses the target at every point. RMSE in training standard deviations (a share of wrong guesses
where the target is a category), log-likelihood of the true target in nats. The area is the mean over all points. Energy has two
targets, as in the paper. Adult has prices: its area is the mean over the price range. Curves are kept in
`$ANYORDER_PEERS/acquisition` and not drawn again.
"""

import argparse
import hashlib
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from acquisition_methods import METHODS, Curve, Problem
from acquisition_report import plot, scores
from acquisition_speed import measure_speed
from peers import cache
from results import Results, flags, sources
from tables import data_folder

TARGETS = {
    "energy": ["heating load", "cooling load"],
    "yacht": ["residuary_resistance"],
    "concrete": ["strength"],
    "nltcs": ["x0"],
    "adult": ["income"],
}
# What it would cost, say in minutes of an interview, to learn each column of Adult.
PRICES = {"age": 1, "sex": 1, "race": 1, "native_country": 1, "marital_status": 2, "relationship": 2, "education": 2}
PRICES |= {"education_num": 2, "workclass": 3, "occupation": 3, "hours_per_week": 3}
PRICES |= {"fnlwgt": 5, "capital_gain": 8, "capital_loss": 8}
MOST_TEST_ROWS = 200


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    if args.speed:
        measure_speed(args)
        return
    results = Results.open("acquisition", args, "Which measurement next", ("table", "method"), ("error",))
    for seed in args.seeds:
        for table in args.tables:
            problem = problem_of(table, seed, args.effort)
            for name in args.methods or METHODS:
                for curve in kept_or_run(table, name, problem, args):
                    results.add(scores(curve), table=table, method=name, seed=seed)
    results.print()
    if args.plots:
        for table in args.tables:
            problems = [problem_of(table, seed, args.effort) for seed in args.seeds]
            found = {name: [c for p in problems for c in kept_or_run(table, name, p, args)] for name in args.methods or METHODS}
            plot(table, found, args.plots)


def kept_or_run(table: str, name: str, problem: Problem, args: argparse.Namespace) -> list[Curve]:
    """The curve from the cache, or from a run, which is then kept."""
    whose = (name, problem.target_names, problem.prices, args.effort, sources() if "anyorder" in name else "")
    digest = hashlib.sha256(repr(whose).encode())
    digest.update(problem.train.to_csv().encode() + problem.test.to_csv().encode())
    path = cache() / "acquisition" / f"{table}-{problem.seed}-{digest.hexdigest()[:12]}.npz"
    if name in args.again or (not path.exists() and not args.only_cached):
        start = time.perf_counter()
        found = list(METHODS[name](problem))
        print(f"{table} {problem.seed} {name}: {time.perf_counter() - start:.0f} s", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, *(np.stack(curve) for curve in found))
    if not path.exists():
        return []
    with np.load(path) as file:
        return [Curve(*file[key]) for key in file.files]


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, TARGETS, seeds=range(4))
    parser.add_argument("--methods", nargs="*", default=[], choices=METHODS)
    parser.add_argument("--again", nargs="*", default=[], choices=METHODS, help="methods to run again, whatever is kept")
    parser.add_argument("--only-cached", action="store_true", help="report what is kept, run nothing")
    parser.add_argument("--plots", type=Path, help="a folder for one picture a table")
    parser.add_argument("--speed", action="store_true", help="time decisions instead: ours next to MIWAE's")
    args: argparse.Namespace = parser.parse_args()
    return args


def problem_of(table: str, seed: int, effort: float) -> Problem:
    frame = load(table)
    order = np.random.default_rng([seed, 3]).permutation(len(frame))
    order = order[:4000] if len(order) > 4000 else order
    held = len(order) // 10
    train, test = (
        frame.iloc[order[held:]].reset_index(drop=True),
        frame.iloc[order[:held][:MOST_TEST_ROWS]].reset_index(drop=True),
    )
    return Problem(train, test, TARGETS[table], PRICES if table == "adult" else None, seed, effort)


def load(table: str) -> pd.DataFrame:
    if table == "nltcs":
        rows = np.load(data_folder() / "debd" / "nltcs.npz")
        codes = np.concatenate([rows[name] for name in sorted(rows.files)])
        return pd.DataFrame(np.where(codes > 0, "yes", "no"), columns=[f"x{i}" for i in range(codes.shape[1])])
    if table == "adult":
        return pd.read_csv(data_folder() / "tabular" / "adult_train.csv.gz")
    return pd.read_csv(data_folder() / "uci" / f"{table}.csv")


if __name__ == "__main__":
    main()
