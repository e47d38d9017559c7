"""The fit report: what it says of a model is what can be counted by hand; one file, everything escaped."""

import numpy as np
import pandas as pd
import pytest

from anyorder.errors import InputError
from anyorder.estimator import AnyOrder


def table(rows, seed):
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "<i>Rome"], rows)
    income = (np.where(city == "Oslo", 20.0, 60.0) + rng.normal(0, 3, rows)).round(1)
    frame = pd.DataFrame({"city": city, "income": income, "noise": rng.integers(0, 9, rows)})
    frame.loc[: rows // 10 - 1, "income"] = np.nan
    return frame


@pytest.fixture(scope="module")
def model():
    return AnyOrder(effort=0.05).fit(table(150, 0))


def test_the_report_counts_what_can_be_counted(model):
    held = table(100, 1)
    found = model.report(held)
    city, income, noise = found.columns
    assert [one.kind for one in found.columns] == ["category", "number", "number"]
    assert city.model.guess == pytest.approx((model.predict(held, "city") == held["city"]).mean())
    there = held.dropna()
    error = model.predict(there, "income") - there["income"]
    assert income.model.guess == pytest.approx(np.sqrt((error**2).mean()), rel=1e-3)
    assert income.model.nats == pytest.approx(-model.score_samples(there, ["income"], ["city", "noise"]).mean(), abs=1e-3)
    assert income.gaps == pytest.approx(0.1)
    low, high = model.intervals(held.assign(income=np.nan), 0.9)
    inside = (low["income"] <= held["income"]) & (held["income"] <= high["income"])
    assert income.coverage == pytest.approx(inside[there.index].mean(), abs=0.03)
    assert sum(income.calibration) == pytest.approx(1)
    assert income.skill > 0.3 > abs(noise.skill)
    assert city.nothing_known.nats == pytest.approx(np.log(2), abs=0.1)


def test_the_baseline_is_worth_its_name(model):
    city, income, noise = model.report(table(100, 2)).columns
    assert city.baseline.guess > 0.9  # a tenth of the incomes are gaps
    assert income.baseline.guess < 5
    assert income.baseline.nats < income.nothing_known.nats
    assert abs(noise.baseline.nats - noise.nothing_known.nats) < 0.5


def test_what_has_to_be_said(model, tmp_path):
    seen = model.report(table(150, 0))
    assert seen.notes == ["100.0 % of these rows were trained on: what is found is too good. Pass rows held out of fit."]
    without = AnyOrder(effort=0.02, keep_rows=False).fit(table(60, 0)).report(table(20, 5))
    assert without.notes == ["There is no baseline: it is fitted on the training rows, and the model keeps none."]
    assert without.columns[0].baseline is None
    assert model.report(table(20, 5).drop(columns="noise")).notes == ["These rows hold nothing of noise."]
    with pytest.raises(InputError, match="There is no value in these rows that the model could be tested on"):
        model.report(table(3, 5).iloc[:0])


def test_the_report_as_text_and_as_a_file(model, tmp_path):
    found = model.report(table(30, 3).rename(columns={}))
    text = repr(found)
    assert text.startswith("3 columns on 30 held-out rows: ")
    assert [line.split()[0] for line in text.splitlines()[1:5]] == ["column", "city", "income", "noise"]
    found.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "prefers-color-scheme: dark" in page
    assert page.count("<svg") == 3
    for forbidden in ("<script", "http://", "https://", "<i>Rome"):
        assert forbidden not in page
    assert found.to_dict()["columns"][0]["model"]["accuracy"] == found.columns[0].model.guess
