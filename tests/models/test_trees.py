"""Boosted trees against scikit-learn's own predictions, and the distributions around them against what is known of the noise."""

import copy
import math

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from torch import Generator

from anyorder.errors import FormatError, InputError
from anyorder.inference import seeded
from anyorder.models.trees import LARGEST_THRESHOLD, Boosted, Grown, Reachable, Trees
from anyorder.schema import Category, Recorded, Schema
from anyorder.training import ardm, growing, load_model, save_model
from anyorder.training.growing import (
    DEPTH,
    FEW_GAPS,
    FOR_CODES,
    FOR_GAPS,
    FOR_WHOLE_ROWS,
    ROUNDS,
    TREES,
    KeptBack,
    TrainingRows,
    below,
    copies,
    fit_boosted,
    fit_sureness,
    frequencies,
    grow,
    grow_one,
)

SCHEMA = Schema.of(a=Recorded(0.01), kind=Category(3), b=Recorded(0.01), y=Recorded(0.01, bounds=(-1.0, 3.0)))
NOISE = 0.1
NO_SCORES = Trees.empty(3, 2, 1)  # of the three kinds


def rows_of(count, seed=0):
    """y is a step in a, another in kind, and some noise; b is nothing."""
    rng = seeded(seed)
    a, b = (torch.randn(2, count, generator=rng) * 100).round() / 100
    kind = torch.randint(3, (count,), generator=rng).float()
    y = (a > 0).float() + (kind == 2).float() + NOISE * torch.randn(count, generator=rng)
    x = torch.stack([a, kind, b, (y * 100).round() / 100], dim=-1)
    return x, torch.ones_like(x, dtype=torch.bool)


@pytest.fixture(scope="module")
def fitted():
    x, present = rows_of(3000)
    return fit_boosted(
        SCHEMA, grow(SCHEMA, x, present, seeded(0)), x, present, KeptBack(*rows_of(200, seed=1), ardm()), seeded(0)
    )


@pytest.mark.parametrize("settings", [FOR_GAPS, FOR_WHOLE_ROWS])
def test_our_trees_say_what_scikit_learns_say(settings):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(500, 4)).astype(np.float32).astype(np.float64)
    values = inputs[:, 0] * (inputs[:, 1] > 0) + 0.3 * inputs[:, 2] ** 2
    inputs[rng.random(inputs.shape) < 0.2] = np.nan
    inputs[:, 3] = np.nan
    trees = Trees.empty(6, TREES, DEPTH)
    grow_one(trees.of(1), TrainingRows(inputs, values), settings, seed=5)
    theirs = HistGradientBoostingRegressor(max_iter=TREES, max_depth=DEPTH, early_stopping=False, random_state=5, **settings)
    theirs.fit(np.where(np.isnan(inputs).all(0), 0.0, inputs), values)
    model = Boosted(SCHEMA, Grown(trees, NO_SCORES), torch.ones(4, 3) / 3)
    new = rng.normal(size=(300, 4)).astype(np.float32)
    new[rng.random(new.shape) < 0.3] = np.nan
    new[:, 3] = 0
    wanted = torch.tensor(theirs.predict(new.astype(np.float64))).float()
    torch.testing.assert_close(model.guess(torch.tensor(new), torch.full((300,), 1)), wanted, atol=1e-5, rtol=1e-5)
    assert (model.guess(torch.tensor(new), torch.full((300,), 2)) == 0).all()  # of which no trees were grown


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_leaves_by_bits_are_those_of_going_down(depth, seed):
    rng = np.random.default_rng(seed)
    sets, count, nodes, width = 3, 5, 2**depth - 1, 4
    variable = rng.integers(1, width + 1, (sets, count, nodes)) * rng.choice([-1, 1], (sets, count, nodes))
    threshold = rng.choice([-1.0, 0.0, 0.5, 2.0, LARGEST_THRESHOLD], (sets, count, nodes))
    value = torch.tensor(rng.normal(size=(sets, count, nodes + 1))).float()
    trees = Trees(torch.tensor(variable).float(), torch.tensor(threshold).float(), value, torch.ones(sets))
    seen = rng.choice(np.array([-2, -1, 0, 0.5, 1, 2, 3, LARGEST_THRESHOLD, np.nan], dtype=np.float32), (200, width))
    leaves = Reachable(trees).leaves(seen)
    assert (leaves == trees.leaves(seen)).all()
    assert sum(8 * table.size for table in Reachable(trees).open) <= Reachable.bytes_of(trees)
    for row, tree in ((0, 0), (7, 11), (199, 14)):  # one step after the other
        node = 0
        while node < nodes:
            looked_at, at = variable.reshape(-1, nodes)[tree, node], threshold.reshape(-1, nodes)[tree, node]
            cell = seen[row, abs(looked_at) - 1]
            node = 2 * node + 2 - int(looked_at > 0 if np.isnan(cell) else cell <= np.float32(at))
        assert leaves[row, tree] == node - nodes
    assert len(Reachable(trees).leaves(seen[:0])) == len(trees.leaves(seen[:0])) == 0


