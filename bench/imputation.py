"""Filling the gaps of tables: anyorder and its peers on the same rows and the same hidden cells.

    python bench/imputation.py --tables energy yacht --mechanisms mcar20 mar20 --methods anyorder utrees mice --seeds 0-3
    python bench/imputation.py --tables energy --before ../before --methods anyorder --seeds 0-3
    python bench/imputation.py --iscore --tables adult california --methods anyorder argn --seeds 0-3
    python bench/imputation.py --seeds 1000-1019                     # the report

Every answer is kept in `$ANYORDER_PEERS/results` and not asked for again, unless its method is named after `--again`; those of
anyorder belong to its sources. Numbers are scored in training standard deviations. RMSE of the mean of the draws, and of the best
guess of those who have one beside draws or instead of them; CRPS of the draws (the fair estimate), absolute error of those who do
not draw. Coverage of anyorder is exact, by its cdf, on columns without frequent values; that of peers comes from the draws, which
show about .9 (k - 1) / (k + 1) for a perfect sampler, on all columns of numbers. Differences are to anyorder, on the same cells.

`--before` names the root of another checkout (`git worktree add ../before 6375aa8`); its anyorder is one more method, `before`.
`--iscore` scores columns by their real gaps, without hiding cells at random: see `energy_iscore`. With a mechanism, gaps are
put into training and test rows first.
"""

import argparse
import hashlib
import itertools
from pathlib import Path

import numpy as np
from imputation_scores import Filled, HiddenColumn, IScores, column_energy, energy_iscore, score
from peers import BENCH
from peers import cache as peers_folder
from peers.filling import PEERS, ask
from peers.filling.exchange import Answer, Task, load_answer, save_answer
from results import Results, flags, sources
from tables import SOURCES, Cells, Mask, gaps, load_split

NOT_RUN = "not run"
COMPARED = ("rmse, mean of draws", "rmse, best guess", "crps")
REAL = "real"  # the gaps that a table came with


def main() -> None:
    args = arguments()
    if args.iscore:
        by_iscore(args).print()
    else:
        by_truth(args).print((*COMPARED, "absolute error"))


def by_truth(args: argparse.Namespace) -> Results:
    """Scores of cells that were hidden."""
    results = Results.open("imputation", args, "Filling gaps", ("table", "gaps", "method"), COMPARED)
    for seed, table in itertools.product(args.seeds, args.tables):
        task = task_of(table, args.mechanisms, seed, args.draws)
        for method in args.methods:
            if method not in args.again and all(
                results.has(table=table, gaps=m, method=method, seed=seed) for m in args.mechanisms
            ):
                continue
            answers = answers_of(args, table, method, task)
            for mechanism, test, answer in zip(args.mechanisms, task.tests, answers, strict=True):
                if answer == NOT_RUN:
                    continue
                told = {"failed": answer} if isinstance(answer, str) else score(filled(task, test, answer)).by_name()
                results.add(told, table=table, gaps=mechanism, method=method, seed=seed)
    return results


def by_iscore(args: argparse.Namespace) -> Results:
    """Scores of columns that have gaps."""
    results = Results.open("imputation_iscore", args, "Columns with real gaps", ("table", "gaps", "method"), ("iscore",))
    for seed, table, mechanism in itertools.product(args.seeds, args.tables, args.mechanisms):
        task, columns = iscore_task(table, mechanism, seed, args.draws)
        for method in args.methods:
            if method not in args.again and results.has(table=table, gaps=mechanism, method=method, seed=seed):
                continue
            answers = answers_of(args, table, method, task)
            told = [answer for answer in answers if not isinstance(answer, str)]
            why = [answer for answer in answers if isinstance(answer, str)]
            found = {"failed": why[0]} if why else iscores(task, columns, told).by_name()
            results.add(found, table=table, gaps=mechanism, method=method, seed=seed)
    return results


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, SOURCES, ["energy", "yacht", "concrete", "wine"])
    parser.add_argument("--mechanisms", nargs="+", help="mcar, mar or mnar with a rate: mar20 (with --iscore also: real)")
    parser.add_argument("--methods", nargs="+", default=[name for name in PEERS if name != "before"], choices=PEERS)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=600, help="seconds per table, seed, method and mechanism (or column)")
    parser.add_argument("--again", nargs="*", default=[], choices=PEERS, help="methods to run again, whatever is kept")
    parser.add_argument("--only-cached", action="store_true", help="report what is kept, run nothing")
    parser.add_argument("--before", type=Path, help="the root of another checkout of anyorder, to compare with")
    parser.add_argument("--iscore", action="store_true", help="score columns with real gaps, which have no truth")
    args: argparse.Namespace = parser.parse_args()
    args.mechanisms = args.mechanisms or ([REAL] if args.iscore else ["mcar20", "mcar50"])
    if REAL in args.mechanisms and not args.iscore:
        parser.error("the truth behind real gaps is not known: they need --iscore")
    if args.before and "before" not in args.methods:
        args.methods.append("before")
    if "before" in args.methods and not args.before:
        parser.error("the method before needs --before FOLDER")
    return args


