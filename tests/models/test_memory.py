"""The memory of training rows against its own definition, row by row, and the blend against a sum."""

import pytest
import torch

from anyorder.distributions import KernelDistribution
from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.models.memory import Memory, Neighbours, worth_comparing
from anyorder.schema import Category, Real, Recorded, Schema
from anyorder.training import Recipe, ardm, fit
from anyorder.training.loop import split

SCHEMA = Schema.of(a=Recorded(0.5), b=Category(3), c=Recorded(0.25), d=Category(2), e=Category(3))


def rows_of(count, seed=0, gaps=0.0):
    rng = seeded(seed)
    numbers = torch.randn(count, 5, generator=rng)
    x = torch.stack(
        [
            (numbers[:, 0] * 2).round() / 2,
            numbers[:, 1].gt(0) + numbers[:, 2].gt(0.5).float(),
            (numbers[:, 2] * 4).round() / 4,
            numbers[:, 0].gt(0).float(),
            torch.randint(3, (count,), generator=rng).float(),
        ],
        dim=-1,
    )
    return x, torch.rand(x.shape, generator=rng) >= gaps


def memory_of(count=12, gaps=0.0, seed=0):
    memory = Memory(SCHEMA, *rows_of(count, seed, gaps))
    with torch.no_grad():
        for k, p in enumerate(memory.parameters()):
            p += torch.randn(p.shape, generator=seeded(k + 1)) / 2
    return memory


