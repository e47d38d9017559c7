"""The memory of training rows against its own definition, row by row, and the blend against a sum."""

import pytest
import torch

from anyorder import (
    Blend,
    Category,
    InputError,
    Memory,
    Real,
    Recipe,
    Recorded,
    Schema,
    build_model,
    fit,
    load_model,
    mixture_log_prob,
    save_model,
    seeded,
)
from anyorder.heads import KernelLaw, MixedNumber, RecordedNumber
from anyorder.inference import fixed_orders
from anyorder.subsets import Question
from anyorder.training import ardm, fit_weights
from anyorder.training.fit import split

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


def plain_weights(memory, x, given, target, own):
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
    share, even = memory.marginal[target].sigmoid(), far.isfinite() / far.isfinite().sum()
    return (1 - share) * (-far).softmax(0) + share * even


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@torch.no_grad()
def test_weights_are_those_of_the_formula(gaps):
    memory, (x, _) = memory_of(gaps=gaps), rows_of(6, seed=9)
    given = torch.rand(x.shape, generator=seeded(3)) < 0.5
    x[0] = memory.rows[4]
    own = torch.tensor([4, -1, -1, -1, 0, -1])
    found = memory.weigh(memory.features(x), given, own, torch.arange(5))
    for b in range(6):
        for i in range(5):
            torch.testing.assert_close(found[b, i], plain_weights(memory, x[b], given[b], i, own[b]), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_laws_by_mask_by_variable_and_all_at_once_are_the_same(monkeypatch):
    memory, (x, _) = memory_of(gaps=0.2), rows_of(7, seed=5)
    given = torch.rand(x.shape, generator=seeded(1)) < 0.5
    laws = memory(x, given)
    everything = laws.log_prob(x)
    assert everything.isfinite().all()
    some = torch.rand(x.shape, generator=seeded(2)) < 0.5
    torch.testing.assert_close(laws.log_prob(x, at=some), torch.where(some, everything, 0.0))
    for i in range(5):
        torch.testing.assert_close(laws.law(i).log_prob(x[:, i]), everything[:, i])
    assert isinstance(laws.law(0), KernelLaw)
    monkeypatch.setattr("anyorder.memory.NUMBERS_AT_ONCE", 1)  # one row at a time
    torch.testing.assert_close(memory(x, given).log_prob(x, at=some), laws.log_prob(x, at=some))
    assert memory(x, given).log_prob(x, at=torch.zeros_like(some)).abs().sum() == 0


@torch.no_grad()
def test_codes_sum_to_one_and_a_hidden_value_changes_nothing():
    memory, (x, _) = memory_of(), rows_of(5, seed=5)
    given = torch.rand(x.shape, generator=seeded(1)) < 0.5
    for i in (1, 3, 4):
        torch.testing.assert_close(memory(x, given).law(i).pmf().sum(-1), torch.ones(5))
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
        memory(x, given, c).law(4).pmf()[7, 2].item() for c in (torch.full((30, 1), -1), torch.arange(30)[:, None])
    )
    assert inside > 0.02
    assert outside < 1e-3


def test_fitting_finds_the_column_that_matters():
    rng = seeded(0)
    key, noise = torch.randint(0, 8, (300,), generator=rng), torch.randint(0, 8, (300,), generator=rng)
    x = torch.stack([key, noise, (key * 3) % 8], dim=-1).float() / 2
    schema = Schema.of(key=Recorded(0.5), noise=Recorded(0.5), value=Recorded(0.5))
    memory = Memory(schema, x, torch.ones_like(x, dtype=torch.bool))
    recipe = Recipe(law=ardm(), steps=80, batch_size=32, learning_rate=0.05, weight_decay=0.0, average=0.9, check_every=80)
    fitted = fit(memory, x, recipe=recipe, context=torch.arange(300)[:, None])
    metric = torch.nn.functional.softplus(memory.metric)[2].sum(0)
    assert metric[0] > 3 * metric[1]
    given = torch.tensor([[True, True, False]]).expand(300, -1)
    with torch.no_grad():
        assert memory(x, given, torch.arange(300)[:, None]).log_prob(x)[:, 2].exp().mean() > 0.8
    assert fitted.best_nats < 5


def blend_of(seed=0):
    heads = [RecordedNumber(2), *build_model(SCHEMA).heads[1:2], RecordedNumber(2), *build_model(SCHEMA).heads[3:]]
    blend = Blend([build_model(SCHEMA, heads, width=8, depth=1, seed=seed), memory_of(gaps=0.2)])
    blend.weight.data = torch.randn(blend.weight.shape, generator=seeded(seed))
    return blend


