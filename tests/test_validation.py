"""What the verbs are told: wrong arguments are explained before any work, seeds follow scikit-learn's convention."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from anyorder.errors import InputError
from anyorder.estimator import AnyOrder
from anyorder.modalities.base import chosen_schedule
from anyorder.modalities.tables.acquisition import policy_of
from anyorder.modalities.tables.fitted_table import FittedTable
from anyorder.modalities.tables.modality import Tables
from anyorder.modalities.tables.ranges import Between, OneOf
from anyorder.subsets import Even


def table(rows=60):
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, rows)
    return pd.DataFrame(
        {"age": age, "income": (age + rng.normal(size=rows)).round(1), "city": rng.choice(["Oslo", "Rome"], rows)}
    )


def with_gaps(rows=60):
    return table(rows).assign(income=lambda t: t["income"].where(t.index >= 4))


@pytest.fixture(scope="module")
def fitted():
    return AnyOrder(effort=0.02).fit(table())


@pytest.fixture(autouse=True)
def as_users_call_it(monkeypatch):
    """The tests' own checks of types, which come before ours, are taken off."""
    for kind in (AnyOrder, FittedTable, Tables):
        for name, method in vars(kind).items():
            if inspect.isfunction(method):
                monkeypatch.setattr(kind, name, inspect.unwrap(method))


def call(owner, name, *args, **more):
    """Of the classes that have no unchecked methods above."""
    return inspect.unwrap(getattr(type(owner), name))(owner, *args, **more)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"effort": "x"}, "effort='x'; expected a positive number"),
        ({"effort": -1}, "effort=-1; expected a positive number"),
        ({"effort": np.inf}, "effort=inf; expected a positive number"),
        ({"effort": True}, "effort=True; expected a positive number"),
        ({"orders": 1.5}, r"orders=1\.5; expected a whole number, 1 or more"),
        ({"orders": 0}, "orders=0; expected a whole number, 1 or more"),
        ({"kinds": ["a"]}, r"kinds=\['a'\]; expected a dict"),
        ({"device": "gpu"}, "device='gpu'; expected one that is there: auto, cpu"),
        ({"device": "cuda:99"}, "device='cuda:99'; expected one that is there: auto, cpu"),
        ({"random_state": "x"}, "random_state='x'; expected a whole number"),
        ({"random_state": 1.5}, r"random_state=1\.5; expected a whole number"),
        ({"random_state": 2**64}, "expected a whole number of up to 12 digits"),
    ],
    ids=str,
)
def test_settings_are_checked_before_any_work(settings, message):
    with pytest.raises(InputError, match=message):
        AnyOrder(callback=pytest.fail).set_params(**settings).fit(table())


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: call(m, "sample", 1.5), r"n=1\.5; expected a whole number, 0 or more"),
        (lambda m: m.sample(-1), "n=-1; expected a whole number, 0 or more"),
        (lambda m: call(m, "sample", 1, given=["age"]), r"given=\['age'\]; expected a dict"),
        (lambda m: call(m, "conditional", ["age"], "city"), r"row=\['age'\]; expected a dict"),
        (lambda m: call(m, "impute", table(), draws=1.5), r"draws=1\.5; expected a whole number, 1 or more"),
        (lambda m: m.impute(table(), draws=0), "draws=0; expected a whole number, 1 or more"),
        (lambda m: call(m, "intervals", table(), "x"), "level='x'; expected a number between 0 and 1"),
        (
            lambda m: call(m.conditional({}, "age"), "quantile", [0.1, 0.9]),
            r"q=\[0\.1, 0\.9\]; .* between 0 and 1.* one at a time",
        ),
        (lambda m: call(m.conditional({}, "age"), "interval", "x"), "level='x'; expected a number between 0 and 1"),
        (lambda m: m.conditional({"age": Between(30, 40)}, "age"), "'age' stands 2 times. Name every column once"),
        (lambda m: m.conditional({"city": OneOf(("Oslo",))}, "city"), "'city' stands 2 times. Name every column once"),
        (
            lambda m: m.score_samples(table()[["age"]], target=["city", "age"]),
            "The table has no column 'city', which is a target",
        ),
        (lambda m: m.score_samples(table(), target=0), r"target=0; expected a list of names .* Write \[0\]"),
        (lambda m: inspect.unwrap(policy_of)(1.0, 1.5, 2), r"ahead=1\.5; expected a whole number, 1 or more"),
        (lambda m: inspect.unwrap(policy_of)(1.0, 1, 2.5), r"draws=2\.5; expected a whole number, 2 or more"),
        (lambda m: inspect.unwrap(policy_of)(1.0, 1, 2, steps=1.5), r"steps=1\.5; expected a whole number, 0 or more"),
        (lambda m: inspect.unwrap(chosen_schedule)(1.5, None, Even), r"steps=1\.5; expected a whole number, 1 or more"),
    ],
)
def test_wrong_arguments_are_explained(fitted, act, message):
    with pytest.raises(InputError, match=message):
        act(fitted)


