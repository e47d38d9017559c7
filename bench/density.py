"""How likely are held-out rows: all columns, some of them, some given others. anyorder and other density models, same questions.

    python bench/density.py [--tables energy yacht ...] [--methods anyorder Lace ...] [--seeds 3] [--again METHOD ...]

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
from density_peers import METHODS, ask
from density_peers.exchange import FEW, Answer, Cells, Task, load_answer, save_answer
from numpy.typing import NDArray
from peers import cache
from tables import as_numbers, data_folder, load_split

from anyorder.inference import seeded
from anyorder.modalities.tables.columns import NumberColumn
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.subsets import AnySize, Everything, GivenAnySize, QuestionDistribution

QUESTIONS: dict[str, QuestionDistribution] = {"joint": Everything(), "marginal": AnySize(), "conditional": GivenAnySize()}
TABLES = ("energy", "yacht", "concrete", "wine", "nltcs", "adult")
TRAIN_ROWS, TEST_ROWS = 4000, 500  # of the larger tables, drawn anew for every seed
Levels = NDArray[np.int64]
Results = dict[tuple[str, str, int], Answer | str]


def main() -> None:
    args = arguments()
    results: Results = {}
    for table in args.tables:
        for seed in range(args.seeds):
            task = task_of(table, seed)
            for method in args.methods:
                results[table, method, seed] = answer(table, method, task, args.timeout, method in args.again, args.only_cached)
    print(report(results, args.tables, args.methods, range(args.seeds)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=600, help="seconds per table, seed and method")
    parser.add_argument("--again", nargs="*", default=[], choices=METHODS, help="methods to run again, whatever is kept")
    parser.add_argument("--only-cached", action="store_true", help="report what is kept, run nothing")
    return parser.parse_args()


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


def answer(table: str, method: str, task: Task, timeout: float, again: bool, only_cached: bool) -> Answer | str:
    """The kept answer to exactly this task, or a new one, which is kept; or why there is none."""
    digest = hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in task)).hexdigest()[:12]
    place = cache() / "density" / f"{table}-{task.seed}-{METHODS[method].script}-{digest}.npz"
    if place.exists() and not again:
        return load_answer(place)
    if only_cached:
        return "not run"
    place.unlink(missing_ok=True)
    print(f"{table}, seed {task.seed}, {method} ...", end=" ", flush=True)
    found = ask(method, task, timeout)
    if isinstance(found, Answer):
        place.parent.mkdir(parents=True, exist_ok=True)
        save_answer(found, place)
        print(f"{found.nats.mean(1).round(3)}, {found.fit_seconds:.1f} s + {found.score_seconds:.1f} s", flush=True)
    else:
        print(found, flush=True)
    return found


# The report


def report(results: Results, tables: list[str], methods: list[str], seeds: range) -> str:
    lines = [
        f"Nats per row (mean ± standard deviation over {len(seeds)} seeds); in brackets the paired difference to anyorder ± its",
        "standard error over seeds; CPU seconds to fit and to score.",
        "",
        f"| table | method | {' | '.join(QUESTIONS)} | fit | score |",
        "|---|---|" + "---|" * len(QUESTIONS) + "---|---|",
    ]
    for table in tables:
        for method in methods:
            answers = [results[table, method, seed] for seed in seeds]
            ours = [results.get((table, "anyorder", seed), "not run") for seed in seeds]
            good = [(mine, other) for mine, other in zip(answers, ours, strict=True) if isinstance(mine, Answer)]
            if len(good) == len(answers):
                lines.append(f"| {table} | {method} | {' | '.join(cells(good))} |")
            else:
                why = next(a for a in answers if isinstance(a, str))
                lines += [f"| {table} | {method} | {why} | | | | |"] if why not in ("numbers only", "not run") else []
    return "\n".join(lines)


def cells(answers: list[tuple[Answer, Answer | str]]) -> list[str]:
    nats = np.array([mine.nats.mean(1) for mine, _ in answers])  # (seed, question)
    ours = np.array([other.nats.mean(1) for mine, other in answers if isinstance(other, Answer) and other is not mine])
    out = []
    for i in range(nats.shape[1]):
        text = f"{nats[:, i].mean():.2f} ± {nats[:, i].std(ddof=1):.2f}"
        if len(ours) == len(nats):
            away = nats[:, i] - ours[:, i]
            text += f" ({away.mean():+.2f} ± {away.std(ddof=1) / len(away) ** 0.5:.2f})"
        out.append("" if np.isnan(nats[:, i]).any() else text)
    costs = ([mine.fit_seconds for mine, _ in answers], [mine.score_seconds for mine, _ in answers])
    return [*out, *(f"{np.mean(cost):.0f} s" for cost in costs)]


if __name__ == "__main__":
    main()