def task_of(table: str, mechanisms: list[str], seed: int, draws: int) -> Task:
    rows = load_split(table, seed)
    tests = [np.where(gaps(rows.test, mechanism, seed), np.nan, rows.test) for mechanism in mechanisms]
    return Task(rows.train, np.stack(tests), rows.test, rows.levels, draws, seed)


def iscore_task(table: str, mechanism: str, seed: int, draws: int) -> tuple[Task, dict[str, int]]:
    """For each column with gaps one test, in which it is hidden from all rows; and these columns by name."""
    rows = load_split(table, seed)
    both = np.concatenate([rows.train, rows.test])
    if mechanism != REAL:
        both[gaps(both, mechanism, seed)] = np.nan
    train, test = np.split(both, [len(rows.train)])
    columns = {name: i for i, name in enumerate(rows.names) if np.isnan(both[:, i]).any()}
    if not columns:
        raise SystemExit(f"{table} has no gaps of its own: put some into it, with --mechanisms mcar20 for instance.")
    tests = np.repeat(test[None], len(columns), axis=0)
    for k, i in enumerate(columns.values()):
        tests[k, :, i] = np.nan
    return Task(train, tests, test, rows.levels, draws, seed), columns


def answers_of(args: argparse.Namespace, table: str, method: str, task: Task) -> list[Answer | str]:
    """To each test, from what is kept, else from the peer."""
    folder = {"anyorder": BENCH.parent, "before": args.before}.get(method)
    effort = f"-{args.effort:g}" if folder and args.effort != 1 else ""
    name = f"{table}-{task.seed}-{method}{'@' + sources(folder) + effort if folder else ''}-{task.draws}"
    if not args.only_cached:
        ask_what_is_missing(name, method, task, args, folder)
    return [kept(name, task, test) for test in task.tests]


def ask_what_is_missing(name: str, method: str, task: Task, args: argparse.Namespace, folder: Path | None) -> None:
    """One call with all tests that have no answer yet; answers and reasons for having none are written down."""
    again = method in args.again
    missing = [test for test in task.tests if again or not any(path.exists() for path in places(name, task, test))]
    if not missing:
        return
    print(f"{name}, {len(missing)} test(s) ...", end=" ", flush=True)
    before = sources.__wrapped__(folder) if folder else ""
    answers = ask(method, task._replace(tests=np.stack(missing)), args.timeout * len(missing), args.effort, folder)
    if folder and before != sources.__wrapped__(folder):
        raise SystemExit("the sources of anyorder have changed meanwhile: its answers would be of two versions")
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
    folder = peers_folder() / "results"
    return folder / f"{name}-{digest}.npz", folder / f"{name}-{digest}.txt"


def kept(name: str, task: Task, test: Cells) -> Answer | str:
    answered, failed = places(name, task, test)
    if answered.exists():
        return load_answer(answered)
    return failed.read_text() if failed.exists() else NOT_RUN


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
        left=int(answer.more.get("left", np.zeros(1))[0]),
    )


def iscores(task: Task, columns: dict[str, int], answers: list[Answer]) -> IScores:
    """One answer per column, which was hidden from all rows."""
    both = np.concatenate([task.train, task.truth])
    hidden = {
        name: HiddenColumn(
            truth=task.truth[np.isfinite(task.truth[:, i]), i],
            draws=answer.draws,
            scale=0.0 if task.levels[i] else float(np.nanstd(task.train[:, i])),
            missing=float(np.isnan(both[:, i]).mean()),
        )
        for (name, i), answer in zip(columns.items(), answers, strict=True)
    }
    rows = len(task.truth) * len(answers)
    return IScores(
        iscore=energy_iscore(list(hidden.values())),
        by_column={name: column_energy(column) for name, column in hidden.items()},
        fit_seconds=answers[0].fit_seconds,
        ms_per_row_and_draw=1e3 * sum(answer.impute_seconds for answer in answers) / (rows * len(answers[0].draws)),
        peak_mb=max(answer.peak_mb for answer in answers),
    )


def continuous(task: Task) -> Mask:
    """Columns of numbers in which no value makes up more than a twentieth of the training rows."""
    most = [np.unique(column[np.isfinite(column)], return_counts=True)[1].max(initial=0) for column in task.train.T]
    return (np.array(most) <= 0.05 * len(task.train)) & (task.levels == 0)


if __name__ == "__main__":
    main()