def test_without_room_for_tables_trees_say_the_same(fitted, monkeypatch):
    seen = torch.where(torch.rand(50, 4, generator=seeded(3)) < 0.3, torch.nan, rows_of(50, seed=4)[0])
    which = torch.arange(50) % 6
    fast = fitted.guess(seen, which), fitted.level_scores(seen, 1)
    monkeypatch.setattr("anyorder.models.trees.MOST_SCORE_BYTES", 0)
    fitted.reachable.clear()
    slow = fitted.guess(seen, which), fitted.level_scores(seen, 1)
    assert not any(fitted.reachable.values())
    assert all((one == two).all() for one, two in zip(fast, slow, strict=True))
    fitted.reachable.clear()


def test_values_at_a_threshold_go_the_same_way_in_float32():
    thresholds = np.array([0.1, 1 / 3, -2.7, 1e30, math.inf])
    for threshold, ours in zip(thresholds, below(thresholds), strict=True):
        near = np.float32(min(threshold, 3e38))
        for value in (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))):
            assert (float(value) <= threshold) == (value <= ours)


@torch.no_grad()
def test_a_law_is_the_mixture_of_the_docstring(fitted):
    x, _ = rows_of(5, seed=2)
    given = torch.tensor([True, True, False, False]).expand(5, -1)
    fitted = copy.deepcopy(fitted)
    for k, p in enumerate((fitted.scale, fitted.share)):
        p += torch.randn(p.shape, generator=seeded(k)) / 4
    guess = fitted.guess(torch.where(given, x, torch.nan), torch.full((5,), 2))
    around = torch.stack([guess + 1, 3 - guess], dim=-1).amin(-1)  # how far the bounds are
    features = torch.stack(
        [torch.ones(5), torch.full((5,), 1 / 4), torch.full((5,), 1 / 2), guess, (around + 0.02).log()], dim=-1
    )
    share = (features @ fitted.share[2].T).softmax(-1)  # of the third number; one of four variables is hidden beside it
    sigma = (features @ fitted.scale[2].T).exp() + 1e-4

    def upto(place):
        inside = (share * ((place[:, None] - guess[:, None]) / sigma).double().sigmoid()).sum(-1)
        return 0.999 * inside + 0.001 * (place / 3).double().sigmoid()

    mass, ends = upto(x[:, 3] + 0.005) - upto(x[:, 3] - 0.005), [upto(torch.full((5,), end)) for end in (-1.005, 3.005)]
    wanted = (1 - 1e-6) * mass / (ends[1] - ends[0])
    torch.testing.assert_close(fitted(x, given).log_prob(x)[:, 3].exp().double(), wanted, rtol=1e-3, atol=0)


@torch.no_grad()
def test_a_guess_beyond_a_bound_is_at_the_bound(fitted):
    x, _ = rows_of(5, seed=2)
    given = torch.tensor([True, True, True, False]).expand(5, -1)
    fitted = copy.deepcopy(fitted)
    fitted.numbers_base -= 40.0
    assert (fitted(x, given).mean()[:, 3] < 0.2).all()  # and not in the middle of all that is possible


