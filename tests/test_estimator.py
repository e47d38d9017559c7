"""The face for tables: every verb on a table whose distribution is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from anyorder.errors import FormatError, InputError
from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.ranges import Between, OneOf
from anyorder.modalities.tables.table_model import few_steps
from anyorder.models.any_order import build_model
from anyorder.schema import Real, Schema
from anyorder.training import save_model


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


def test_a_mean_is_not_rounded_and_the_last_bar_holds_one_value():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"n": np.repeat(np.arange(1, 11), 30), "yes": rng.integers(0, 2, 300), "v": rng.normal(size=300)})
    model = AnyOrder(effort=0.02).fit(table)
    answer = model.conditional({}, "n")
    assert answer.mean() == pytest.approx(sum(k * answer.prob(k) for k in range(-10, 30)), abs=0.02)
    bars = answer.bins(10)
    for low, high, probability in bars[1:-1]:
        assert high == low + 1
        assert probability == pytest.approx(answer.prob(low), abs=1e-5)
    assert bars[-1][2] == pytest.approx(1 - answer.cdf(bars[-1][0] - 1), abs=1e-5)
    assert bars[-1][0] == answer.quantile(0.99)
    assert 0.3 < model.conditional({}, "yes").mean() < 0.7


def test_a_row_of_the_table_is_evidence_gaps_and_all():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "same": "x", "b": rng.normal(size=60).round(2), "c": rng.integers(0, 9, 60)})
    model = AnyOrder(effort=0.02).fit(table)
    table.loc[3, "b"] = np.nan
    found = model.conditional(table.loc[3], "c").mean()
    assert found == model.conditional({"a": table.loc[3, "a"]}, "c").mean()
    drawn = model.sample(3, given={"a": 0.123456789, "c": 4.4})
    assert drawn["a"].tolist() == [0.123456789] * 3
    assert drawn["c"].tolist() == [4] * 3  # a whole number stays one


def test_what_was_given_comes_back_however_coarse_the_model_is():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "wide": np.exp(rng.normal(9, 3, 80)).round(2),
            "whole": np.exp(rng.normal(12, 3, 80)).astype(int),
            "at": pd.to_datetime(rng.integers(0, 700_000_000, 80) * 1_000_000_000),
        }
    )
    model = AnyOrder(effort=0.02, kinds={"wide": "linear", "whole": "linear"}).fit(table)
    assert min(column.spacing / unit for column, unit in zip(model.encoder_.columns, (0.01, 1, 1000), strict=True)) > 1
    given = {"wide": 123.45, "whole": 1001, "at": pd.Timestamp("2001-02-03 12:34:56")}
    with pytest.warns(UserWarning, match=r"at = 2001-02-03 12:34:56 lies outside what was seen in training, 19"):
        drawn = model.sample(2, given=given)
    for name, value in given.items():
        assert drawn[name].tolist() == [value] * 2
        assert model.sample(1, given={name: table[name][7]})[name][0] == table[name][7]


def test_save_and_load_give_the_same_answers(fitted, tmp_path):
    fitted.save(tmp_path / "people.ao")
    loaded = AnyOrder.load(tmp_path / "people.ao")
    truth, _ = people(20, seed=4)
    np.testing.assert_array_equal(loaded.score_samples(truth), fitted.score_samples(truth))
    assert loaded.sample(4).equals(fitted.sample(4))
    save_model(build_model(Schema.of(a=Real()), width=4, depth=0), tmp_path / "plain.ao")
    with pytest.raises(FormatError, match=r"plain.ao holds a model, but of no kind of data that is known: texts"):
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
    assert checks[-1].steps == 10


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
        (
            lambda m: m.sample(1, given={"city": "Paris"}),
            InputError,
            "'Paris' is no value of column 'city', which is one of 'Bern', 'Oslo'",
        ),
        (lambda m: m.conditional({"age": 30}, "city").mean(), InputError, "is a category: mean\\(\\) needs a number"),
        (lambda m: m.conditional({"age": 30}, "income").pmf(), InputError, "is a number: use quantile"),
        (lambda m: m.conditional({"age": 30}, "income").quantile(2.0), InputError, "q=2.0; expected a number between 0 and 1"),
        (lambda m: m.score_samples(people(3)[0], target=["age"], given=["age"]), InputError, "share 1 variable"),
    ],
)
def test_bad_requests_are_explained(fitted, act, error, message):
    with pytest.raises(error, match=message):
        act(fitted)


def test_ranges_and_sets_as_evidence(fitted):
    drawn = fitted.sample(200, given={"income": Between(40, 60), "city": OneOf(("Oslo", "Rome"))})
    assert drawn["income"].between(40, 60).all()
    assert set(drawn["city"]) <= {"Oslo", "Rome"}
    assert (drawn["city"] == "Oslo").mean() > 0.8
    rich = fitted.conditional({"income": Between(70, None)}, "city")
    assert rich.mode() == "Bern"
    assert sum(rich.pmf().values()) == pytest.approx(1, abs=1e-5)
    mixed = fitted.conditional({"city": OneOf(("Rome", "Bern"))}, "income")
    assert mixed.quantile(0.1) < 30
    assert mixed.quantile(0.9) > 70
    assert mixed.cdf(50) == pytest.approx(sum(p for _, high, p in mixed.bins(20) if high <= 50), abs=0.06)
    one = fitted.conditional({"city": OneOf(("Rome",))}, "income")
    assert one.interval() == fitted.conditional({"city": "Rome"}, "income").interval()


def test_the_answer_in_numbers(fitted):
    answer = fitted.conditional({"city": "Rome"}, "age")
    ages = range(-200, 300)
    mass = np.array([answer.prob(age) for age in ages])
    assert mass.sum() == pytest.approx(1, abs=1e-4)
    assert answer.cdf(40) == pytest.approx(mass[: 240 + 1].sum(), abs=1e-4)
    bins = answer.bins(8)
    assert sum(p for _, _, p in bins) == pytest.approx(1, abs=1e-6)
    for low, high, p in bins[1:-1]:
        assert p == pytest.approx(mass[int(200 + low) : int(200 + high)].sum(), abs=1e-4)
        assert (low % 5, high % 5) == (0, 0)


def test_intervals_hold_the_gaps(fitted):
    _, table = people(60, seed=8)
    low, high = fitted.intervals(table, 0.8)
    gaps = table["income"].isna()
    assert (low["income"] <= high["income"]).all()
    assert low["income"][~gaps].equals(table["income"][~gaps])
    assert low["city"].isna().equals(table["city"].isna())
    for row in table.index[gaps][:3]:
        known = {name: value for name, value in table.drop(columns="id").loc[row].items() if not pd.isna(value)}
        assert (low["income"][row], high["income"][row]) == fitted.conditional(known, "income").interval(0.8)
    with pytest.raises(InputError, match="level=2"):
        fitted.intervals(table, 2.0)


def test_a_value_that_was_never_seen_stays(fitted):
    new = pd.DataFrame({"city": ["Paris", None], "income": [np.nan, 20.3], "age": [30.0, 30.0]})
    with pytest.warns(UserWarning, match="'Paris'"):
        filled = [fitted.transform(new), *fitted.impute(new, draws=2)]
    for result in filled:
        assert result["city"][0] == "Paris"
        assert result["city"][1] == "Rome"
        assert result["income"].notna().all()


def test_orders_agree_more_or_less(fitted):
    found = fitted.consistency(people(30, seed=9)[0])
    assert found.log_probs.shape == (4, 30)
    assert 0 < found.spread < 1


def test_rows_are_kept_only_if_allowed(fitted, tmp_path):
    _, table = people(60, seed=3)
    private = AnyOrder(effort=0.01, keep_rows=False).fit(table)
    assert private.keeps_rows_ == 0
    assert fitted.keeps_rows_ > 0
    private.save(tmp_path / "private.ao")
    assert AnyOrder.load(tmp_path / "private.ao").keeps_rows_ == 0
    fitted.save(tmp_path / "rows.ao")
    loaded = AnyOrder.load(tmp_path / "rows.ao")
    assert loaded.keeps_rows_ == fitted.keeps_rows_
    assert [c.held_out_nats for c in loaded.history_] == [c.held_out_nats for c in fitted.history_]
    assert loaded.fitted_.fit_info == fitted.fitted_.fit_info


def test_an_interrupt_ends_the_whole_fit():
    def interrupt(check):
        raise KeyboardInterrupt

    model = AnyOrder(effort=0.01, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(people(60)[1])
    with pytest.raises(NotFittedError):
        model.transform(people(3)[1])


def test_only_far_below_the_usual_effort_weights_get_fewer_steps():
    assert [few_steps(effort, 200) for effort in (0.0004, 0.01, 0.05, 1.0, 5.0)] == [2, 40, 200, 200, 200]


def test_numbers_that_are_drawn_and_filled_stay_where_values_are():
    """Values pile up at 0; half of the draws of a bell curve around them would be negative."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    table = pd.DataFrame({"a": a.round(2), "b": np.exp(a - 1 + rng.normal(size=300)).round(2), "c": -rng.poisson(np.exp(a))})
    model = AnyOrder(effort=0.05).fit(table)
    drawn = model.sample(2000)
    assert drawn.b.min() >= 0
    assert drawn.b.max() <= 1.5 * table.b.max()
    assert drawn.c.max() <= 0
    gaps = table.mask(rng.random(table.shape) < 0.5)
    low, high = model.intervals(gaps, 0.9)
    for filled in (model.transform(gaps), low, high, *model.impute(gaps, draws=3)):
        assert filled.b.min() >= 0
        assert filled.c.max() <= 0
    assert (model.predict(gaps, target="c") <= 0).all()
    strange = table.head(2).assign(b=[-1.0, 1e5])
    assert (model.score_samples(strange) < model.score_samples(table.head(2)) - 8).all()


