"""How long the studio takes to redraw as a slider moves, on Adult: exact evidence and ranges, through the server.

python bench/studio.py [--effort 1] [--rows 32561] [--model adult.ao]     # ANYORDER_DATA names the folder with the data
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from results import Results, flags
from starlette.testclient import TestClient

from anyorder.estimator import AnyOrder
from anyorder.studio.server import build_app
from anyorder.studio.workspace import Workspace

MOVES = 40  # of a slider


def asked(client: TestClient, values: Sequence[object], known: Mapping[str, object]) -> list[float]:
    """Seconds of each answer, as one condition takes these values in turn."""
    seconds = []
    for value in values:
        given = json.dumps({**known, "age": value})
        start = time.perf_counter()
        answer = client.get("/ask.json", params={"model": "m1", "target": "income", "given": given})
        seconds.append(time.perf_counter() - start)
        assert answer.status_code == 200, answer.text
    return seconds


def main() -> None:
    parser = flags(__doc__, ["adult"])
    parser.add_argument("--rows", type=int, default=32561)
    parser.add_argument("--model", type=Path, help="instead of training one")
    options = parser.parse_args()
    results = Results.open("studio", options, "Seconds until an answer", keys=("table", "question"), protocol="measured once")
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
    moves: dict[str, list[object]] = {
        "exact evidence": list(ages),
        "a range": [{"low": age, "high": age + 10} for age in ages],
    }
    for name, values in moves.items():
        seconds = asked(client, values, known)
        results.add(
            {"median": float(np.median(seconds)), "p95": float(np.quantile(seconds, 0.95))}, table="adult", question=name, seed=0
        )
    results.print()


if __name__ == "__main__":
    main()