@pytest.mark.slow
def test_laws_that_end_at_a_bound_have_their_means_near_the_guesses(monkeypatch):
    """Half of the values are 0, the others are skewed: a wide distribution that ends at 0 would have its mean far
    above a guess near 0.
    """
    schema = Schema.of(a=Recorded(0.01), y=Recorded(0.01, bounds=(0.0, 12.0)))
    rng, off = seeded(0), []
    a = torch.randn(1200, generator=rng)
    y = torch.where(torch.rand(1200, generator=rng) < 0.5, 0.0, (a + torch.randn(1200, generator=rng) / 2).exp()).clamp(max=12.0)
    x = (torch.stack([a, y], dim=-1) * 100).round() / 100
    present = torch.ones_like(x, dtype=torch.bool)
    trees = grow(schema, x[:900], present[:900], seeded(0))
    for faith in (0.0, 2.0):
        monkeypatch.setattr(growing, "FAITH", faith)
        model = fit_boosted(schema, trees, x[:900], present[:900], KeptBack(x[900:], present[900:], ardm()), seeded(0))
        target, hidden = torch.ones(300, dtype=torch.long), torch.zeros(300, dtype=torch.long)
        with torch.no_grad():
            seen, which = torch.where(torch.tensor([True, False]), x[900:], torch.nan), model.set_of(target, hidden)
            guess = model.within(model.guess(seen, which), target)
            off.append((model.distribution(seen, target).mean() - guess).square().mean().sqrt().item())
    assert off[1] < 0.7 * off[0]


@pytest.mark.slow
@torch.no_grad()
def test_the_noise_is_found_and_more_of_it_where_less_is_known(fitted):
    x, _ = rows_of(2000, seed=3)
    everything = torch.tensor([True, True, True, False]).expand(2000, -1)
    distributions = fitted(x, everything)
    assert (distributions.mean() - x)[:, 3].square().mean().sqrt() < 1.15 * NOISE
    ends = [distributions.quantile(torch.full(x.shape, q))[:, 3] for q in (0.05, 0.95)]
    assert 0.86 < ((ends[0] <= x[:, 3]) & (x[:, 3] <= ends[1])).float().mean() < 0.95
    best = math.log(NOISE * math.sqrt(2 * math.pi * math.e)) - math.log(0.01)  # the entropy of the noise, at the precision
    assert best < -distributions.log_prob(x)[:, 3].mean() < best + 0.15
    less = fitted(x, torch.tensor([True, False, False, False]).expand(2000, -1))
    assert (less.entropy()[:50, 3] > distributions.entropy()[:50, 3] + 0.5).all()


@torch.no_grad()
def test_hidden_values_and_the_target_itself_are_not_looked_at(fitted):
    x, _ = rows_of(20, seed=2)
    given = torch.rand(x.shape, generator=seeded(0)) < 0.5
    other = torch.where(given, x, rows_of(20, seed=9)[0])
    assert torch.equal(fitted(x, given).mean()[~given], fitted(other, given).mean()[~given])
    told = given.clone()
    told[:, 3] = True
    own = given.clone()
    own[:, 3] = False
    torch.testing.assert_close(fitted(x, told).mean()[:, 3], fitted(x, own).mean()[:, 3])


@torch.no_grad()
def test_whole_rows_have_trees_of_their_own(fitted):
    x, present = rows_of(50, seed=4)
    target, hidden = torch.full((50,), 3), torch.zeros(50, dtype=torch.long)
    everything = present & (torch.arange(4) < 3)
    seen = torch.where(everything, x, torch.nan)
    assert (fitted.set_of(target, hidden + 1) == 2).all()
    fitted = copy.deepcopy(fitted)
    fitted.trusted.fill_(1.0)
    assert (fitted.set_of(target, hidden) == 5).all()
    wanted = fitted.around(fitted.guess(seen, hidden + 5), hidden, hidden + 5, target)
    torch.testing.assert_close(fitted(x, everything).distribution(3).log_prob(x[:, 3]), wanted.log_prob(x[:, 3]))
    everything[:, 2] = False
    seen = torch.where(everything, x, torch.nan)
    wanted = fitted.around(fitted.guess(seen, hidden + 2), hidden + 1, hidden + 2, target)
    torch.testing.assert_close(fitted(x, everything).distribution(3).log_prob(x[:, 3]), wanted.log_prob(x[:, 3]))


