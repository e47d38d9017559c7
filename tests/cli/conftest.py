"""A small table of people, a model of it, and the command line called in this process."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anyorder.cli.commands import app


def make_people(rows=200, seed=0):
    """Income depends on the city; every kind of column, and a tenth of the incomes missing."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Washington, D.C."], rows)
    income = (np.select([city == "Oslo", city == "Rome"], [50.0, 20.0], 80.0) + rng.normal(0, 2, rows)).round(1)
    return pd.DataFrame(
        {
            "city": city,
            "income": np.where(rng.random(rows) < 0.1, np.nan, income),
            "age": rng.integers(20, 60, rows),
            "member": rng.random(rows) < 0.7,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D"),
            "zip": rng.choice(["1", "2", "3a"], rows),
            "name": [f"person {i}" for i in range(rows)],
        }
    )


@pytest.fixture(scope="session")
def run():
    """The command line: run("ask", model, "age") gives exit_code, stdout and stderr."""
    return lambda *args, input=None: CliRunner().invoke(app, list(map(str, args)), input=input)


@pytest.fixture(scope="session")
def people(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("people") / "people.csv"
    make_people().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def model(people, run):
    """The file of a model that was hardly trained."""
    result = run("fit", people, "--effort", "0.01")
    assert result.exit_code == 0, result.stderr
    return people.with_suffix(".ao")


@pytest.fixture
def gaps(tmp_path):
    """Twelve new people with gaps in every column."""
    table = make_people(12, seed=1).astype({"age": "Int64", "member": object})
    for place, name in enumerate(table.columns[:-1]):
        table.loc[[place, place + 5], name] = pd.NA if name != "joined" else pd.NaT
    table.to_csv(tmp_path / "gaps.csv", index=False)
    return tmp_path / "gaps.csv"
