"""How long the studio takes to redraw as a slider moves, on Adult: exact evidence and ranges, through the server.

python bench/studio.py [--effort 1] [--rows 32561] [--model adult.ao]     # ANYORDER_DATA names the folder with the data
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from results import write_results
from starlette.testclient import TestClient

from anyorder.estimator import AnyOrder
from anyorder.studio.server import build_app
from anyorder.studio.workspace import Workspace

MOVES = 40  # of a slider


def asked(client: TestClient, values: list[object], known: dict[str, object]) -> list[float]:
    """Seconds of each answer, as one condition takes these values in turn."""
    seconds = []
    for value in values:
        given = json.dumps({**known, "age": value})
        start = time.perf_counter()
        answer = client.get("/ask.json", params={"model": "m1", "target": "income", "given": given})
        seconds.append(time.perf_counter() - start)
        assert answer.status_code == 200, answer.text
    return seconds


def said(seconds: list[float]) -> dict[str, float]:
    return {"median": round(float(np.median(seconds)), 4), "p95": round(float(np.quantile(seconds, 0.95)), 4)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=32561)
    parser.add_argument("--model", type=Path, help="instead of training one")
    options = parser.parse_args()
    if options.model:
        model = AnyOrder.load(options.model)
    else:
        adult = pd.read_csv(Path(os.environ["ANYORDER_DATA"]) / "tabular" / "adult_train.csv.gz")
        model = AnyOrder(effort=options.effort).fit(adult.head(options.rows))
    space = Workspace()
    space.add_model("adult.ao", model)
    client = TestClient(build_app(space, "bench"), base_url="http://127.0.0.1", headers={"X-Studio-Token": "bench"})
    known = {"sex": "Female", "education": "Bachelors"}
    asked(client, [40], known)  # the marginal is remembered from the first answer on
    ages = [int(age) for age in np.linspace(18, 80, MOVES)]
    scores = {
        "exact evidence, seconds": said(asked(client, list(ages), known)),
        "ranges, seconds": said(asked(client, [{"low": age, "high": age + 10} for age in ages], known)),
    }
    for name, one in scores.items():
        print(f"{name}: median {one['median']:.3f}, p95 {one['p95']:.3f}")
    write_results(Path(__file__).parent / "results" / "studio.json", "studio", vars(options), scores)


if __name__ == "__main__":
    main()
