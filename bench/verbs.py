"""How fast the verbs of a table are, in CPU time of one thread on Adult, next to another version of anyorder in the same run.

    git worktree add ../before 6375aa8                    # version 0.1
    python bench/verbs.py --against ../before

Every version fits the same training rows and is asked the same; each verb is timed the second time it is used, and the first
time beside it. Nats are those of 1000 rows that neither has seen. Last, how the time of a fit grows with its effort.
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
from results import Results, flags

HERE = Path(__file__).parent
ROWS = 1000
EFFORTS, EFFORT_ROWS = (0.25, 0.5, 1.0), 10_000


def main() -> None:
    args = arguments()
    if args.measure:
        print(json.dumps(MEASURES[args.measure](args.rows, args.effort)))
        return
    results = Results.open("verbs", args, "Verbs of a table", ("verb", "version"), protocol="timing")
    versions = {"now": HERE.parent, **({"before": args.against} if args.against else {})}
    for seed in args.seeds:
        for version, folder in versions.items():
            for verb, scores in of_version(folder, "verbs", args).items():
                results.add(in_unit(verb, scores), verb=verb, version=version, seed=seed)
        for effort, spent in of_version(HERE.parent, "efforts", args).items():
            results.add({"CPU s": spent}, verb=f"fit of {EFFORT_ROWS:,} rows, effort {effort}", version="now", seed=seed)
    results.print()


def in_unit(verb: str, scores: Any) -> dict[str, float]:
    """CPU milliseconds a row the first time and then; of a fit its seconds, of the model its nats."""
    if isinstance(scores, float):
        return {"nats a row" if verb == "nats" else "CPU s": scores}
    return {
        f"{when}, CPU ms a row": 1e3 * scores[what] / scores["rows"]
        for when, what in (("first time", "first"), ("then", "second"))
    }


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, ["adult"])
    parser.add_argument("--against", type=Path, help="the root of another version's source")
    parser.add_argument("--rows", type=int, default=0, help="of Adult's training part; 0: all")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    args: argparse.Namespace = parser.parse_args()
    return args


def of_version(folder: Path, what: str, args: argparse.Namespace) -> dict[str, Any]:
    """What a process of its own measures with the source in this folder."""
    environment = os.environ | {"PYTHONPATH": str(folder.resolve() / "src"), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(HERE / "verbs.py"), "--measure", what, "--rows", str(args.rows)]
    command += ["--effort", str(args.effort)]
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


def measure_verbs(rows: int, effort: float) -> dict[str, Any]:
    import torch

    from anyorder.estimator import AnyOrder
    from anyorder.modalities.tables.ranges import Between

    torch.set_num_threads(1)
    train, test = adult(rows)
    gaps = test.mask(np.random.default_rng(0).random(test.shape) < 0.2)
    start = time.process_time()
    model = AnyOrder(effort=effort).fit(train)
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


def measure_efforts(rows: int, effort: float) -> dict[str, Any]:
    """CPU seconds of a fit, by effort."""
    import torch

    from anyorder.estimator import AnyOrder

    torch.set_num_threads(1)
    train, _ = adult(min(rows or EFFORT_ROWS, EFFORT_ROWS))
    found = {}
    for factor in EFFORTS:
        start = time.process_time()
        AnyOrder(effort=factor * effort).fit(train)
        found[str(factor)] = time.process_time() - start
    return found


MEASURES: dict[str, Callable[[int, float], dict[str, Any]]] = {"verbs": measure_verbs, "efforts": measure_efforts}


def cpu_seconds(rows: int, action: Callable[[], Any]) -> dict[str, float]:
    """Of the first time and of the second one, and how many rows it was about."""
    out = []
    for _ in range(2):
        start = time.process_time()
        action()
        out.append(time.process_time() - start)
    return {"first": out[0], "second": out[1], "rows": rows}


if __name__ == "__main__":
    main()
