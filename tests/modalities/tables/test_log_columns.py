"""Numbers over many powers of ten: found, read and written; their probabilities against enumeration, their intervals counted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder.distributions import KernelDistribution, RecordedNumber, bound, mean_place, mixed
from anyorder.distributions.combined import ReweightedNumber
from anyorder.errors import InputError
from anyorder.estimator import AnyOrder
from anyorder.inference import seeded
from anyorder.modalities.tables.columns import NumberColumn
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.modalities.tables.log_columns import LogNumberColumn

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=700)
HEAVY = {
    "continuous": np.exp(3 * NORMAL),
    "whole": np.round(np.exp(3 * NORMAL + 2)).astype(int),
    "cents": np.round(np.exp(2 * NORMAL + 2), 2),
    "signed": np.sign(RNG.normal(size=700)) * np.exp(2.5 * NORMAL),
    "tens": 10 * np.round(np.exp(3 * NORMAL + 2)).astype(int),
    "negative": -np.round(np.exp(3 * NORMAL + 2)),
    "inflated": np.where(RNG.random(700) < 0.6, 0, np.round(np.exp(2.5 * NORMAL + 4))),
}
VAST = {
    "huge": 1e300 * np.exp(3 * NORMAL),
    "tiny": 1e-300 * np.exp(3 * NORMAL),
    "all floats": np.sign(RNG.normal(size=700)) * 10.0 ** RNG.uniform(-300, 300, 700),
}
LIGHT = {
    "normal": NORMAL,
    "lognormal": np.exp(NORMAL),
    "exponential": RNG.exponential(size=700),
    "whole": np.round(20 * NORMAL),
    "huge": 1e300 * NORMAL,
    "one outlier": np.append(NORMAL[1:], 1e6),
}


def column_of(values, **kinds):
    frame = pd.DataFrame({"y": values})
    return TableEncoder.learn(frame, kinds), frame


@pytest.mark.parametrize("name", VAST)
def test_numbers_whose_squares_have_no_place_are_learned_without_a_warning(name):
    encoder, frame = column_of(VAST[name])
    assert isinstance(encoder.columns[0], LogNumberColumn)
    x, _ = encoder.encode(frame)
    assert (x.abs() < 6).all()
    assert x.abs().max() > 1.5
    assert np.isfinite(encoder.frame(x, frame).y).all()


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_tails_are_found_and_every_value_comes_back(name):
    encoder, frame = column_of(HEAVY[name])
    (column,) = encoder.columns
    assert isinstance(column, LogNumberColumn)
    x, present = encoder.encode(frame)
    assert present.all()
    assert (x.abs() < 6).all()
    back = encoder.frame(x, frame)
    torch.testing.assert_close(encoder.encode(back)[0], x, rtol=0, atol=0)
    middle, far = np.abs(frame.y) <= np.abs(frame.y).median(), np.abs(frame.y) > np.abs(frame.y).median()
    np.testing.assert_allclose(back.y[far], frame.y[far], rtol=1e-3 if column.continuous else 1e-5)
    if not column.continuous:
        np.testing.assert_allclose(back.y[middle], frame.y[middle], rtol=0, atol=1e-9)
    low, high = column.bounds
    assert low <= frame.y.min() <= frame.y.max() <= high
    assert low >= 0 or (frame.y < 0).any()
    assert high <= 0 or (frame.y > 0).any()


@pytest.mark.parametrize("name", LIGHT)
def test_other_columns_stay_what_they_were(name):
    encoder, _ = column_of(LIGHT[name])
    (column,) = encoder.columns
    assert type(column) is NumberColumn
    assert column.domain.curve == ()
    assert column == column_of(LIGHT[name], y="linear")[0].columns[0]


def test_the_scale_is_forced_or_forbidden():
    assert type(column_of(HEAVY["whole"], y="linear")[0].columns[0]) is NumberColumn
    assert isinstance(column_of(LIGHT["normal"], y="log")[0].columns[0], LogNumberColumn)
    assert isinstance(column_of(HEAVY["whole"], y="number")[0].columns[0], LogNumberColumn)
    days = pd.Series(pd.date_range("2020-01-01", periods=40, freq="D"))
    with pytest.raises(InputError, match=r"kinds\['y'\] is 'log', but the column holds instants. Use 'log' for plain numbers."):
        column_of(days, y="log")
    with pytest.raises(InputError, match=r"kinds\['y'\] is 'linear', but the column holds String"):
        column_of(["a", "b", "a"], y="linear")


def test_a_column_is_read_again_from_its_description():
    encoder, _ = column_of(HEAVY["cents"])
    assert TableEncoder.from_json(encoder.to_json()) == encoder


def test_the_next_value_up_and_down():
    column = column_of(HEAVY["whole"])[0].columns[0]
    assert [column.neighbour(3.0, True), column.neighbour(3.0, False), column.neighbour(2.5, True)] == [4, 2, 3]
    tens = column_of(HEAVY["tens"])[0].columns[0]
    assert [tens.neighbour(30.0, True), tens.neighbour(34.0, False)] == [40, 30]


def distributions(domain, rows):
    """Of every kind, over the same lattice."""
    wide = lambda *shape, seed=0: torch.randn(1, *shape, generator=seeded(seed), dtype=torch.float64)  # noqa: E731
    head = RecordedNumber(len(domain.atoms), components=3)
    constants = torch.tensor(head.constants(domain), dtype=torch.float64)[None]
    free = constants.clone()
    free[:, -5:-3] = torch.tensor([-torch.inf, torch.inf])
    numbers = 0.5 * wide(head.width)
    curve, spacing = constants[:, -3:], torch.tensor([domain.spacing], dtype=torch.float64)
    kernel = KernelDistribution(
        spacing, wide(8).softmax(-1), rows[None, :8], wide(3, seed=1).softmax(-1), wide(2).exp() / 4, curve
    )
    ends = torch.tensor(domain.bounds, dtype=torch.float64)
    yield "head", head(torch.cat([numbers, free], dim=-1))
    yield "kernel", kernel
    yield "bounded head", head(torch.cat([numbers, constants], dim=-1))
    both = mixed(
        [head(torch.cat([numbers, constants], dim=-1)), bound(kernel, ends[:1], ends[1:], curve)], wide(2).log_softmax(-1)
    )
    yield "mixed", both
    edges = (rows[:3].sort().values + domain.spacing / 2)[None]
    yield "reweighted", ReweightedNumber(spacing, both, edges, wide(4, seed=5).exp())


def test_probabilities_of_all_recorded_values_sum_to_one_and_are_steps_of_the_cdf():
    """Whole numbers from 0 to 3000: every one a cell of its own, near the start many steps of the lattice wide."""
    values = np.round(np.exp(1.5 * RNG.normal(size=300) + 2)).clip(0, 200)
    encoder, frame = column_of(values, y="log")
    (column,) = encoder.columns
    every = np.arange(0, 3001)
    places = torch.tensor(column.places(every.astype(float)))
    assert len(places.unique()) == len(every)
    rows = encoder.encode(frame)[0][:, 0].double()
    step = column.grid
    for name, distribution in distributions(column.domain, rows):
        many = distribution.map_tensors(lambda t: t.expand(len(every), *t.shape[1:]))
        mass = many.log_prob(places).exp()
        below, upto = many.cdf(places - step), many.cdf(places)
        torch.testing.assert_close(mass, upto - below, rtol=1e-6, atol=1e-12, msg=name)
        torch.testing.assert_close(upto[:-1], below[1:], rtol=0, atol=1e-12, msg=name)  # nothing lies between
        torch.testing.assert_close(mass.sum(), upto[-1] - below[0], rtol=0, atol=1e-9, msg=name)
        if name != "kernel" and name != "head":
            assert upto[-1] - below[0] > 1 - 1e-3, name  # the rest lies beyond
        drawn = distribution.map_tensors(lambda t: t.expand(4000, *t.shape[1:])).sample(seeded(1))
        numbers = column.number(drawn.numpy())
        np.testing.assert_allclose(numbers, np.round(numbers), rtol=1e-4, atol=0.05)
        seen = torch.tensor([(np.round(numbers) == v).mean() for v in range(30)])
        assert (seen - mass[:30]).abs().max() < 0.03, name
        q = torch.linspace(0.02, 0.98, 49, dtype=torch.float64)
        found = distribution.map_tensors(lambda t: t.expand(49, *t.shape[1:])).quantile(q)
        first = torch.searchsorted(upto, q)
        inside = (first < len(every)) & (q > below[0])
        torch.testing.assert_close(found[inside], places[first[inside]], rtol=0, atol=step / 4, msg=name)


def test_values_without_steps_have_an_even_lattice_and_the_same_bits():
    encoder, _ = column_of(HEAVY["continuous"])
    head = RecordedNumber(0)
    x = torch.linspace(-2, 2, 9).div(encoder.columns[0].grid).round() * encoder.columns[0].grid
    numbers = torch.randn(9, head.width, generator=seeded())
    constants = torch.tensor(head.constants(encoder.columns[0].domain)).expand(9, -1)
    distribution = head(torch.cat([numbers, constants], dim=-1))
    assert distribution.curve is None
    bent = [torch.tensor([[2.5, 1.0, 0.0]]), torch.tensor([[2.5, 1.0, 50.0]])]  # beside a column with steps
    mixed_curve = torch.cat([bent[0].expand(8, -1), bent[1]])
    beside = replace(distribution.distribution, curve=mixed_curve)
    assert torch.equal(beside.log_prob(x)[:8], distribution.distribution.log_prob(x)[:8])


def test_the_mean_is_that_of_the_values_themselves():
    values = np.round(np.exp(1.5 * RNG.normal(size=300) + 2)).clip(0, 200)
    encoder, frame = column_of(values, y="log")
    (column,) = encoder.columns
    every = np.arange(0, 201)
    places = torch.tensor(column.places(every.astype(float)))
    rows = encoder.encode(frame)[0][:, 0].double()
    for name, distribution in distributions(column.domain, rows):
        p = distribution.map_tensors(lambda t: t.expand(len(every), *t.shape[1:])).log_prob(places).exp()
        low, high = distribution.cdf(places[:1] - column.grid), 1 - distribution.cdf(places[-1:])
        exact = float((p.numpy() * every).sum() + high[0] * frame.y.max() + low[0] * frame.y.min())
        found = float(column.number(mean_place(distribution, column.domain).numpy())[0])
        assert found == pytest.approx(exact, rel=0.03), name
    sure = KernelDistribution(
        *(torch.tensor(v).double() for v in ([column.grid], [[1.0]], [[places[100]]], [[1 - 1e-9, 1e-9]], [[1e-4]]))
    )
    assert column.number(mean_place(sure, column.domain).numpy())[0] == pytest.approx(100, rel=0.01)


def table(sigma, rows, seed, whole):
    rng = np.random.default_rng(seed)
    a, g = rng.normal(size=rows), rng.choice(["u", "v", "w"], rows)
    y = np.exp(sigma * (0.7 * a + 0.5 * (g == "v") + 0.7 * rng.normal(size=rows)) + 2)
    return pd.DataFrame({"a": a.round(2), "g": g, "y": np.round(y) if whole else y})


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "whole"), [(3, True), (2, False)])
def test_intervals_cover_what_they_should_and_scores_are_no_worse(sigma, whole):
    train, test = table(sigma, 700, 1, whole), table(sigma, 1000, 2, whole)
    covered, inside = [], []  # of a whole number an end holds much: nine tenths lie between what is inside and what is covered
    models = [AnyOrder(effort=0.05, random_state=seed).fit(train) for seed in range(3)]
    for model in models:
        low, high = model.intervals(test.assign(y=np.nan), 0.9)
        covered.append(((test.y >= low.y) & (test.y <= high.y)).mean())
        inside.append(((test.y > low.y) & (test.y < high.y)).mean())
    assert np.mean(covered) >= 0.88
    assert np.mean(inside) <= 0.93
    assert min(covered) >= 0.85
    assert max(inside) <= 0.96
    if whole:  # the same cells in both, so that nats can be compared
        plain = AnyOrder(effort=0.05, kinds={"y": "linear"}).fit(train)
        better = models[0].score_samples(test, ["y"], ["a", "g"]) - plain.score_samples(test, ["y"], ["a", "g"])
        assert better.mean() > 0.05
