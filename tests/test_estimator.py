"""The face for tables: every verb on a table whose law is known."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from anyorder import AnyOrder, FormatError, InputError, Schema, build_model, save_model
from anyorder.schema import Real


def people(rows=600, seed=0):
    """Income depends on the city, age does not; a tenth of the cells are gaps."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Bern"], rows, p=[0.5, 0.3, 0.2])
    income = (np.select([city == "Oslo", city == "Rome"], [50.0, 20.0], 80.0) + rng.normal(0, 2, rows)).round(1)
    table = pd.DataFrame({"city": city, "income": income, "age": rng.integers(20, 60, rows)})
    table["id"] = [f"p{i}" for i in range(rows)]
    gaps = rng.random((rows, 3)) < 0.1
    return table, table.assign(**{c: table[c].mask(gaps[:, i]) for i, c in enumerate(["city", "income", "age"])})


@pytest.fixture(scope="module")
def fitted():
    return AnyOrder(effort=0.4).fit(people()[1])


def test_the_table_is_learned_through_its_gaps(fitted):
    truth, _ = people(300, seed=1)
    assert (np.array(fitted.predict(truth, "city")) == truth["city"]).mean() > 0.97
    guess = np.array(fitted.predict(truth, "income"))
    assert np.sqrt(((guess - truth["income"]) ** 2).mean()) < 3
    # The city tells all there is to know: 0.1 * N(., 2) has an entropy of log(2 sqrt(2 pi e)) - log 0.1 nats.
    nats = -fitted.score_samples(truth, target=["income"], given=["city"]).mean()
    assert nats == pytest.approx(np.log(2 * np.sqrt(2 * np.pi * np.e) / 0.1), abs=0.4)
    cities = np.exp(fitted.score_samples(pd.DataFrame({"city": ["Oslo", "Rome", "Bern"]}), target=["city"]))
    assert cities == pytest.approx([0.5, 0.3, 0.2], abs=0.07)
    assert cities.sum() == pytest.approx(1, abs=1e-5)


def test_gaps_are_filled_and_nothing_else_is_touched(fitted):
    _, table = people(50, seed=2)
    for filled in (fitted.transform(table), *fitted.impute(table, draws=3)):
        assert not filled.drop(columns="id").isna().any().any()
        assert filled.columns.tolist() == table.columns.tolist()
        pd.testing.assert_frame_equal(filled.where(table.notna()), table)
    one, other = fitted.impute(table, draws=2)
    assert not one.equals(other)
    whole = people(5, seed=3)[0]
    assert all(filled.equals(whole) for filled in fitted.impute(whole, draws=2))


def test_draws_given_a_value_keep_it_and_follow_the_rest(fitted):
    drawn = fitted.sample(200, given={"city": "Rome"})
    assert (drawn["city"] == "Rome").all()
    assert abs(drawn["income"].median() - 20) < 2
    assert drawn["income"].between(12, 28).mean() > 0.9
    assert ((drawn["income"] * 10).round(6) % 1 == 0).all()  # on the lattice of the recorded decimals
    assert fitted.sample(3).equals(fitted.sample(3))


def test_the_law_of_one_cell(fitted):
    answer = fitted.conditional({"city": "Bern", "age": 30}, "income")
    low, high = answer.interval(0.8)
    assert 72 < low < 80 < high < 88
    assert answer.quantile(0.5) == pytest.approx(80, abs=2)
    assert answer.mean() == pytest.approx(80, abs=6)
    city = fitted.conditional({"income": 20.3}, "city")
    assert city.mode() == "Rome"
    assert sum(city.pmf().values()) == pytest.approx(1, abs=1e-5)
    proba = fitted.predict_proba(pd.DataFrame({"income": [20.3]}), "city")
    assert dict(zip(fitted.levels("city"), proba[0], strict=True)) == pytest.approx(city.pmf(), abs=1e-5)


