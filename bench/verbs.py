"""How fast the verbs of a table are, in CPU time of one thread on Adult, next to another version of anyorder in the same run.

    git worktree add ../before 6375aa8                    # version 0.1
    python bench/verbs.py --against ../before --out bench/results/verbs.json

Every version fits the same training rows and is asked the same; each verb is timed the second time it is used, and the first
time beside it. Nats are those of 1000 rows that neither has seen. `wanted` is the ratio to version 0.1 that was the goal. Last,
how the time of a fit grows with its effort.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
ROWS = 1000
EFFORTS, EFFORT_ROWS = (0.25, 0.5, 1.0), 10_000
MS = dict.fromkeys(("one row", "one range", "conditional", "next_best"), "ms")
UNITS = {"fit": "CPU s", "nats": "nats a row", **MS}  # all others: rows a CPU s
WANTED = {"fit": 0.53, "sample": 9.6, "score_samples": 10.4, "anomalies": 10.2, "intervals": 4.6}
WANTED |= {"one row": 1 / 3.9, "one range": 1 / 7, "next_best": 1 / 2.7}


def main() -> None:
    args = arguments()
    if args.measure:
        print(json.dumps(MEASURES[args.measure](args.rows)))
        return
    versions = {"now": HERE.parent, **({"before": args.against} if args.against else {})}
    found = {name: of_version(folder, "verbs", args.rows) for name, folder in versions.items()}
    print_table(found)
    efforts = of_version(HERE.parent, "efforts", args.rows)
    print_efforts(efforts)
    if args.out:
        from results import commit, write_results

        settings = {"against": commit(args.against) if args.against else None, "rows": args.rows, "wanted_ratios": WANTED}
        write_results(args.out, "verbs", settings, {**found, "fit_cpu_seconds_by_effort": efforts}, args.against)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="the root of another version's source")
    parser.add_argument("--rows", type=int, default=0, help="of Adult's training part; 0: all")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    return parser.parse_args()


def of_version(folder: Path, what: str, rows: int) -> dict[str, Any]:
    """What a process of its own measures with the source in this folder."""
    environment = os.environ | {"PYTHONPATH": str(folder.resolve() / "src"), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(HERE / "verbs.py"), "--measure", what, "--rows", str(rows)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{folder}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def adult(rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """So many training rows, 0 for all, and test rows."""
    sys.path.insert(0, str(HERE))
    from tables import data_folder

    folder = data_folder() / "tabular"
    train, test = (pd.read_csv(folder / f"adult_{part}.csv.gz") for part in ("train", "test"))
    return train[: rows or None], test[:ROWS]


def measure_verbs(rows: int) -> dict[str, Any]:
    import torch

    from anyorder.estimator import AnyOrder
    from anyorder.modalities.tables.ranges import Between

    torch.set_num_threads(1)
    train, test = adult(rows)
    gaps = test.mask(np.random.default_rng(0).random(test.shape) < 0.2)
    start = time.process_time()
    model = AnyOrder().fit(train)
    spent = time.process_time() - start
    verbs: dict[str, tuple[int, Callable[[], Any]]] = {
        "sample": (ROWS, lambda: model.sample(ROWS)),
        "score_samples": (ROWS, lambda: model.score_samples(test)),
        "anomalies": (ROWS, lambda: model.anomalies(test)),
        "intervals": (ROWS, lambda: model.intervals(gaps)),
        "transform": (ROWS, lambda: model.transform(gaps)),
        "predict": (ROWS, lambda: model.predict(test, "income")),
        "impute, 5 draws": (ROWS, lambda: model.impute(gaps, draws=5)),
        "one row": (1, lambda: model.transform(gaps[3:4])),
        "one range": (1, lambda: model.conditional({"age": Between(30, 40), "education": "Masters"}, "income")),
        "conditional": (1, lambda: model.conditional({"age": 40, "sex": "Female", "education": "Masters"}, "income")),
        "next_best": (1, lambda: model.next_best({"age": 40, "sex": "Female"}, "income")),
    }
    return {"fit": spent, "nats": -model.score(test), **{verb: cpu_seconds(*work) for verb, work in verbs.items()}}


def measure_efforts(rows: int) -> dict[str, Any]:
    """CPU seconds of a fit, by effort."""
    import torch

    from anyorder.estimator import AnyOrder

    torch.set_num_threads(1)
    train, _ = adult(min(rows or EFFORT_ROWS, EFFORT_ROWS))
    found = {}
    for effort in EFFORTS:
        start = time.process_time()
        AnyOrder(effort=effort).fit(train)
        found[str(effort)] = time.process_time() - start
    return found


MEASURES: dict[str, Callable[[int], dict[str, Any]]] = {"verbs": measure_verbs, "efforts": measure_efforts}


def cpu_seconds(rows: int, action: Callable[[], Any]) -> dict[str, float]:
    """Of the first time and of the second one, and how many rows it was about."""
    out = []
    for _ in range(2):
        start = time.process_time()
        action()
        out.append(time.process_time() - start)
    return {"first": out[0], "second": out[1], "rows": rows}


def print_table(found: dict[str, dict[str, Any]]) -> None:
    table = Table(title="Adult, one thread")
    for heading in ("", "unit", *(f"{name}{when}" for name in found for when in (", first time", ", then")), "ratio", "wanted"):
        table.add_column(heading, justify="left" if heading in ("", "unit") else "right")
    for verb in found["now"]:
        unit = UNITS.get(verb, "rows a CPU s")
        cells, last = [], []
        for version in found.values():
            one = version[verb]
            values = (
                [one, one] if isinstance(one, float) else [in_unit(one["rows"] / one[when], unit) for when in ("first", "second")]
            )
            cells += [f"{value:.4g}" for value in values]
            last.append(values[1])
        ratio = f"{last[0] / last[1]:.2f}" if len(last) > 1 else ""
        table.add_row(verb, unit, *cells, ratio, f"{WANTED[verb]:.2f}" if verb in WANTED else "")
    Console(width=130).print(table)


def print_efforts(found: dict[str, float]) -> None:
    table = Table(title=f"Fits of up to {EFFORT_ROWS:,} rows")
    for heading in ("effort", "CPU s", "of that of effort 1"):
        table.add_column(heading, justify="right")
    for effort, spent in found.items():
        table.add_row(effort, f"{spent:.1f}", f"{spent / found['1.0']:.2f}")
    Console(width=130).print(table)


def in_unit(rows_a_second: float, unit: str) -> float:
    return 1e3 / rows_a_second if unit == "ms" else rows_a_second


if __name__ == "__main__":
    main()
