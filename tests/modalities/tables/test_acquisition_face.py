"""What to measure next, in the words of a table whose distribution is known: y is a or b, which of them the key tells;
c is noise.
"""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from anyorder.errors import InputError
from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.ranges import Between


def table(rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 4, (3, rows)).astype(float)
    key = rng.choice(["left", "right"], rows)
    y = np.where(key == "left", a, b) + rng.choice([0.0, 0.5], rows)
    return pd.DataFrame({"key": key, "a": a, "b": b, "c": c, "y": y})


@pytest.fixture(scope="module")
def model():
    return AnyOrder(effort=0.5).fit(table())


def test_the_measurement_that_tells_most_comes_first(model):
    ranking = model.next_best({"key": "left"}, "y")
    assert ranking["measurement"].tolist()[0] == "a"
    gain = dict(zip(ranking["measurement"], ranking["gain"], strict=True))
    assert set(gain) == {"a", "b", "c"}
    assert gain["a"] == pytest.approx(math.log(4), abs=0.35)  # y has 4 places more and 2 of noise
    assert gain["b"] < 0.1
    assert gain["c"] < 0.1
    assert ranking["advised"].tolist() == [True, False, False]
    assert (ranking["standard_error"] >= 0).all()
    assert model.next_best({"key": "right"}, "y")["measurement"][0] == "b"


def test_many_rows_at_once_and_only_what_is_not_known(model):
    rows = pd.DataFrame({"key": ["left", "right", None], "a": [None, None, 2.0], "b": [1.0, None, None], "c": [None, 0.0, 0.0]})
    ranking = model.next_best(rows, "y")
    assert ranking["row"].tolist() == [0, 0, 1, 1, 2, 2]
    first = ranking.groupby("row").first()["measurement"].tolist()
    assert first[:2] == ["a", "b"]
    assert set(ranking[ranking["row"] == 2]["measurement"]) == {"key", "b"}


def test_prices_budgets_and_what_a_nat_is_worth(model):
    costs = {"a": 10.0, "key": 1.0, "c": 0.1}
    per_cost = model.next_best({"key": "left"}, "y", {"a": 10.0, "c": 1.0})
    assert per_cost["measurement"].tolist() == ["a", "c"]
    assert model.next_best({"key": "left"}, "y", costs, worth=20.0)["advised"].any()
    assert not model.next_best({"key": "left"}, "y", costs, worth=0.5)["advised"].any()
    poor = model.next_best({"key": "left"}, "y", costs, budget=5.0)
    assert poor[poor["measurement"] == "a"]["affordable"].tolist() == [False]
    assert poor["measurement"].tolist() == ["c", "a"]
    panel = model.next_best({}, "y", {"panel": 3.0, "c": 1.0}, groups={"panel": ["key", "a", "b"]})
    assert panel["measurement"][0] == "panel"
    assert panel["gain"][0] > 0.9


def test_a_pair_that_tells_nothing_alone_is_found_by_looking_ahead():
    rng = np.random.default_rng(0)
    p, q, r = rng.integers(0, 2, (3, 1500))
    names = np.array(["no", "yes"])
    xor = pd.DataFrame(
        {"p": names[p], "q": names[q], "weak": names[np.where(rng.random(1500) < 0.7, p ^ q, r)], "y": names[p ^ q]}
    )
    model = AnyOrder(effort=0.5).fit(xor)
    assert model.next_best({}, "y")["measurement"][0] == "weak"
    assert model.next_best({}, "y", ahead=2, budget=2.0)["measurement"][0] in ("p", "q")


def test_a_whole_path(model):
    truth = table(40, seed=1)
    blank = truth.mask(np.ones(truth.shape, dtype=bool))
    path = model.acquire(blank, "y", truth)
    assert path.cost.shape == path.log_prob.shape == path.guess["y"].shape == (40, 5)
    assert path.cost[:, -1].tolist() == [4.0] * 40
    error = np.sqrt(((path.guess["y"] - truth["y"].to_numpy()[:, None]) ** 2).mean(0))
    assert error[-1] < 0.4 < 1.0 < error[0]
    assert path.log_prob.mean(0)[-1] > path.log_prob.mean(0)[0] + 1
    assert len(path.steps) == 160
    assert path.steps["step"].tolist()[:4] == [1, 2, 3, 4]
    assert path.steps["spent"].tolist()[:4] == [1.0, 2.0, 3.0, 4.0]
    assert set(path.stop) == {"nothing is left to measure"}
    pd.testing.assert_frame_equal(path.table[["key", "a", "b", "c"]].astype(truth.dtypes[:4]), truth[["key", "a", "b", "c"]])
    assert path.table["y"].isna().all()


