"""A studio with a small table and hardly trained models of it and of tiny images, asked without a browser."""

import time

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="the extra `studio` is not installed")

from starlette.testclient import TestClient

from anyorder import AnyOrder
from anyorder.modalities.registry import modality_of
from anyorder.studio.server import build_app
from anyorder.studio.workspace import Workspace

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
        self.client = TestClient(build_app(space, TOKEN), base_url="http://127.0.0.1", raise_server_exceptions=False)
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


@pytest.fixture(scope="session")
def people():
    return make_people()


@pytest.fixture(scope="session")
def people_model(people):
    return AnyOrder(effort=0.01).fit(people)


@pytest.fixture(scope="session")
def tiny_images():
    """Bars that stand or lie, black and white, 6 by 6."""
    rng = np.random.default_rng(0)
    images = np.zeros((40, 6, 6), dtype=np.uint8)
    for number, image in enumerate(images):
        place = rng.integers(6)
        image[(slice(None), place) if number % 2 else (place, slice(None))] = 255
    return images, ["lies", "stands"] * 20


@pytest.fixture(scope="session")
def image_model(tiny_images):
    return AnyOrder(effort=0.005).fit(*tiny_images)


@pytest.fixture
def studio(tmp_path, people, people_model, tiny_images, image_model):
    """With a table d1, images d2, and their models m3 and m4."""
    space = Workspace(tmp_path / "models")
    space.add_data("people.csv", modality_of(people), people)
    space.add_data("bars", modality_of(tiny_images[0]), *tiny_images)
    space.add_model("people.ao", people_model, "d1")
    space.add_model("bars.ao", image_model, "d2")
    yield Studio(space)
    space.close()
