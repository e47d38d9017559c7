"""How memory and time grow with rows and processes: a streamed fit, batches by one and two workers, two ranks of one training.

Run from the root: python bench/scale.py --rows 1000000 --out bench/results/scale.json
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from results import Results, flags

ROWS_OF_FILE, ROWS_OF_GROUP = 250_000, 62_500
PEAK = "import resource, sys; from anyorder.cli import main\ntry: main()\nfinally: print('PEAK', resource.getrusage("
PEAK += "resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"


def people(rows: int, seed: int) -> pa.Table:
    """Ten columns that depend on each other; a tenth of two of them missing."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 8, rows)
    base = rng.normal(0, 1, rows) + city / 4
    columns: dict[str, Any] = {"city": np.array(["Oslo", "Rome", "Bergen", "Paris", "Lima", "Bonn", "Kyiv", "Cork"])[city]}
    for place in range(7):
        columns[f"x{place}"] = (base * (place + 1) + rng.normal(0, 1, rows)).round(2)
    columns["age"] = np.clip(40 + 10 * base + rng.normal(0, 5, rows), 0, 99).astype(int)
    columns["member"] = base + rng.normal(0, 1, rows) > 0
    masks = {"x0": rng.random(rows) < 0.1, "city": rng.random(rows) < 0.1}
    return pa.table({name: pa.array(values, mask=masks.get(name)) for name, values in columns.items()})


def make(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True)
    for number in range(-(-rows // ROWS_OF_FILE)):
        size = min(ROWS_OF_FILE, rows - number * ROWS_OF_FILE)
        pq.write_table(people(size, number), folder / f"{number:03d}.parquet", row_group_size=ROWS_OF_GROUP)


def measured(*arguments: object) -> dict[str, Any]:
    """Seconds and peak memory (MB) of a command, and its JSON document."""
    start = time.monotonic()
    command = [sys.executable, "-c", PEAK, *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(done.stderr)
    peak = re.search(r"PEAK (\d+)", done.stderr)
    document = json.loads(done.stdout)
    return {"seconds": time.monotonic() - start, "peak_mb": int(peak[1]) / 1024 if peak else None, "document": document}


def study(results: Results, rows: list[int], answered: int, effort: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for count in rows:
            make(place / f"in{count}", count)
            found = measured("fit", place / f"in{count}" / "*.parquet", "-o", place / "m.ao", "--effort", effort)
            nats = found["document"]["held_out_nats"]
            score = {"seconds": found["seconds"], "peak MB": found["peak_mb"], "held-out nats": nats}
            results.add(score, what=f"fit {count:,} rows", seed=0)
        make(place / "answer", answered)
        for workers in (1, 2):
            out = place / f"out{workers}"
            document = measured("impute", place / "m.ao", place / "answer", "-o", out, "--workers", workers)["document"]
            score = {"rows a second": document["rows"] / document["seconds"], "peak MB": document["peak"] / 2**20}
            results.add(score, what=f"impute {answered:,} rows, workers: {workers}", seed=0)
        pairs = [(one, place / "out2" / one.name) for one in (place / "out1").glob("*.parquet")]
        if not all(one.read_bytes() == two.read_bytes() for one, two in pairs):
            raise SystemExit("One worker and two gave other files: this is a fault, please report it.")
        results.note("The files of one worker and of two are the same to the bit.")


def main() -> None:
    parser = flags(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--answered", type=int, default=50_000)
    args = parser.parse_args()
    results = Results.open("scale", args, "Streamed fits and batches", keys=("what",), protocol="measured once")
    study(results, args.rows, args.answered, args.effort)
    results.print()


if __name__ == "__main__":
    main()
