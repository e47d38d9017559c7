"""Filling the gaps of tables: anyorder and its peers on the same rows and the same hidden cells.

    python bench/imputation.py --tables energy yacht --mechanisms mcar20 mar20 --methods anyorder utrees knn --splits 4 --draws 20
    python bench/imputation.py --target --tables energy yacht concrete wine --splits 4

Every answer is kept in `$ANYORDER_PEERS/results` and not asked for again, unless its method is named after `--again`. Numbers are
scored in training standard deviations: RMSE of the best guess, CRPS of the draws (the fair estimate; without draws the absolute
error). Coverage of anyorder is that of columns without frequent values. Differences are to anyorder, on the same cells, with
their standard error over splits. `--target` predicts one column given all others.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
from imputation_report import Results, print_report
from imputation_scores import Filled, score
from last_column import compare_on_target
from peers import PEERS, ask, cache
from peers.exchange import Answer, Task, load_answer, save_answer
from tables import SOURCES, Cells, Mask, gaps, load_split


def main() -> None:
    args = arguments()
    if args.target:
        compare_on_target(args.tables, range(args.splits), "anyorder" in args.methods)
        return
    results: Results = {}
    for table in args.tables:
        for split in range(args.splits):
            task = task_of(table, args.mechanisms, split, args.draws)
            for method in args.methods:
                name = f"{table}-{split}-{method}-{args.draws}"
                if not args.only_cached:
                    ask_what_is_missing(name, method, task, args.timeout, method in args.again)
                for mechanism, test in zip(args.mechanisms, task.tests, strict=True):
                    answer = kept(name, task, test)
                    results[table, mechanism, method, split] = (
                        answer if isinstance(answer, str) else score(filled(task, test, answer))
                    )
    print_report(results, args.draws)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["energy", "yacht", "concrete", "wine"], choices=SOURCES)
    parser.add_argument("--mechanisms", nargs="+", default=["mcar20", "mcar50"], help="mcar, mar or mnar with a rate: mar20")
    parser.add_argument("--methods", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=600, help="seconds per table, split, method and mechanism")
    parser.add_argument("--again", nargs="*", default=[], choices=PEERS, help="methods to run again, whatever is kept")
    parser.add_argument("--only-cached", action="store_true", help="report what is kept, run nothing")
    parser.add_argument("--target", action="store_true", help="one column given all others, against regressors")
    return parser.parse_args()


def task_of(table: str, mechanisms: list[str], split: int, draws: int) -> Task:
    rows = load_split(table, split)
    tests = [np.where(gaps(rows.test, mechanism, split), np.nan, rows.test) for mechanism in mechanisms]
    return Task(rows.train, np.stack(tests), rows.test, rows.levels, draws, split)


def ask_what_is_missing(name: str, method: str, task: Task, timeout: float, again: bool) -> None:
    """One call with all tests that have no answer yet; answers and reasons for having none are written down."""
    missing = [test for test in task.tests if again or not any(path.exists() for path in places(name, task, test))]
    if not missing:
        return
    print(f"{name}, {len(missing)} test(s) ...", end=" ", flush=True)
    answers = ask(method, task._replace(tests=np.stack(missing)), timeout * len(missing))
    for test, answer in zip(missing, answers, strict=True):
        answered, failed = places(name, task, test)
        answered.parent.mkdir(parents=True, exist_ok=True)
        answered.unlink(missing_ok=True)
        failed.unlink(missing_ok=True)
        if isinstance(answer, str):
            failed.write_text(answer)
            print(answer, end=" ", flush=True)
        else:
            save_answer(hidden_only(task, test, answer), answered)
            print(f"{answer.fit_seconds:.1f} s + {answer.impute_seconds:.1f} s", end=" ", flush=True)
    print()


def places(name: str, task: Task, test: Cells) -> tuple[Path, Path]:
    """Where the answer to exactly these cells is kept, and where the reason if there is none."""
    digest = hashlib.sha256(b"".join(part.tobytes() for part in (task.train, test, task.levels))).hexdigest()[:12]
    folder = cache() / "results"
    return folder / f"{name}-{digest}.npz", folder / f"{name}-{digest}.txt"


def kept(name: str, task: Task, test: Cells) -> Answer | str:
    answered, failed = places(name, task, test)
    if answered.exists():
        return load_answer(answered)
    return failed.read_text() if failed.exists() else "not run"


def hidden_only(task: Task, test: Cells, answer: Answer) -> Answer:
    """What is worth keeping: the filled cells, not the known ones."""
    hidden = hidden_cells(task, test)
    more = {name: cells[hidden] if cells.shape == hidden.shape else cells for name, cells in answer.more.items()}
    return answer._replace(draws=answer.draws[:, hidden], more=more)


def hidden_cells(task: Task, test: Cells) -> Mask:
    return np.isnan(test) & np.isfinite(task.truth)


def filled(task: Task, test: Cells, answer: Answer) -> Filled:
    hidden = hidden_cells(task, test)
    scale = np.where(task.levels > 0, 0.0, np.nanstd(task.train, axis=0))
    nats, pit = answer.more.get("nats"), answer.more.get("pit")
    if pit is not None:
        pit = np.where(np.broadcast_to(continuous(task), hidden.shape)[hidden], pit, np.nan)
    return Filled(
        truth=task.truth[hidden],
        draws=answer.draws,
        scale=np.broadcast_to(scale, hidden.shape)[hidden],
        mean=answer.more.get("mean"),
        pit=pit,
        nats=None if nats is None else float(nats.sum() / hidden.sum()),
        fit_seconds=answer.fit_seconds,
        ms_per_row_and_draw=1e3 * answer.impute_seconds / (len(test) * len(answer.draws)),
        peak_mb=answer.peak_mb,
    )


def continuous(task: Task) -> Mask:
    """Columns of numbers in which no value makes up more than a twentieth of the training rows."""
    most = [np.unique(column[np.isfinite(column)], return_counts=True)[1].max(initial=0) for column in task.train.T]
    return (np.array(most) <= 0.05 * len(task.train)) & (task.levels == 0)


if __name__ == "__main__":
    main()