@pytest.mark.slow
def test_trees_for_whole_rows_are_used_where_they_are_better():
    x, present = rows_of(300)
    held, all_there = rows_of(100, seed=1)
    trees = grow(SCHEMA, x, present, seeded(0), count=5)
    target, none = torch.tensor([3]), torch.tensor([0])
    for worse, which in ((5, 2), (2, 5)):  # the trees of one set of y are spoiled
        spoiled = copy.deepcopy(trees)
        spoiled.numbers.base[worse] += 9.0
        model = fit_boosted(SCHEMA, spoiled, x, present, KeptBack(held, all_there, ardm()), seeded(0))
        assert model.set_of(target, none).item() == which
        assert model.set_of(target, none + 1).item() == 2  # of rows with gaps always the others
    no_whole = KeptBack(held, all_there & (torch.arange(4) > 0), ardm())
    assert not fit_boosted(SCHEMA, trees, x, present, no_whole, seeded(0)).trusted.any()


def test_where_few_rows_are_whole_no_trees_are_grown_for_them():
    x, present = rows_of(300)
    present[:, 0] = torch.arange(300) % 3 == 0
    trees = grow(SCHEMA, x, present, seeded(0), count=5)
    assert not trees.numbers.value[4:].any()  # of b and y; of a itself all other columns are known
    assert trees.numbers.value[3].any()
    model = Boosted(SCHEMA, grow(SCHEMA, *rows_of(300), seeded(0), count=5), torch.ones(4, 3) / 3)
    assert model.trusted.tolist() == [1, 1, 1]
    model.plant(trees)
    assert model.trusted.tolist() == [1, 0, 0]  # empty trees are not asked


def test_without_trees_all_levels_are_alike_and_rare_levels_keep_their_share():
    x, present = rows_of(300)
    present[:100, 1] = False
    table = frequencies(SCHEMA, x, present)
    count = torch.bincount(x[100:, 1].long(), minlength=3)
    torch.testing.assert_close(table[1], 0.999 * count / 200 + 0.001 / 3)
    distribution = Boosted(SCHEMA, Grown(Trees.empty(6, 2, 1), NO_SCORES), table)(x, present).distribution(1)
    torch.testing.assert_close(distribution.pmf(), (0.999 / 3 + 0.001 * table[1]).expand(300, -1))


def test_codes_with_many_levels_have_their_marginal_law():
    schema = Schema.of(many=Category(40), y=Recorded(0.5))
    usual = torch.ones(2, 40).cumsum(-1)
    usual = usual / usual.sum(-1, keepdim=True)
    model = Boosted(schema, Grown(Trees.empty(2, 2, 1), Trees.empty(0, 2, 1)), usual)
    distribution = model(torch.zeros(3, 2), torch.zeros(3, 2, dtype=torch.bool)).distribution(0)
    torch.testing.assert_close(distribution.pmf(), usual[0].expand(3, -1))