def test_the_number_of_orders_is_checked_where_it_is_used(fitted):
    fitted.set_params(orders=1.5)
    try:
        with pytest.raises(InputError, match=r"orders=1\.5"):
            fitted.score_samples(table())
    finally:
        fitted.set_params(orders=4)


def test_the_value_of_the_target_in_a_whole_row_is_not_looked_at(fitted):
    row = {"age": 30, "income": 31.0, "city": "Oslo"}
    assert fitted.conditional(row, "age").interval() == fitted.conditional({**row, "age": 59}, "age").interval()


RANDOM = {
    "sample": lambda m: m.sample(20),
    "impute": lambda m: m.impute(with_gaps(), draws=1)[0],
    "conditional": lambda m: pd.Series(m.conditional({"age": Between(25, 55)}, "city").pmf()),
    "next_best": lambda m: m.next_best(table()[["age"]].head(2), "city", draws=2),
    "acquire": lambda m: m.acquire(table()[["age"]].head(2), "city", table().head(2), draws=2).steps,
}


@pytest.mark.parametrize("verb", RANDOM)
def test_answers_follow_the_random_state(fitted, verb):
    def twice(random_state):
        fitted.set_params(random_state=random_state)
        try:
            return [RANDOM[verb](fitted) for _ in range(2)]
        finally:
            fitted.set_params(random_state=0)

    one, again = twice(3)
    assert one.equals(again)
    one, again = twice(None)
    assert not one.equals(again)
    (first, second), (third, fourth) = twice(np.random.RandomState(0)), twice(np.random.RandomState(0))
    assert not first.equals(second)
    assert first.equals(third)
    assert second.equals(fourth)


def test_a_fit_follows_the_random_state():
    def score(random_state):
        return AnyOrder(effort=0.002, random_state=random_state).fit(table()).score(table())

    assert score(1) == score(1)
    assert score(None) != score(None)
    assert score(np.random.RandomState(0)) == score(np.random.RandomState(0)) != score(np.random.RandomState(1))


def test_rows_without_any_target_are_told_of(fitted):
    gaps = with_gaps()
    with pytest.warns(UserWarning, match="In 4 of 60 rows every target is a gap") as told:
        scores = fitted.score_samples(gaps, target=iter(["income"]))
    assert len(told) == 1
    np.testing.assert_array_equal(scores == 0, gaps["income"].isna())
    assert (fitted.score_samples(gaps, target=["income", "age"]) < 0).all()
    assert (fitted.score_samples(gaps) < 0).all()


def test_a_y_beside_a_table_is_told_of_but_not_in_a_pipeline():
    numbers = with_gaps()[["age", "income"]]
    y = table()["age"]
    with pytest.warns(UserWarning, match="fit ignores y: put the target into the table, as a column"):
        AnyOrder(effort=0.002).fit(numbers, y)
    make_pipeline(AnyOrder(effort=0.002), LinearRegression()).fit(numbers, y)
