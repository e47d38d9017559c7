"""How memory and time grow with rows and processes: a streamed fit, batches by one and two workers, two ranks of one training.

Run from the root: python bench/scale.py --rows 1000000 --out bench/results/scale.json
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


def study(rows: list[int], answered: int, effort: float) -> dict[str, Any]:
    scores: dict[str, Any] = {"fit": [], "impute": []}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for count in rows:
            make(place / f"in{count}", count)
            found = measured("fit", place / f"in{count}" / "*.parquet", "-o", place / "m.ao", "--effort", effort)
            nats = found["document"]["held_out_nats"]
            scores["fit"].append({"rows": count, "seconds": found["seconds"], "peak_mb": found["peak_mb"], "held_out_nats": nats})
            print(scores["fit"][-1], flush=True)
        make(place / "answer", answered)
        for workers in (1, 2):
            out = place / f"out{workers}"
            document = measured("impute", place / "m.ao", place / "answer", "-o", out, "--workers", workers)["document"]
            speed = document["rows"] / document["seconds"]
            scores["impute"].append({"workers": workers, "rows_a_second": speed, "peak_mb_a_worker": document["peak"] / 2**20})
            print(scores["impute"][-1], flush=True)
        pairs = [(one, place / "out2" / one.name) for one in (place / "out1").glob("*.parquet")]
        scores["same_bits"] = all(one.read_bytes() == two.read_bytes() for one, two in pairs)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--answered", type=int, default=50_000)
    parser.add_argument("--effort", type=float, default=0.1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    about = {
        "command": "python bench/scale.py " + " ".join(sys.argv[1:]),
        "commit": subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, shared with other work (load {os.getloadavg()[0]:.1f})",
        "settings": {"rows": given.rows, "answered": given.answered, "effort": given.effort, "columns": 10},
    }
    text = json.dumps({**about, "scores": study(given.rows, given.answered, given.effort)}, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