@pytest.mark.parametrize("levels", [2, 4])
def test_scores_of_codes_are_what_scikit_learns_say(levels):
    """Of the levels that were seen; one that nobody has is as good as impossible."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=600).astype(np.float32)
    code = np.digitize(a + 0.5 * rng.normal(size=600), [0.0] if levels == 2 else [-0.5, 0.5]).astype(np.float32)
    schema = Schema.of(a=Recorded(0.01), code=Category(levels))
    x, present = torch.tensor(np.stack([a, code], axis=1)), torch.ones(600, 2, dtype=torch.bool)
    trees = grow(schema, x, present, seeded(0)).codes
    seed = torch.randint(2**31, (2,), generator=seeded(0)).tolist()[1]
    table = copies(x, present, 1, Generator().manual_seed(seed), FEW_GAPS)
    settings = {"max_iter": ROUNDS, "max_depth": DEPTH, "early_stopping": True, **FOR_CODES}
    theirs = HistGradientBoostingClassifier(**settings, random_state=seed)
    theirs.fit(np.where(np.isnan(table.inputs).all(0), 0.0, table.inputs), table.values)
    new = torch.stack([torch.randn(200, generator=seeded(1)), torch.zeros(200)], dim=-1)
    new[::7, 0] = torch.nan
    model = Boosted(schema, Grown(Trees.empty(2, 2, DEPTH), trees), frequencies(schema, x, present))
    wanted = torch.tensor(theirs.predict_proba(new.double().numpy())).float()
    found = model.level_scores(new, 1).softmax(-1)
    torch.testing.assert_close(found[:, : wanted.shape[1]], wanted, atol=1e-5, rtol=1e-4)
    assert levels == 2 or found[:, 3].max() < 1e-6


def test_scores_are_drawn_together_as_far_as_new_rows_ask_for():
    x, present = rows_of(400)
    x[:, 1] = torch.randint(3, (400,), generator=seeded(5)).float()  # nothing can be known
    model = fit_boosted(SCHEMA, grow(SCHEMA, x, present, seeded(0)), x, present, KeptBack(x, present, ardm()), seeded(0))
    held, there = rows_of(300, seed=6)
    held[:, 1] = torch.randint(3, (300,), generator=seeded(7)).float()
    fit_sureness(model, KeptBack(held, there, ardm()))
    assert model.sureness[1] <= 0.3
    nats = -model(held, there & (torch.arange(4) != 1)).distribution(1).log_prob(held[:, 1]).mean()
    assert nats < math.log(3) + 0.05


def test_columns_never_seen_and_rows_that_all_agree():
    x, present = rows_of(50)
    present[:, 2] = False  # nothing is known of b
    x[:, 3] = 0.5
    model = fit_boosted(SCHEMA, grow(SCHEMA, x, present, seeded(0)), x, present, KeptBack(x, present, ardm()), seeded(0))
    with torch.no_grad():
        distribution = model(x, present & (torch.arange(4) < 3)).distribution(3)
    assert (distribution.mean() - 0.5).abs().max() < 1e-3
    assert distribution.log_prob(x[:, 3]).min() > -0.1


def test_trees_that_cannot_be_walked_are_refused(tmp_path, fitted):
    trees = Trees.empty(6, 2, 2)
    frequency = torch.ones(4, 3) / 3
    for wrong, match in (
        (trees._replace(feature=torch.full((6, 2, 3), 5.0)), "does not exist; expected 1 to 4"),
        (trees._replace(feature=torch.full((6, 2, 3), 0.5)), "does not exist"),
        (trees._replace(value=torch.full((6, 2, 4), torch.nan)), "not finite"),
        (trees._replace(value=torch.zeros(6, 2, 3)), "one leaf more than nodes"),
        (Trees.empty(4, 2, 2), "2 sets of 3 numbers"),
    ):
        with pytest.raises(InputError, match=match):
            Boosted(SCHEMA, Grown(wrong, NO_SCORES), frequency)
    fitted_copy = Boosted(SCHEMA, Grown(trees, NO_SCORES), frequency)
    fitted_copy.numbers_feature[0, 0, 0] = 9.0
    save_model(fitted_copy, tmp_path / "bad.ao")
    with pytest.raises(FormatError, match=r"describes no boosted trees .*does not exist"):
        load_model(tmp_path / "bad.ao")


def test_trees_of_another_version_are_refused_with_what_to_do(tmp_path):
    model = Boosted(SCHEMA, Grown(Trees.empty(6, 2, 2), NO_SCORES), torch.ones(4, 3) / 3)
    model.scale.data = model.scale.data[..., :4]
    save_model(model, tmp_path / "old.ao")
    with pytest.raises(FormatError, match=r"old.ao .*'scale'.*of another version of anyorder: fit the model again"):
        load_model(tmp_path / "old.ao")