def test_a_path_stops_when_it_should(model):
    truth = table(20, seed=1)
    blank = truth.mask(np.ones(truth.shape, dtype=bool))
    worth = model.acquire(blank, "y", truth, worth=8.0)
    assert (worth.cost[:, -1] < 4).all()
    assert set(worth.stop) == {"nothing left is expected to tell as much as it costs"}
    assert set(model.acquire(blank, "y", truth, budget=2.5).stop) == {"what is left costs more than the rest of the budget"}
    assert set(model.acquire(blank, "y", truth, steps=1).stop) == {"as many measurements as were allowed"}
    assert "the target is as certain as was asked for" in model.acquire(blank, "y", truth, certain=1.0).stop


def test_an_oracle_that_is_asked(model):
    asked = []

    def oracle(row, names):
        asked.append((row, names))
        return {"key": "left", "a": 3.0, "b": None}

    path = model.acquire({"c": 1.0}, "y", oracle)
    assert path.table == {"c": 1.0, "key": "left", "a": 3.0}
    assert [row for row, _ in asked] == [0, 0, 0]
    assert sorted(names for _, names in asked) == [("a",), ("b",), ("key",)]
    assert np.isnan(path.log_prob).all()
    assert abs(path.guess["y"][0, -1] - 3.25) < 0.4
    with pytest.raises(InputError, match="expected a mapping from names to values"):
        model.acquire({}, "y", lambda row, names: 3)


def test_answers_come_in_the_library_the_table_came_in(model):
    other = AnyOrder(effort=0.01).fit(pl.from_pandas(table(100)))
    assert isinstance(other.next_best({"key": "left"}, "y"), pl.DataFrame)
    array = AnyOrder(effort=0.01).fit(table(100)[["a", "b", "y"]].to_numpy())
    assert array.next_best(np.array([[1.0, np.nan, np.nan]]), "x2")["measurement"].tolist() == ["x1"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.next_best({"y": 1.0}, "y"), "'y' is already known in row 0"),
        (lambda m: m.next_best({}, "z"), "no variable 'z'"),
        (lambda m: m.next_best({"z": 1}, "y"), "no variable 'z'"),
        (lambda m: m.next_best({}, "y", {"a": -1}), "'a' costs -1; expected a number, 0 or more"),
        (lambda m: m.next_best({}, "y", {"a": "cheap"}), "'a' costs 'cheap'"),
        (lambda m: m.next_best({}, "y", {}), "nothing to choose from"),
        (lambda m: m.next_best({}, "y", {"y": 1}), "'y' is the target, which cannot be measured"),
        (lambda m: m.next_best({}, "y", {"a": 5, "b": 7}, budget=4.0), "below every cost: the cheapest is 'a' for 5"),
        (lambda m: m.next_best({}, "y", budget=-1.0), "expected 0 or more"),
        (lambda m: m.next_best({}, "y", worth=-math.inf), "worth=-inf; expected a positive price"),
        (lambda m: m.next_best({}, []), "There is no target"),
        (lambda m: m.next_best({}, "y", groups={"all": []}), "group 'all' is empty"),
        (lambda m: m.next_best({}, "y", groups={"a": ["b"]}), "a group and a column"),
        (lambda m: m.next_best({"a": Between(1, 2)}, "y"), "here a value is needed"),
        (lambda m: m.next_best({"key": "up"}, "y"), "'up' is no value of column 'key'"),
        (lambda m: m.acquire({}, "y", table(3)), "The oracle has shape"),
    ],
)
def test_bad_input_is_explained(model, call, message):
    with pytest.raises(InputError, match=message):
        call(model)


def test_a_model_must_be_fitted_before_it_is_asked():
    for ask in (lambda m: m.next_best({}, "y"), lambda m: m.acquire({}, "y", table(1))):
        with pytest.raises(NotFittedError):
            ask(AnyOrder())


def test_records_of_which_nothing_or_everything_is_known(model):
    assert len(model.next_best({}, "y")) == 4
    full = table(2, seed=3).assign(y=np.nan)
    assert len(model.next_best(full, "y")) == 0
    path = model.acquire(full, "y", table(2, seed=3))
    assert path.stop == ["nothing is left to measure"] * 2
    assert len(path.steps) == 0