@torch.no_grad()
def test_a_blend_is_the_weighted_sum_of_its_models():
    blend, (x, _) = blend_of(), rows_of(6, seed=2)
    given = torch.rand(x.shape, generator=seeded(4)) < 0.5
    share = (blend.weight[..., 0].T + given.sum(-1)[:, None, None] / 5 * blend.weight[..., 1].T).softmax(-1)
    each = torch.stack([model(x, given).log_prob(x).exp() for model in blend.members()], dim=-1)
    torch.testing.assert_close(blend(x, given).log_prob(x).exp(), (share * each).sum(-1))
    assert isinstance(blend(x, given).law(0), MixedNumber)
    means = torch.stack([model(x, given).mean() for model in blend.members()], dim=-1)
    torch.testing.assert_close(blend(x, given).mean(), (share * means).sum(-1))


def test_the_weights_of_a_blend_are_those_of_fewest_nats():
    """A network that knows nothing and a memory of the very law: the memory gets the weight; and no other weights do better."""
    x, present = rows_of(400)
    memory = Memory(SCHEMA, x[:300], present[:300])
    blend = Blend([build_model(SCHEMA, blend_of().members()[0].heads, width=8, depth=0), memory])
    held = x[300:]
    fit_weights(blend, held, present[300:], ardm(), [None, None], seeded(0))
    question = Question(torch.zeros_like(present[300:]), present[300:])
    score = lambda: mixture_log_prob(blend, held, question, fixed_orders(5, 4)).mean().item()  # noqa: E731
    best, weights = score(), blend.weight.data.clone()
    for nudge in (torch.tensor([2.0, 0.0]), torch.tensor([-2.0, 0.0])):
        blend.weight.data = weights + nudge[:, None, None] * torch.tensor([1.0, 0.0])
        assert score() < best


@pytest.mark.parametrize("make", [lambda: blend_of().members()[0], lambda: memory_of(gaps=0.2), blend_of])
@torch.no_grad()
def test_asking_for_some_cells_is_asking_for_all_and_taking_some(make):
    """Every question that can be asked of some cells only, for a network, a memory and a blend."""
    model, (x, _) = make(), rows_of(6, seed=2)
    given = torch.rand(x.shape, generator=seeded(4)) < 0.5
    some = torch.rand(x.shape, generator=seeded(5)) < 0.5
    laws, level = model(x, given), torch.full(x.shape, 0.3)
    for all_cells, some_cells in (
        (laws.log_prob(x), laws.log_prob(x, at=some)),
        (laws.mean(), laws.mean(at=some)),
        (laws.quantile(level), laws.quantile(level, at=some)),
        (laws.entropy(), laws.entropy(at=some)),
    ):
        torch.testing.assert_close(some_cells, torch.where(some, all_cells, 0.0))
    best = torch.stack([laws.law(i).mean() if i in (0, 2) else laws.law(i).pmf().argmax(-1).float() for i in range(5)], dim=-1)
    torch.testing.assert_close(laws.best(at=some), torch.where(some, best, 0.0))
    many = model(x.repeat(4000, 1), given.repeat(4000, 1))
    drawn = many.sample(seeded(0), at=some.repeat(4000, 1)).unflatten(0, (4000, 6))
    assert (drawn[:, ~some] == 0).all()
    codes = torch.tensor([1, 3, 4])  # the mean of codes is the mean of the law, within five standard errors
    error = (drawn.mean(0) - laws.mean())[:, codes] * some[:, codes]
    assert (error.abs() < 5 / 4000**0.5).all()


def test_saved_and_loaded_the_same(tmp_path):
    x, _ = rows_of(6, seed=2)
    given = torch.rand(x.shape, generator=seeded(4)) < 0.5
    for model in (memory_of(gaps=0.2), blend_of()):
        save_model(model, tmp_path / "model.ao")
        loaded = load_model(tmp_path / "model.ao")
        assert type(loaded) is type(model)
        with torch.no_grad():
            assert torch.equal(loaded(x, given).log_prob(x), model(x, given).log_prob(x))


def test_what_a_memory_cannot_hold_is_explained():
    with pytest.raises(InputError, match=r"'a' is Real\(\): a density gives no mass to a copy"):
        Memory(Schema.of(a=Real()), torch.zeros(3, 1), torch.ones(3, 1, dtype=torch.bool))
    with pytest.raises(InputError, match="at least one row"):
        Memory(SCHEMA, torch.zeros(0, 5), torch.ones(0, 5, dtype=torch.bool))
    schema = Schema.of(a=Recorded(0.5, (0.0,)), b=Recorded(0.5))  # one atom here, none there: two kinds of head
    two = [build_model(schema, width=4, depth=0), Memory(schema, torch.zeros(3, 2), torch.ones(3, 2, dtype=torch.bool))]
    with pytest.raises(InputError, match="expected the same groups"):
        Blend(two)
    with pytest.raises(InputError, match="same schema"):
        Blend([memory_of(), Memory(Schema.of(a=Category(2)), torch.zeros(3, 1), torch.ones(3, 1, dtype=torch.bool))])


def test_rows_to_train_on_and_rows_kept_back_are_a_partition():
    present = torch.ones(50, 2, dtype=torch.bool)
    present[7] = False
    train, held = split(present, Recipe(seed=4))
    assert sorted([*train.tolist(), *held.tolist()]) == [i for i in range(50) if i != 7]
