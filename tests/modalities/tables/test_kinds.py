"""Every verb of the face on codes, numbers with few values, rare levels and columns that are left out."""

import numpy as np
import pandas as pd
import pytest

from anyorder.errors import InputError
from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.ranges import Between, OneOf

ROWS = 500


def make_table(seed=0):
    """The grade follows the dose, the site has 241 levels; an identifier, a constant, notes and strays."""
    rng = np.random.default_rng(seed)
    dose = rng.choice([0.0, 0.1, 0.25, 0.4], ROWS)
    site = rng.permutation([*["north"] * 20, *(f"site {k}" for k in range(240) for _ in range(2))])
    return pd.DataFrame(
        {
            "id": np.arange(ROWS) + 100,
            "grade": (dose * 10).astype(int) + rng.integers(0, 2, ROWS),
            "dose": dose,
            "site": site,
            "size": [f"{v:.1f}" for v in rng.normal(45, 5, ROWS)],
            "same": "x",
            "note": [f"free {k}" for k in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def model(table):
    with pytest.warns(UserWarning, match="left out of the model") as told:
        fitted = AnyOrder(effort=0.02, kinds={"grade": "category"}).fit(table)
    assert [str(one.message).split(":")[0] for one in told] == [
        "Column 'id' is left out of the model",
        "Column 'note' is left out of the model",
    ]
    return fitted


def with_gaps(table):
    return table.mask(np.random.default_rng(1).random(table.shape) < 0.2)


def test_what_is_filled_in_occurs_and_what_is_there_stays(model, table):
    gaps = with_gaps(table)
    with pytest.warns(
        UserWarning, match=r"gaps stay: \d+ of id \(it has a different whole number .*\), \d+ of note \(it has 500 "
    ):
        best = model.transform(gaps)
    for filled in (best, *model.impute(gaps, draws=2)):
        assert filled.where(gaps.notna()).equals(gaps)
        for name in ("grade", "dose", "site", "same"):
            assert set(filled[name]) <= set(table[name])
        assert filled["size"].str.fullmatch(r"\d+\.\d").all()
        assert (filled[["id", "note"]].isna() == gaps[["id", "note"]].isna()).all().all()
    drawn = model.sample(50)
    assert list(drawn) == ["grade", "dose", "site", "size"]
    assert set(drawn["dose"]) <= set(table["dose"])
    assert set(drawn["site"]) <= set(table["site"])


def test_means_stay_available(model, table):
    assert set(model.predict(table[:40], "dose")) <= set(table["dose"])
    means = model.predict_mean(table[:40], "dose")
    assert not set(means) & set(table["dose"])
    row = table.loc[3, ["grade", "site"]]
    assert model.conditional(row, "dose").mean() == pytest.approx(model.predict_mean(pd.DataFrame([row]), "dose")[0], rel=1e-5)
    grade = model.conditional({"dose": 0.4}, "grade")
    assert grade.mean() == pytest.approx(sum(level * p for level, p in grade.pmf().items()))
    assert model.predict_mean(pd.DataFrame({"dose": [0.4]}), "grade")[0] == pytest.approx(grade.mean(), rel=1e-5)
    with pytest.raises(InputError, match=r"Column 'site' is one of .*: no numbers, so it has no mean\. Use predict\."):
        model.predict_mean(table, "site")


def test_codes_that_are_numbers_have_ranges_quantiles_and_intervals(model, table):
    answer = model.conditional({"dose": 0.4}, "grade")
    table_of = answer.pmf()
    assert answer.prob(Between(4, None)) == pytest.approx(table_of[4] + table_of[5])
    assert answer.cdf(3) == pytest.approx(sum(p for level, p in table_of.items() if level <= 3))
    low, high = answer.interval(0.9)
    assert answer.cdf(high) >= 0.95
    assert answer.cdf(low - 1) < 0.05 <= answer.cdf(low)
    assert answer.share(Between(4, 5)) == pytest.approx((table["grade"][table["dose"] == 0.4] >= 4).mean())
    assert set(model.sample(20, given={"grade": Between(2, 3)})["grade"]) <= {2, 3}
    assert set(model.sample(20, given={"dose": Between(0.05, 0.3)})["dose"]) <= {0.1, 0.25}
    with pytest.raises(InputError, match="No value of column 'grade' lies in Between"):
        model.conditional({"grade": Between(7, 9)}, "dose")


def test_scores_of_rare_levels_are_normalised_over_all_levels(model, table):
    column = next(c for c in model.encoder_.columns if c.name == "site")
    assert len(column.rare) > 2
    rows = pd.DataFrame({"site": list(column.levels), "grade": 1, "dose": 0.1})
    scores = np.exp(model.score_samples(rows, target=["site"], given=["grade", "dose"]))
    assert scores.sum() == pytest.approx(1, abs=1e-5)
    answer = model.conditional({"grade": 1, "dose": 0.1}, "site")
    assert sum(answer.pmf().values()) == pytest.approx(1, abs=1e-5)
    rare = column.rare[1]
    assert answer.prob(rare) == pytest.approx(answer.pmf()[rare])
    assert answer.prob(OneOf(column.rare[:2])) == pytest.approx(sum(answer.pmf()[level] for level in column.rare[:2]))
    proba = model.predict_proba(rows[["grade", "dose"]][:2], "site")
    assert proba.shape == (2, len(model.levels("site")))
    assert proba.sum(-1) == pytest.approx([1, 1], abs=1e-5)
    assert dict(zip(model.levels("site"), proba[0], strict=True))[rare] == pytest.approx(answer.pmf()[rare], rel=1e-4)
    odd = model.anomalies(rows[-2:])
    assert odd.cells[0, 2] == pytest.approx(-np.log(answer.pmf()[column.levels[-2]]), abs=1e-3)


def test_a_rare_level_that_is_given_comes_back_and_the_likeliest_is_a_level(model):
    column = next(c for c in model.encoder_.columns if c.name == "site")
    assert set(model.sample(10, given={"site": column.rare[2]})["site"]) == {column.rare[2]}
    assert set(model.sample(30, given={"site": OneOf(column.rare[:2])})["site"]) <= set(column.rare[:2])
    rows = pd.DataFrame({"grade": range(6), "dose": [0.0, 0.1, 0.1, 0.25, 0.4, 0.4]})
    best = [max(zip(p, model.levels("site"), strict=True))[1] for p in model.predict_proba(rows, "site")]
    assert list(model.predict(rows, "site")) == best


def test_saved_and_loaded_it_gives_the_same(model, table, tmp_path):
    model.save(tmp_path / "m.ao")
    loaded, gaps = AnyOrder.load(tmp_path / "m.ao"), with_gaps(table)
    assert loaded.encoder_ == model.encoder_
    assert loaded.transform(gaps).equals(model.transform(gaps))


def test_sentinels_are_settings_of_the_estimator(table):
    odd = table[["grade", "dose", "site"]].assign(age=[999 if k % 9 == 0 else 20 + k % 40 for k in range(ROWS)])
    filled = AnyOrder(effort=0.01, na={"age": 999}).fit(odd).transform(odd)
    assert filled["age"].between(20, 59).all()
    assert filled["age"].dtype == odd["age"].dtype
    assert (filled["age"] == odd["age"])[odd["age"] != 999].all()


def test_a_preview_needs_no_training_and_no_instance(table):
    assert [one.kind for one in AnyOrder.preview(table).columns][:2] == ["left out", "whole number"]
    assert AnyOrder(kinds={"grade": "category"}).preview(table).columns[1].kind == "category"
