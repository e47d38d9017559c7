"""A studio to talk to without a browser, and a small table for it."""

import time

import numpy as np
import pandas as pd
from starlette.testclient import TestClient

from anyorder.studio.server import build_app

TOKEN = "token-of-the-tests"


def make_people(rows=120, seed=0):
    """Every kind of column; income depends on the city, and a tenth of the incomes is missing."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Washington, D.C."], rows)
    income = (np.select([city == "Oslo", city == "Rome"], [50.0, 20.0], 80.0) + rng.normal(0, 2, rows)).round(1)
    table = pd.DataFrame({"city": city, "income": np.where(rng.random(rows) < 0.1, np.nan, income)})
    table["age"] = pd.array(rng.integers(20, 60, rows), dtype="Int64")
    table["member"] = rng.random(rows) < 0.7
    table["joined"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D")
    return table


class Studio:
    """The server, as a page or a program talks to it."""

    def __init__(self, space):
        self.space = space
        app = build_app(space, TOKEN)
        self.client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        self.headers = {"X-Studio-Token": TOKEN}

    def get(self, path, **params):
        return self.client.get(path, params=params, headers=self.headers)

    def post(self, path, **body):
        return self.client.post(path, json=body, headers=self.headers)

    def upload(self, *files, to="/upload/open"):
        return self.client.post(to, files=[("file", one) for one in files], headers=self.headers)

    def done(self, answer, seconds=120):
        """What came of a job."""
        assert answer.status_code == 200, answer.text
        job, end = answer.json()["job"], time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.get("/job.json", job=job).json()
            if found["state"] in ("done", "failed", "cancelled"):
                return found
            time.sleep(0.02)
        raise AssertionError(found)