@pytest.fixture(scope="module")
def counted():
    """A table of which one answer is known by counting: half of those from Oslo are members, of the others a fifth."""
    rng = np.random.default_rng(3)
    city = rng.choice(["Oslo", "Bern", "Rome"], 900)
    member = rng.random(900) < np.where(city == "Oslo", 0.5, 0.2)
    age = rng.integers(20, 60, 900)
    return pd.DataFrame(
        {"city": city, "member": member, "age": age, "income": (age + 10 * member + rng.normal(0, 3, 900)).round(1)}
    )


@pytest.fixture(scope="module")
def of_counted(counted):
    return AnyOrder(effort=0.02).fit(counted)


def test_an_answer_says_which_rows_it_rests_on(of_counted, counted):
    answer = of_counted.conditional({"city": "Oslo"}, "member")
    those = counted[counted.city == "Oslo"]
    assert answer.rows == len(those)
    assert answer.share(True) == pytest.approx(those.member.mean())
    assert answer.prob(True) == pytest.approx(those.member.mean(), abs=0.05)
    ranged = of_counted.conditional({"age": Between(30, 39), "city": OneOf(("Oslo", "Rome"))}, "income")
    those = counted[counted.age.between(30, 39) & (counted.city != "Bern")]
    assert ranged.rows == len(those)
    assert ranged.share(Between(None, 40)) == pytest.approx((those.income <= 40).mean())
    assert ranged.prob(Between(None, 40)) == pytest.approx((those.income <= 40).mean(), abs=0.08)
    nobody = of_counted.conditional({"age": Between(30, 30), "city": "Oslo", "income": 60.0}, "member")
    assert nobody.rows == 0
    assert nobody.share(True) is None


