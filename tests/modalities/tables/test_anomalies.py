"""What is odd, on one scale for all columns: against brute force, against what was put in, and on tables without errors."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from anyorder.distributions import RecordedDistribution, RecordedNumber
from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.anomalies import chances


def recorded(spacing, mu, sigma, logits=None):
    cells = len(mu)
    distribution = lambda values: torch.tensor(values, dtype=torch.float32)  # noqa: E731
    return RecordedDistribution(
        torch.full((cells,), spacing),
        torch.zeros(cells, 1),
        distribution(logits or [[0.0] * len(mu[0])] * cells),
        distribution(mu),
        distribution(sigma),
        torch.zeros(cells, 0),
    )


def brute_force(distribution, x, spacing):
    """The mass of all values that are no likelier than this one."""
    values = torch.arange(-4000, 4001) * spacing
    mass = torch.stack([distribution.log_prob(value.expand(len(x))).exp() for value in values], dim=-1).double()
    own = distribution.log_prob(x).exp().double()[:, None]
    return (mass * (mass <= own * (1 + 1e-6))).sum(-1)


def test_the_chance_is_the_mass_of_all_that_is_no_likelier():
    two = [-1.0, 1.0]  # a value between two humps is odd, although half of the values are above it
    x = torch.tensor([0.0, -1.0, 1.5, 0.5, 3.0])
    distribution = recorded(0.5, [two] * 5, [[0.05, 0.1]] * 5)
    np.testing.assert_allclose(
        chances(distribution, x), brute_force(distribution, x, 0.5), rtol=0.2, atol=1e-6
    )  # a part of a tail counts as a whole


def test_the_chance_does_not_depend_on_how_finely_a_number_is_written():
    x = torch.tensor([0.1, 1.0, 2.0])
    coarse, fine = (chances(recorded(spacing, [[0.0]] * 3, [[0.3]] * 3), x) for spacing in (0.02, 0.0005))
    np.testing.assert_allclose(coarse, fine, rtol=0.35)
    tail = 2 / (1 + np.exp(x.double().numpy() / 0.3))  # of a logistic distribution, both sides
    np.testing.assert_allclose(fine, tail, rtol=0.35, atol=0.03)


def test_as_many_values_are_odd_as_the_chance_says():
    draws, rng = 4000, torch.Generator().manual_seed(0)
    distribution = recorded(0.01, [[-1.0, 0.5]] * draws, [[0.1, 0.4]] * draws)
    chance = chances(distribution, distribution.sample(rng))
    for share in (0.5, 0.1, 0.02):
        assert float((chance < share).double().mean()) == pytest.approx(share, rel=0.35)


def test_of_a_category_it_is_the_mass_of_the_levels_no_likelier():
    from anyorder.distributions import Categorical

    distribution = Categorical(3)(torch.tensor([[0.7, 0.2, 0.1]] * 3).log())
    assert chances(distribution, torch.tensor([0.0, 1.0, 2.0])).tolist() == pytest.approx([1.0, 0.3, 0.1], abs=1e-6)
    assert RecordedNumber.kind == "recorded_number"


def made(rows, seed):
    """Two columns that tell each other, written to a thousand and to a thousandth, and two categories that do."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Bern"], rows)
    base = np.select([city == "Oslo", city == "Rome"], [3.0, 6.0], 9.0)
    return pd.DataFrame(
        {
            "city": city,
            "land": np.select([city == "Oslo", city == "Rome"], ["no", "it"], "ch"),
            "rough": ((base + rng.normal(0, 0.4, rows)) * 10).round() * 1000,
            "fine": (base + rng.normal(0, 0.2, rows)).round(6),
        }
    )


@pytest.fixture(scope="module")
def model():
    return AnyOrder(effort=0.1, keep_rows=False).fit(made(500, 0))


def test_what_was_put_in_comes_first(model):
    table, wrong = made(60, 1), [(3, "land"), (11, "rough"), (20, "fine"), (33, "city")]
    table.loc[3, "land"] = {"no": "it", "it": "ch", "ch": "no"}[table.loc[3, "land"]]
    table.loc[11, "rough"] *= 10  # a nought too many
    table.loc[20, "fine"] /= 1000
    table.loc[33, "city"] = "Osloo"
    with pytest.warns(UserWarning, match="Osloo"):
        found = model.anomalies(table)
    ranked = found.to_frame(1.0)
    assert ranked.columns.tolist() == ["row", "column", "value", "expected", "low", "high", "probability", "chance", "why"]
    assert (ranked["row"][0], ranked["column"][0], ranked["chance"][0]) == (33, "city", 0.0)
    assert ranked["why"][0].startswith("never seen in training; ")
    top = set(zip(ranked["row"][:8], ranked["column"][:8], strict=True))
    assert {(11, "rough"), (20, "fine")} <= set(zip(ranked["row"][:5], ranked["column"][:5], strict=True))
    assert set(wrong) <= top
    nats = np.nan_to_num(found.cells).ravel().argsort()[::-1][:8]
    by_nats = {(int(k) // 4, found.columns[int(k) % 4]) for k in nats}
    assert len(by_nats & set(wrong)) < len(top & set(wrong))  # what is written finely has many nats, odd or not
    row = ranked[(ranked["row"] == 11) & (ranked["column"] == "rough")].iloc[0]
    assert row["low"] <= row["expected"] <= row["high"] < row["value"]
    assert row["why"].startswith("beyond all values seen; above ")


def test_without_errors_hardly_anything_is_odd(model):
    found = model.anomalies(made(400, 2))
    assert found.checked == 1600
    assert (found.chance < 0.001).mean() < 0.004
    assert 0.2 < (found.chance[:, 2:] < 0.3).mean() < 0.4
    assert "of 1,600 cells have a chance below 0.001; without errors about 1.6 would" in repr(found)


def test_a_training_row_does_not_speak_for_itself():
    table = made(80, 3)
    table.loc[5, "fine"] = 30.0
    model = AnyOrder(effort=0.02).fit(table)
    found = model.anomalies(table)
    assert (found.distributions.own == torch.arange(80)).all()
    new = model.anomalies(made(5, 9))
    assert (new.distributions.own == -1).all()
    lines = found.to_frame(1.0)
    assert (lines["row"][0], lines["column"][0]) == (5, "fine")


def test_other_dataframes_and_gaps(model):
    table = made(6, 4)
    table.loc[2, "fine"] = np.nan
    found = model.anomalies(pl.from_pandas(table))
    assert found.checked == 23
    assert np.isnan(found.chance[2, 3])
    frame = found.to_frame(1.0)
    assert isinstance(frame, pl.DataFrame)
    assert len(frame) == 23
    assert model.anomalies(table).to_frame(0.0).empty