def plain_weights(memory, x, given, target, own, nearest=False):
    """Every remembered row's weight for one target of one row, by the formula in the docstring."""
    metric = torch.nn.functional.softplus(memory.metric)[target]  # (feature, known)
    far = []
    for k, row in enumerate(memory.rows):
        distance = 0.0
        for j in given.nonzero().flatten().tolist():
            if not memory.held[k, j]:
                distance += metric[3, j]
                continue
            column = memory.rows[memory.held[:, j] == 1, j]
            rank = lambda v, column=column: ((column < v).sum() + (column <= v).sum()) / 2 / len(column)  # noqa: E731
            distance += metric[0, j] * min(4.0, abs(x[j] - row[j])) + metric[1, j] * (x[j] != row[j])
            distance += metric[2, j] * abs(rank(x[j]) - rank(row[j]))
        out = k == own or not memory.held[k, target]
        far.append(torch.tensor(torch.inf) if out else distance * memory.sharpness[target, given.sum()].exp())
    far = torch.stack([torch.as_tensor(f) for f in far])
    if nearest:
        return far.min()
    share, even = memory.marginal[target].sigmoid(), far.isfinite() / far.isfinite().sum()
    return (1 - share) * (-far).softmax(0) + share * even


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("known", ["half", "few", "two", "nothing"])
@pytest.mark.parametrize("at_once", [None, 4])
@torch.no_grad()
def test_weights_are_those_of_the_formula(gaps, known, at_once):
    """However many rows are compared at once, and whether all rows share their columns or each has its own."""
    memory, (x, _) = memory_of(gaps=gaps), rows_of(6, seed=9)
    given = torch.rand(x.shape, generator=seeded(3)) < (0.5 if known == "half" else 0.0)
    if known == "few":  # one each, and row 2 none
        given[torch.tensor([0, 1, 3, 4, 5]), torch.tensor([0, 1, 3, 4, 3])] = True
    if known == "two":  # the same two columns; the others are known to no row
        given[:4, [1, 3]] = True
    assert worth_comparing(given).shape == {"half": (1, 5), "few": (6, 1), "two": (1, 2), "nothing": (6, 0)}[known]
    x[0] = memory.rows[4]
    own = torch.tensor([4, -1, -1, -1, 0, -1])
    recall = Neighbours(memory, x, given, own)
    recall.at_once = at_once or recall.at_once
    row, variable = torch.ones(6, 5).nonzero().unbind(-1)
    found = recall.weights(row, variable).weight.view(6, 5, -1)
    for b in range(6):
        for i in range(5):
            torch.testing.assert_close(found[b, i], plain_weights(memory, x[b], given[b], i, own[b]), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_laws_by_mask_by_variable_and_all_at_once_are_the_same(monkeypatch):
    memory, (x, _) = memory_of(gaps=0.2), rows_of(7, seed=5)
    given = torch.rand(x.shape, generator=seeded(1)) < 0.5
    distributions = memory(x, given)
    everything = distributions.log_prob(x)
    assert everything.isfinite().all()
    some = torch.rand(x.shape, generator=seeded(2)) < 0.5
    torch.testing.assert_close(distributions.log_prob(x, at=some), torch.where(some, everything, 0.0))
    for i in range(5):
        torch.testing.assert_close(distributions.distribution(i).log_prob(x[:, i]), everything[:, i])
    assert isinstance(distributions.distribution(0), KernelDistribution)
    monkeypatch.setattr("anyorder.models.memory.DISTANCES_AT_ONCE", 1)  # one row at a time
    torch.testing.assert_close(memory(x, given).log_prob(x, at=some), distributions.log_prob(x, at=some))
    assert memory(x, given).log_prob(x, at=torch.zeros_like(some)).abs().sum() == 0


@torch.no_grad()
def test_codes_sum_to_one_and_a_hidden_value_changes_nothing():
    memory, (x, _) = memory_of(), rows_of(5, seed=5)
    given = torch.rand(x.shape, generator=seeded(1)) < 0.5
    for i in (1, 3, 4):
        torch.testing.assert_close(memory(x, given).distribution(i).pmf().sum(-1), torch.ones(5))
    other = torch.where(given, x, (x + 1) % 2)
    assert torch.equal(memory(other, given).mean(), memory(x, given).mean())


@torch.no_grad()
def test_a_row_that_is_left_out_does_not_see_itself():
    x, present = rows_of(30)
    x[:, 4] = 0
    x[7, 4] = 2  # the only one
    memory = Memory(SCHEMA, x, present)
    given = torch.ones_like(x, dtype=torch.bool)
    given[:, 4] = False
    inside, outside = (
        memory(x, given, c).distribution(4).pmf()[7, 2].item() for c in (torch.full((30, 1), -1), torch.arange(30)[:, None])
    )
    assert inside > 0.02
    assert outside < 1e-3


def test_fitting_finds_the_column_that_matters():
    rng = seeded(0)
    key, noise = torch.randint(0, 8, (300,), generator=rng), torch.randint(0, 8, (300,), generator=rng)
    x = torch.stack([key, noise, (key * 3) % 8], dim=-1).float() / 2
    schema = Schema.of(key=Recorded(0.5), noise=Recorded(0.5), value=Recorded(0.5))
    memory = Memory(schema, x, torch.ones_like(x, dtype=torch.bool))
    recipe = Recipe(objective=ardm(), steps=80, batch_size=32, learning_rate=0.05, weight_decay=0.0, average=0.9, check_every=80)
    fitted = fit(memory, x, recipe=recipe, context=torch.arange(300)[:, None])
    metric = torch.nn.functional.softplus(memory.metric)[2].sum(0)
    assert metric[0] > 3 * metric[1]
    given = torch.tensor([[True, True, False]]).expand(300, -1)
    with torch.no_grad():
        assert memory(x, given, torch.arange(300)[:, None]).log_prob(x)[:, 2].exp().mean() > 0.8
    assert fitted.best_nats < 5


def test_what_a_memory_cannot_hold_is_explained():
    with pytest.raises(InputError, match=r"'a' is Real\(\): a density gives no mass to a copy"):
        Memory(Schema.of(a=Real()), torch.zeros(3, 1), torch.ones(3, 1, dtype=torch.bool))
    with pytest.raises(InputError, match="at least one row"):
        Memory(SCHEMA, torch.zeros(0, 5), torch.ones(0, 5, dtype=torch.bool))


def test_rows_to_train_on_and_rows_kept_back_are_a_partition():
    present = torch.ones(50, 2, dtype=torch.bool)
    present[7] = False
    train, held = split(present, Recipe(seed=4))
    assert sorted([*train.tolist(), *held.tolist()]) == [i for i in range(50) if i != 7]
