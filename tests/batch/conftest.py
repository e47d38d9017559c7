"""A small model of people in a file, and many files of people with gaps."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anyorder import AnyOrder


def people(rows, seed):
    """Income depends on the city; a fifth of the incomes and a tenth of the cities missing."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Bergen"], rows)
    income = (np.select([city == "Oslo", city == "Rome"], [50.0, 20.0], 80.0) + rng.normal(0, 2, rows)).round(1)
    return pd.DataFrame(
        {
            "city": np.where(rng.random(rows) < 0.1, None, city),
            "income": np.where(rng.random(rows) < 0.2, np.nan, income),
            "age": pd.array(rng.integers(20, 60, rows), dtype="Int64"),
        }
    )


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    place = tmp_path_factory.mktemp("model") / "people.ao"
    AnyOrder(effort=0.02).fit(people(300, 0)).save(place)
    return place


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Five Parquet files, two of them in a folder of their own, of three row groups each; and a folder for csv files."""
    root = tmp_path_factory.mktemp("many")
    for number, name in enumerate(["a", "b", "c", "more/d", "more/e"]):
        (root / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pandas(people(25, 10 + number), preserve_index=False)
        pq.write_table(table, root / "in" / f"{name}.parquet", row_group_size=10)
    return root / "in"
