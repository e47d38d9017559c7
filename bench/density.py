"""How likely are held-out rows: all columns, some of them, some given others. anyorder and other density models, same questions.

    python bench/density.py --tables energy yacht --methods anyorder Lace --seeds 0-2
    python bench/density.py --seeds 1000-1004                        # the report

Nats per row, probability mass at the recorded precision: fewer is better. anyorder and the diagonal mixture give mass by
construction. Any other density is averaged over 16 points of the cell that a number was rounded from and multiplied by the
spacing; such models learn from numbers spread out evenly over their cells, without which they pile up on the recorded values and
"mass" exceeds 1. For Lace and UnmaskingTrees numbers with at most 20 different values are categories. Answers are kept in
`$ANYORDER_PEERS/density`; what has one there is not run again.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from peers import cache
from peers.density import METHODS, ask
from peers.density.exchange import FEW, Answer, Cells, Task, load_answer, save_answer
from results import Results, flags, sources
from summary import Score
from tables import as_numbers, data_folder, load_split

from anyorder.inference import seeded
from anyorder.modalities.tables.columns import NumberColumn
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.subsets import AnySize, Everything, GivenAnySize, QuestionDistribution

QUESTIONS: dict[str, QuestionDistribution] = {"joint": Everything(), "marginal": AnySize(), "conditional": GivenAnySize()}
TABLES = ("energy", "yacht", "concrete", "wine", "nltcs", "adult")
TRAIN_ROWS, TEST_ROWS = 4000, 500  # of the larger tables, drawn anew for every seed
Levels = NDArray[np.int64]


def main() -> None:
    args = arguments()
    results = Results.open("density", args, "Nats of held-out rows", ("table", "method"), tuple(QUESTIONS))
    for seed in args.seeds:
        for table in args.tables:
            task = task_of(table, seed)
            for method in args.methods:
                if method in args.again or not results.has(table=table, method=method, seed=seed):
                    found = answer(table, method, task, args)
                    if found not in ("numbers only", "not run"):
                        results.add(
                            {"failed": found} if isinstance(found, str) else scores(found), table=table, method=method, seed=seed
                        )
    results.print()


def scores(found: Answer) -> dict[str, Score]:
    """Nats a row of every kind of question that the method answers, and CPU seconds."""
    nats = dict(zip(QUESTIONS, found.nats.mean(1).tolist(), strict=True))
    costs = {"fit, CPU s": found.fit_seconds, "score, CPU s": found.score_seconds}
    return {name: value for name, value in nats.items() if np.isfinite(value)} | costs


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, TABLES, seeds=range(3))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--timeout", type=float, default=600, help="seconds per table, seed and method")
    parser.add_argument("--again", nargs="*", default=[], choices=METHODS, help="methods to run again, whatever is kept")
    parser.add_argument("--only-cached", action="store_true", help="report what is kept, run nothing")
    args: argparse.Namespace = parser.parse_args()
    return args


# The rows and the questions


def task_of(table: str, seed: int) -> Task:
    """The same rows and masks for every method."""
    train, test, levels = rows_of(table, seed)
    spacing = spacings(train, levels)
    for i in range(train.shape[1]):  # a value that nobody could learn as a category is no test
        if levels[i] or len(np.unique(train[:, i])) <= FEW:
            test[~np.isin(test[:, i], train[:, i]), i] = np.nan
    present = torch.from_numpy(np.isfinite(test))
    asked = [questions.sample(present, seeded(seed)) for questions in QUESTIONS.values()]
    given, target = (np.stack([getattr(question, side).numpy() for question in asked]) for side in ("given", "target"))
    return Task(train, test, levels, spacing, given, target, seed)


def rows_of(table: str, seed: int) -> tuple[Cells, Cells, Levels]:
    """Training rows, test rows, and how many levels each column has."""
    rng = np.random.default_rng([seed, 5])
    if table == "nltcs":
        with np.load(existing("debd/nltcs.npz")) as file:
            train, test = (file[part].astype(np.float64) for part in ("train", "test"))
        return some_rows(train, TRAIN_ROWS, rng), some_rows(test, TEST_ROWS, rng), np.full(train.shape[1], 2)
    if table == "adult":
        frames = [pd.read_csv(existing(f"tabular/adult_{part}.csv.gz")) for part in ("train", "test")]
        cells, levels = as_numbers(pd.concat(frames))
        train, test = np.split(cells, [len(frames[0])])
        return some_rows(train, TRAIN_ROWS, rng), some_rows(test, TEST_ROWS, rng), levels
    split = load_split(table, seed)
    return split.train, split.test, split.levels


def some_rows(rows: Cells, count: int, rng: np.random.Generator) -> Cells:
    return rows[rng.permutation(len(rows))[:count]]


def existing(file: str) -> Path:
    path = data_folder() / file
    if not path.exists():
        raise SystemExit(f"{path} is missing. Set ANYORDER_DATA to the folder that holds {file}.")
    return path


def spacings(train: Cells, levels: Levels) -> Cells:
    """The recorded precision of every number, as anyorder finds it in the training rows; 0 for categories."""
    kinds = {f"x{i}": "category" if count else "number" for i, count in enumerate(levels)}
    columns = TableEncoder.learn(pd.DataFrame(train, columns=list(kinds)), kinds).columns
    return np.array([column.spacing if isinstance(column, NumberColumn) else 0.0 for column in columns])


# The answers


def answer(table: str, method: str, task: Task, args: argparse.Namespace) -> Answer | str:
    """The kept answer to exactly this task, or a new one, which is kept; or why there is none."""
    digest = hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in task)).hexdigest()[:12]
    whose = f"{METHODS[method].script}-{sources()}-{args.effort:g}" if method == "anyorder" else METHODS[method].script
    place = cache() / "density" / f"{table}-{task.seed}-{whose}-{digest}.npz"
    if place.exists() and method not in args.again:
        return load_answer(place)
    if args.only_cached:
        return "not run"
    place.unlink(missing_ok=True)
    print(f"{table}, seed {task.seed}, {method} ...", end=" ", flush=True)
    found = ask(method, task, args.timeout, args.effort)
    if isinstance(found, Answer):
        place.parent.mkdir(parents=True, exist_ok=True)
        save_answer(found, place)
        print(f"{found.nats.mean(1).round(3)}, {found.fit_seconds:.1f} s + {found.score_seconds:.1f} s", flush=True)
    else:
        print(found, flush=True)
    return found


if __name__ == "__main__":
    main()
