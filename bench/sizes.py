"""Tables of unusual sizes: what a fit takes, in time and memory, and whether its answers are any good.

    python bench/sizes.py
    python bench/sizes.py --data wide short --rows 100 --out out/sizes.json        # a trial

Tables hold numbers and categories with a few factors behind them, as in `speed.py`. Every size has a process of its own. Memory
is the peak of that process, of which `before` was needed to make the table. Questions are asked twice and timed both times, in
CPU time. The last one asks for a category given another: how far are its probabilities from the shares among matching rows?
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from peers.filling.exchange import peak_mb
from results import Results, flags
from speed import mixed_table

from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.ranges import Between

KNOWN, ASKED = "c3", "c7"  # the first two categories: 3 and 12 levels


class Size(NamedTuple):
    rows: int
    columns: int
    effort: float


SIZES = {"wide": Size(500, 2000, 0.1), "short": Size(30, 2000, 0.1), "million": Size(1_000_000, 10, 1.0)}


def main() -> None:
    args = arguments()
    if args.measure:
        print(json.dumps(measure(size_of(args.measure, args))))
        return
    results = Results.open("sizes", args, "Tables of unusual sizes", ("size", "rows", "effort"), protocol="timing")
    for seed in args.seeds:
        for name in args.tables:
            size = size_of(name, args)
            key = {"size": name, "rows": f"{size.rows} x {size.columns}", "effort": f"{size.effort:g}", "seed": seed}
            if not results.has(**key):
                results.add(in_own_process(name, args), **key)
    results.print()


def arguments() -> argparse.Namespace:
    parser = flags(__doc__, SIZES)
    parser.add_argument("--rows", type=int, help="at most, for a trial")
    parser.add_argument("--columns", type=int, help="at most, for a trial")
    parser.add_argument("--measure", choices=SIZES, help=argparse.SUPPRESS)
    args: argparse.Namespace = parser.parse_args()
    return args


def size_of(name: str, args: argparse.Namespace) -> Size:
    rows, columns, effort = SIZES[name]
    return Size(min(rows, args.rows or rows), min(columns, args.columns or columns), args.effort * effort)


def in_own_process(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """What is measured, or why nothing was."""
    given = {"--rows": args.rows, "--columns": args.columns, "--effort": args.effort}
    options = [word for option, value in given.items() if value for word in (option, str(value))]
    command = [sys.executable, __file__, "--measure", name, *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"])[-1][:300]}
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def measure(size: Size) -> dict[str, Any]:
    torch.set_num_threads(1)
    table = mixed_table(size.rows, size.columns)
    before = peak_mb()
    wall, cpu = time.perf_counter(), time.process_time()
    model = AnyOrder(effort=size.effort).fit(table)
    found: dict[str, Any] = {"fit_seconds": time.perf_counter() - wall, "fit_cpu_seconds": time.process_time() - cpu}
    found |= {"peak_mb": peak_mb(), "before_mb": before}
    given: dict[str, Any] = {}
    for name, what in conditions(table).items():
        given[name] = what
        first, then = cpu_ms(lambda given=dict(given): model.conditional(given, ASKED))  # type: ignore[misc]
        found |= {f"ms, {len(given)} given": first, f"ms, {len(given)} given, then": then}
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        found["file_mb"] = Path(folder, "model").stat().st_size / 2**20
    return found | against_shares(model, table)


def conditions(table: pd.DataFrame) -> dict[str, Any]:
    """A value and two ranges, each of the middle half of a column."""
    ranges = {name: Between(*(float(end) for end in table[name].quantile([0.25, 0.75]))) for name in ("x0", "x1")}
    return {KNOWN: "level 0", **ranges}


def cpu_ms(action: Callable[[], Any]) -> tuple[float, float]:
    """Of the first time and of the second one."""
    out = []
    for _ in range(2):
        start = time.process_time()
        action()
        out.append(1e3 * (time.process_time() - start))
    return out[0], out[1]


def against_shares(model: AnyOrder, table: pd.DataFrame) -> dict[str, float]:
    """The largest distance between the probability of a level and its share among the rows that match."""
    rows = table[table[KNOWN] == "level 0"]
    shares = rows[ASKED].value_counts(normalize=True)
    said = model.conditional({KNOWN: "level 0"}, ASKED).pmf()
    return {"matching_rows": len(rows), "largest_distance": max(abs(p - shares.get(level, 0.0)) for level, p in said.items())}


if __name__ == "__main__":
    main()
