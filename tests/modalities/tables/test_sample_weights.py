"""Rows that count more or less than once: as many copies, none, or a share."""

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder.errors import InputError
from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.table_files import without_weights
from anyorder.modalities.tables.table_model import copies_of
from anyorder.models.memory import Memory
from anyorder.schema import Category, Recorded, Schema
from anyorder.training import Recipe
from anyorder.training.loop import repeated, split


def table(rows=240, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.choice(["u", "v"], rows)
    b = np.where(rng.random(rows) < np.where(g == "u", 0.8, 0.3), "yes", "no")
    return pd.DataFrame({"g": g, "b": b, "y": (rng.normal(size=rows) + 2 * (b == "yes")).round(1)})


FRAME = table()
EFFORT = 0.02


@pytest.fixture(scope="module")
def thrice():
    """Rows of group u weigh three times as much."""
    weight = np.where(FRAME.g == "u", 3, 1)
    copied = FRAME.loc[FRAME.index.repeat(weight)].reset_index(drop=True)
    return AnyOrder(effort=EFFORT).fit(FRAME, sample_weight=weight), AnyOrder(effort=EFFORT).fit(copied), copied


def test_a_weight_of_three_is_three_copies(thrice):
    weighted, copied, frame = thrice
    for given in ({}, {"g": "u"}, {"b": "yes"}, {"g": "v", "b": "no"}):
        asked = "y" if "b" in given else "b"
        one, other = weighted.conditional(given, asked), copied.conditional(given, asked)
        assert one.rows == other.rows  # what was counted, exactly
    assert weighted.conditional({}, "g").share("u") == pytest.approx((frame.g == "u").mean(), abs=1e-6)
    assert weighted.conditional({}, "g").prob("u") == pytest.approx((frame.g == "u").mean(), abs=0.03)
    assert abs((FRAME.g == "u").mean() - (frame.g == "u").mean()) > 0.15  # which without weights would be far off
    for given in ({}, {"g": "u"}, {"g": "v"}):
        assert weighted.conditional(given, "b").prob("yes") == pytest.approx(copied.conditional(given, "b").prob("yes"), abs=0.06)
    new = table(200, 1)
    assert weighted.score(new) == pytest.approx(copied.score(new), abs=0.25)


def test_a_weight_of_nothing_is_no_row():
    weight = np.where(np.arange(len(FRAME)) % 3 == 0, 0, 1)
    odd = FRAME.assign(g=FRAME.g.where(weight > 0, "never"))
    weighted = AnyOrder(effort=EFFORT).fit(odd, sample_weight=weight)
    without = AnyOrder(effort=EFFORT).fit(odd[weight > 0])
    assert weighted.levels("g") == ("u", "v")
    assert weighted.fitted_.fit_info["rows"] == len(without.model_.rows) == len(weighted.model_.rows)
    assert weighted.conditional({"g": "u"}, "b").share("yes") == without.conditional({"g": "u"}, "b").share("yes")
    assert weighted.conditional({"g": "u"}, "b").prob("yes") == pytest.approx(
        without.conditional({"g": "u"}, "b").prob("yes"), abs=0.06
    )


def test_weights_of_one_change_nothing_but_who_is_told_of_values():
    ones, plain = AnyOrder(effort=EFFORT).fit(FRAME, sample_weight=np.ones(len(FRAME))), AnyOrder(effort=EFFORT).fit(FRAME)
    for one, other in zip(ones.history_, plain.history_, strict=True):
        assert one.held_out_nats == other.held_out_nats


def test_a_memory_counts_its_rows_as_often_as_they_weigh():
    """Against a memory that holds the copies; a row in front of it is left out with all of its copies."""
    schema = Schema.of(a=Category(3), y=Recorded(0.1))
    x = torch.tensor([[0, 0.1], [1, 0.3], [2, -0.5], [0, 1.2]])
    copies = torch.tensor([1, 3, 2, 1])
    weighted, copied = (
        Memory(schema, x, x.isfinite(), copies),
        Memory(schema, x[repeated(torch.arange(4), copies)], torch.ones(7, 2) > 0),
    )
    for memory in (weighted, copied):
        memory.metric.data[:, 2] = -30.0  # ranks are those of the different rows: not what this is about
    for known in (torch.tensor([True, False]), torch.tensor([False, True]), torch.tensor([False, False])):
        for variable in (~known).nonzero().squeeze(-1).tolist():
            ours, theirs = (memory(x, known.expand(4, -1)).distribution(variable) for memory in (weighted, copied))
            torch.testing.assert_close(ours.log_prob(x[:, variable]), theirs.log_prob(x[:, variable]))
    known = torch.tensor([True, False]).expand(4, -1)
    alone, among = (weighted(x, known, own).distribution(1).log_prob(x[:, 1]) for own in (torch.arange(4)[:, None], None))
    assert (alone < among - 1)[1]


def test_copies_are_trained_on_together_or_not_at_all():
    present, copies = torch.ones(50, 2, dtype=torch.bool), torch.arange(50) % 4 + 1
    trained, held = (repeated(rows, copies) for rows in split(present, Recipe()))
    assert not set(trained.tolist()) & set(held.tolist())
    assert torch.equal(torch.bincount(torch.cat([trained, held]), minlength=50), copies)


def test_fractions_are_rounded_so_that_the_mean_is_right():
    weight = np.array([0.5, 1.5, 0.25, 0.0, 2.75])
    drawn = torch.stack([copies_of(weight, 5, seed) for seed in range(2000)]).double()
    assert (drawn.sum(1) == 4).all()  # as many as rows with a weight
    np.testing.assert_allclose(drawn.mean(0), weight * 4 / 5, atol=0.04)
    assert (drawn[:, 3] == 0).all()
    assert ((drawn - torch.from_numpy(weight * 4 / 5)).abs() < 1).all()
    assert copies_of([2, 0, 1], 3, 0).tolist() == [2, 0, 1]
    assert copies_of([2000, 1000, 3000], 3, 0).sum() == 3  # a survey's weights say how many people a row stands for, not rows


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -2.0, 1.0], r"sample_weight\[1\] is -2 \(1 such weight\(s\) in all\); expected finite numbers of at least 0"),
        ([1.0, np.nan, np.inf], r"sample_weight\[1\] is nan \(2 such weight\(s\) in all\)"),
        ([1.0, 2.0], r"sample_weight has shape \(2,\); expected one number for each of the 3 rows"),
        ([0, 0, 0], "sample_weight is zero for every row"),
        (["a", "b", "c"], "sample_weight cannot be read as numbers"),
    ],
)
def test_bad_weights_are_explained(weight, message):
    with pytest.raises(InputError, match=message):
        AnyOrder().fit(FRAME.head(3), sample_weight=weight)


def test_a_column_of_weights_is_taken_out_of_a_file():
    frame = FRAME.assign(w=2.0)
    rest, weight = without_weights(frame, "w")
    assert list(rest) == ["g", "b", "y"]
    assert (weight == 2).all()
    assert without_weights(frame, None) == (frame, None)
    with pytest.raises(InputError, match=r"--weight: the table has no column 'ww'. Did you mean 'w'\? Its columns: g, b, y, w."):
        without_weights(frame, "ww")
    with pytest.raises(InputError, match=r"--weight g: the column holds what is no number .* Name a column of numbers."):
        without_weights(frame, "g")


def test_weights_are_for_tables():
    with pytest.raises(InputError, match="sample_weight= is for tables; this is an array of images"):
        AnyOrder().fit(np.zeros((4, 8, 8), dtype=np.uint8), sample_weight=np.ones(4))
    with pytest.raises(InputError, match="sample_weight is not for a codec"):
        AnyOrder(codec=True).fit(FRAME, sample_weight=np.ones(len(FRAME)))
