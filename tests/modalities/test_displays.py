"""What a person sees of models and answers: texts, html and pictures, never tensors; nothing that raises."""

import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from anyorder.errors import InputError
from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.acquisition import plot_next_best
from anyorder.modalities.tables.ranges import Between

matplotlib.use("Agg")


def table(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["<b>a</b>", "$b$", "c"], rows)
    return pd.DataFrame(
        {
            "kind": kind,
            "cost": np.where(kind == "c", 0.0, rng.gamma(2.0, 3.0, rows)).round(1),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, rows), unit="D"),
            "n": rng.integers(0, 9, rows),
        }
    )


@pytest.fixture(scope="module")
def model():
    return AnyOrder(effort=0.02).fit(table())


@pytest.fixture(scope="module")
def images():
    return AnyOrder(effort=0.0005).fit(np.random.default_rng(0).integers(0, 2, (30, 4, 4)).astype(np.uint8))


def test_an_answer_reads_as_text(model):
    shown = repr(model.conditional({"cost": Between(1, 5), "n": 2}, "kind"))
    lines = shown.splitlines()
    assert lines[0] == "kind given cost=1..5, n=2"
    assert all("%" in line for line in lines[1:4])
    assert lines[4].startswith("  training rows that match ")
    number = repr(model.conditional({"kind": "c"}, "cost"))
    assert number.startswith("cost given kind=c\n")
    assert "median " in number
    assert repr(model.conditional({}, "day")).startswith("day, nothing known\n  20")
    assert all("tensor" not in one and max(map(len, one.splitlines())) <= 90 for one in (shown, number))


def test_html_escapes_what_it_shows(model):
    for shown in (
        model.conditional({"n": 2}, "kind")._repr_html_(),
        model._repr_html_(),
        model.anomalies(table(5))._repr_html_(),
    ):
        assert "<b>a</b>" not in shown
        assert "<script" not in shown.split("<style>")[0]
    shown = model.conditional({"n": 2}, "kind")._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    assert "<svg" in shown
    assert "thin and grey: with nothing known" in shown


def test_a_model_reads_as_text(model, images):
    lines = repr(model).splitlines()
    assert lines[:2] == ["AnyOrder(effort=0.02)", "learned from 60 rows: 4 columns"]
    assert [line.split()[0] for line in lines[3:]] == ["kind", "cost", "day", "n"]
    assert "90 % in 2024-01" in lines[5]
    assert repr(AnyOrder(effort=0.5)) == "AnyOrder(effort=0.5)"
    assert "a model of 4 x 4 pixels, black and white, 2 levels: a U-Net" in repr(images)
    assert len(repr(images)) < 400


def test_nothing_but_attribute_errors(model, images):
    for one in (AnyOrder(), model, images):
        assert "fit" in dir(one)
        assert isinstance(one._repr_html_(), str)
        assert "text/html" in one._repr_mimebundle_()
        assert "AnyOrder" in estimator_html_repr(make_pipeline(one))
        assert repr(make_pipeline(one)).startswith("Pipeline(steps=[('anyorder', AnyOrder(")
    assert not hasattr(model, "image_model_")
    assert not hasattr(model, "known_codec_")
    with pytest.raises(InputError, match="This is a model of a table, and inpaint is a question about images"):
        model.inpaint(np.zeros((1, 2, 2)), np.zeros((2, 2)))


def test_pictures(model):
    ax = model.conditional({"n": 2}, "kind").plot()
    assert ax.get_title(loc="left") == "kind given n=2"
    assert len(ax.patches) == 6  # three levels, and grey beside them
    numbers = model.conditional({"kind": "c"}, "cost").plot()
    assert {text.get_text() for text in numbers.get_legend().get_texts()} == {
        "nothing known",
        "given what is known",
        "90 %",
        "median",
    }
    assert model.conditional({"n": 2}, "day").plot(numbers.figure.add_subplot()) is not None
    bars = model.anomalies(table(5)).plot()
    assert bars.get_yticklabels()[0].get_text().startswith("row ")
    ranking = model.next_best({"n": 2}, "cost", draws=4)
    ax = plot_next_best(ranking)
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"{name} (1)" for name in ranking["measurement"]]
    with pytest.raises(InputError, match="The ranking has no row 3; it has the rows 0"):
        plot_next_best(ranking, 3)
    matplotlib.pyplot.close("all")


def test_a_sequence_of_measurements(model):
    truth = table(3, seed=2)
    blank = truth.assign(kind=None, n=None)
    path = model.acquire(blank[["kind", "n", "day"]], "cost", truth, steps=1, draws=4)
    lines = repr(path).splitlines()
    assert lines[0] == "3 measurements in 3 rows, 1 spent a row"
    assert lines[-1] == "  3 rows stopped: as many measurements as were allowed"
    assert "<table" in path._repr_html_()
    ax = path.plot()
    assert ax.get_ylabel() == "log p of the target, nats"
    assert len(ax.lines) == 4
    matplotlib.pyplot.close("all")


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"not installed: pip install 'anyorder\[plot\]'"):
        model.conditional({}, "cost").plot()


def test_the_mode_of_a_number_is_its_likeliest_value(model):
    for given, target, values in (({"kind": "c"}, "cost", np.arange(-5, 60, 0.1).round(1)), ({}, "n", range(-3, 13))):
        answer = model.conditional(given, target)
        likely = {value: answer.prob(float(value)) for value in values}
        assert answer.prob(answer.mode()) == pytest.approx(max(likely.values()), rel=1e-3)
    assert model.conditional({"kind": "c"}, "cost").mode() == 0.0


def test_no_zero_is_below_zero(model):
    for low, high, _ in model.conditional({"kind": "c"}, "cost").bins():
        assert "-0" not in (str(low), str(high), f"{low:g}", f"{high:g}")
    from anyorder.modalities.displays import number_text

    assert number_text(-0.0) == "0"


def test_predict_proba_takes_the_last_column_as_predict_does():
    frame = table(40)[["n", "kind"]]
    model = AnyOrder(effort=0.02, keep_rows=False).fit(frame)
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(frame, "kind"))
    with pytest.raises(InputError, match="Column 'n' is a number and has no levels"):
        model.predict_proba(frame, "n")