def test_an_answer_says_which_condition_moved_it(of_counted):
    found = of_counted.conditional({"city": "Oslo", "age": Between(22, 57)}, "member").explain()
    assert [one.condition for one in found] == ["city", "age"]
    assert found[0].moved > 2 * found[1].moved
    numbers = of_counted.conditional({"age": 55, "city": "Bern"}, "income").explain()
    assert numbers[0].condition == "age"
    assert 0.5 < numbers[0].moved <= 1
    assert numbers[0].without < numbers[0].answer
    with pytest.raises(InputError, match="does not know its question"):
        replace(of_counted.conditional({"city": "Oslo"}, "member"), again=None).explain()


def test_the_probability_of_several_things_together(of_counted, counted):
    """Along one order it is the product of the conditionals; and near to the share of the rows."""
    event, given = {"member": True, "income": Between(50, None)}, {"city": "Oslo"}
    found = of_counted.probability(event, given)
    first = of_counted.conditional(given, "member").prob(True)
    second = of_counted.conditional({"city": "Oslo", "member": True}, "income").prob(Between(50, None))
    assert found == pytest.approx(first * second)
    those = counted[counted.city == "Oslo"]
    assert found == pytest.approx((those.member & (those.income >= 50)).mean(), abs=0.06)
    assert of_counted.probability({"city": OneOf(("Oslo", "Bern", "Rome"))}) == pytest.approx(1)
    with pytest.raises(InputError, match="'city' is both asked for and given"):
        of_counted.probability({"city": "Oslo"}, {"city": "Oslo"})


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (210, "age = 210 lies outside what was seen in training, 20 to 59"),
        (Between(70, None), "age = 70 to None lies outside"),
        (OneOf((3, 4)), r"age = \(3, 4\) lies outside"),
    ],
)
def test_evidence_beyond_all_that_was_seen_is_warned_of(of_counted, value, match):
    with pytest.warns(UserWarning, match=match):
        of_counted.conditional({"age": value}, "city")


def test_without_rows_answers_rest_on_pairs(counted):
    model = AnyOrder(effort=0.02, keep_rows=False).fit(counted)
    assert model.parts_[-1] == "counts of pairs"
    assert model.keeps_rows_ == 0
    answer = model.conditional({"city": "Oslo"}, "member")
    assert answer.prob(True) == pytest.approx(counted[counted.city == "Oslo"].member.mean(), abs=0.05)
    assert answer.rows is None


def test_a_table_with_very_many_columns_has_a_network_and_counts(monkeypatch):
    monkeypatch.setattr("anyorder.modalities.tables.table_model.MOST_COLUMNS", 1)
    table = people(200)[0]
    model = AnyOrder(effort=0.02).fit(table)
    assert model.parts_ == ["network", "counts"]
    assert np.isfinite(model.score_samples(table)).all()
    assert AnyOrder(effort=0.02, keep_rows=False).fit(table).parts_ == ["network"]