def test_what_is_surprising_is_named(fitted):
    odd = pd.DataFrame({"city": ["Rome", "Rome"], "income": [20.0, 80.0], "age": [30, 30]})
    found = fitted.anomalies(odd)
    assert found.rows[1] > found.rows[0] + 3
    assert found.columns == ["city", "income", "age"]
    assert found.cells[1, 1] > found.cells[0, 1] + 3
    assert np.isnan(fitted.anomalies(odd.assign(age=np.nan)).cells[:, 2]).all()


def test_save_and_load_give_the_same_answers(fitted, tmp_path):
    fitted.save(tmp_path / "people.ao")
    loaded = AnyOrder.load(tmp_path / "people.ao")
    truth, _ = people(20, seed=4)
    np.testing.assert_array_equal(loaded.score_samples(truth), fitted.score_samples(truth))
    assert loaded.sample(4).equals(fitted.sample(4))
    save_model(build_model(Schema.of(a=Real()), width=4, depth=0), tmp_path / "plain.ao")
    with pytest.raises(FormatError, match=r"plain.ao holds a model, but not one of a table"):
        AnyOrder.load(tmp_path / "plain.ao")


def test_rows_score_the_same_alone_and_together(fitted):
    truth, _ = people(10, seed=5)
    alone = np.concatenate([fitted.score_samples(truth.iloc[i : i + 1]) for i in range(10)])
    np.testing.assert_allclose(alone, fitted.score_samples(truth), rtol=1e-4, atol=1e-4)
    assert fitted.score(truth) == pytest.approx(alone.mean(), rel=1e-4)


def test_scikit_learn_conventions():
    model = AnyOrder(effort=0.01, random_state=3)
    assert clone(model).get_params() == model.get_params()
    array = np.random.default_rng(0).normal(size=(40, 3)).round(2)
    array[0, 1] = np.nan
    filled = make_pipeline(model).fit_transform(array)
    assert isinstance(filled, np.ndarray)
    assert np.isfinite(filled).all()
    assert list(model.get_feature_names_out()) == ["x0", "x1", "x2"]
    assert model.n_features_in_ == 3
    polars = AnyOrder(effort=0.01).fit_transform(pl.DataFrame({"a": [1, None, 3, 4], "b": ["x", "y", None, "x"]}))
    assert isinstance(polars, pl.DataFrame)
    assert polars.null_count().row(0) == (0, 0)
    assert polars.dtypes == [pl.Int64, pl.String]
    checks = []
    AnyOrder(effort=0.01, callback=checks.append).fit(array)
    assert checks[-1].steps == 30


def test_training_leaves_the_number_of_threads_alone():
    threads = torch.get_num_threads()
    AnyOrder(effort=0.001).fit(np.arange(20.0).reshape(10, 2))
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda m: AnyOrder().transform(pd.DataFrame({"a": [1]})), NotFittedError, "not fitted"),
        (lambda m: AnyOrder(effort=0.0).fit(np.eye(3)), InputError, r"effort=0\.0"),
        (lambda m: m.predict(people(3)[0], "incom"), InputError, "Did you mean 'income'"),
        (lambda m: m.predict_proba(people(3)[0], "income"), InputError, "'income' is a number and has no levels"),
        (lambda m: m.sample(1, given={"city": "Paris"}), InputError, "city='Paris' is no value of column 'city'; its levels are"),
        (lambda m: m.conditional({"age": 3}, "city").mean(), InputError, "is a category and has no mean"),
        (lambda m: m.conditional({"age": 3}, "income").pmf(), InputError, "is a number: use quantile"),
        (lambda m: m.conditional({"age": 3}, "income").quantile(2.0), InputError, "q=2.0; expected a number between 0 and 1"),
        (lambda m: m.score_samples(people(3)[0], target=["age"], given=["age"]), InputError, "share 1 variable"),
    ],
)
def test_bad_requests_are_explained(fitted, act, error, message):
    with pytest.raises(error, match=message):
        act(fitted)
