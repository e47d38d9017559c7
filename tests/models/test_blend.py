"""Several models behind one forward: the blend against a sum, and what all of its models must keep to."""

import pytest
import torch

from anyorder.distributions import KernelDistribution, MixedNumber, RecordedNumber
from anyorder.errors import InputError
from anyorder.inference import fixed_orders, mixture_log_prob, seeded
from anyorder.models.any_order import build_model
from anyorder.models.blend import Blend, GateInputs
from anyorder.models.memory import Memory
from anyorder.models.row_index import Recurring
from anyorder.models.trees import Boosted
from anyorder.schema import Category, Recorded, Schema
from anyorder.subsets import Question
from anyorder.training import Edges, Objective, Recipe, ardm, blending, fit, fit_temperature, fit_weights, load_model, save_model
from anyorder.training.blending import CRPS_DRAWS, MARGIN, TEMPERATURES, Answered, distances, questions
from anyorder.training.growing import KeptBack, fit_boosted, frequencies, grow
from models.test_memory import SCHEMA, memory_of, plain_weights, rows_of


def fitted_boosted(schema, x, held):
    all_of = lambda t: torch.ones_like(t, dtype=torch.bool)  # noqa: E731
    return fit_boosted(
        schema, grow(schema, x, all_of(x), seeded(0)), x, all_of(x), KeptBack(held, all_of(held), ardm()), seeded(0)
    )


def boosted_of(seed=0):
    x, present = rows_of(60, seed, gaps=0.1)
    boosted = Boosted(SCHEMA, grow(SCHEMA, x, present, seeded(seed)), frequencies(SCHEMA, x, present))
    with torch.no_grad():
        for k, p in enumerate(boosted.parameters()):
            p += torch.randn(p.shape, generator=seeded(k + 1)) / 4
    return boosted


def blend_of(seed=0):
    heads = [RecordedNumber(2), *build_model(SCHEMA).heads[1:2], RecordedNumber(2), *build_model(SCHEMA).heads[3:]]
    blend = Blend([build_model(SCHEMA, heads, width=8, depth=1, seed=seed), memory_of(gaps=0.2), boosted_of()])
    blend.weight.data = torch.randn(blend.weight.shape, generator=seeded(seed))
    return blend


@torch.no_grad()
def test_a_blend_is_the_weighted_sum_of_its_models():
    blend, (x, _) = blend_of(), rows_of(6, seed=2)
    memory = blend.members()[1]
    given = torch.rand(x.shape, generator=seeded(4)) < 0.5
    given[5] = torch.arange(5) != 2  # all else is known of one cell
    own = torch.tensor([-1, 3, -1, 0, -1, -1])
    nearest = torch.tensor([[plain_weights(memory, x[r], given[r], i, own[r], nearest=True) for i in range(5)] for r in range(6)])
    level, known, few, far, all_else = blend.weight.permute(2, 1, 0)
    count = given.sum(-1)[:, None, None]
    logits = level + count / 5 * known + few / (1 + count) + nearest.clamp(max=50.0).log1p()[..., None] * far
    logits = logits + (count >= 4) * all_else
    share = logits.softmax(-1)
    contexts = [None, own[:, None], None]
    distributions = [model(x, given, context) for model, context in zip(blend.members(), contexts, strict=True)]
    each = torch.stack([distribution.log_prob(x).exp() for distribution in distributions], dim=-1)
    mine = blend(x, given, torch.stack([own, own], dim=-1))
    torch.testing.assert_close(mine.log_prob(x).exp(), (share * each).sum(-1))
    assert isinstance(mine.distribution(0), MixedNumber)
    means = torch.stack([distribution.mean() for distribution in distributions], dim=-1)
    torch.testing.assert_close(mine.mean(), (share * means).sum(-1))


@torch.no_grad()
def test_numbers_are_sharpened_and_codes_are_not():
    blend, (x, _) = blend_of(), rows_of(6, seed=2)
    given = torch.rand(x.shape, generator=seeded(4)) < 0.5
    given[:, 3:] = True  # more than a few
    given[5] = torch.arange(5) == 3
    plain = blend(x, given)
    blend.temperature.copy_(torch.tensor([0.8, 0.7, 0.9, 0.7, 0.7]))
    sharp = blend(x, given)
    torch.testing.assert_close(sharp.log_prob(x)[:, [1, 3, 4]], plain.log_prob(x)[:, [1, 3, 4]])
    share = plain.distribution(0).log_weight
    distributions = [model(x, given).distribution(0).tempered(0.8) for model in blend.members()]
    wanted = torch.stack([distribution.log_prob(x[:, 0]) for distribution in distributions], dim=-1).add(share).logsumexp(-1)
    torch.testing.assert_close(sharp.log_prob(x)[:5, 0], wanted[:5])
    torch.testing.assert_close(sharp.log_prob(x)[5], plain.log_prob(x)[5])  # where only one variable is known


def test_every_number_has_the_lowest_temperature_that_costs_no_nats(monkeypatch):
    """Distributions that are too wide are sharpened, as far as it is no worse than to leave them; distributions that
    are too narrow are left.

    The slow twin asks for one variable after the other, at one temperature after the other.
    """
    blurs = (0.9, 0.3, 0.25, 0.2, 0.18, 0.15, 0.05)
    rows = (torch.randn(300, 1, generator=seeded(0)) * 100).round() / 100
    schema = Schema.of(**{f"v{k}": Recorded(0.01) for k in range(7)}, code=Category(2))
    columns = torch.cat([rows.expand(-1, 7), (rows > 0).float()], dim=1)  # all alike, and none is known from the others
    present = torch.ones_like(columns, dtype=torch.bool)
    memory, held = Memory(schema, columns[:200], present[:200]), columns[200:]
    memory.metric.data.fill_(-40.0)
    memory.share.data = torch.tensor([-9.0, 0.0, 0.0]).repeat(8, 1)
    memory.blur.data = torch.tensor([*blurs, 1.0]).log()[:, None].repeat(1, 2)
    monkeypatch.setattr("anyorder.models.blend.FEW_CONDITIONS", -1)  # where nothing is known, too
    blend = Blend([memory])
    fit_temperature(blend, held, present[200:], EachAlone(), None, seeded(0))
    chosen = [round(t, 2) for t in blend.temperature.tolist()]
    for variable in range(7):
        question, nats = Question(present[200:] & False, present[200:] & (torch.arange(8) == variable)), {}
        for temperature in TEMPERATURES:
            blend.temperature.fill_(temperature)
            nats[temperature] = -mixture_log_prob(blend, held, question, fixed_orders(8, 1)).detach().numpy()
        more = {at: each - nats[1.0] for at, each in nats.items()}
        assert chosen[variable] == min(at for at, each in more.items() if each.mean() + MARGIN * each.std() / 10 <= 0)
    assert chosen[0] == 0.7
    assert any(0.7 < t < 1.0 for t in chosen)
    assert chosen[6:] == [1.0, 1.0]  # the last is a code
    fit_temperature(blend, held[:29], present[:29], EachAlone(), None, seeded(0))
    assert (blend.temperature == 1.0).all()  # too few rows to tell


class EachAlone(Objective):
    """Every variable, and nothing is known."""

    def sample(self, present, rng):
        return Edges(torch.zeros_like(present), present.float(), None)

    def nats(self):
        return self


def test_the_weights_of_a_blend_are_those_of_fewest_nats():
    """A network that knows nothing and a memory of the very distribution: the memory gets the weight; and no other
    weights do better.
    """
    x, present = rows_of(400)
    memory = Memory(SCHEMA, x[:300], present[:300])
    blend = Blend([build_model(SCHEMA, blend_of().members()[0].heads, width=8, depth=0), memory])
    held = x[300:]
    fit_weights(blend, held, present[300:], ardm(), None, seeded(0))
    question = Question(torch.zeros_like(present[300:]), present[300:])
    score = lambda: mixture_log_prob(blend, held, question, fixed_orders(5, 4)).mean().item()  # noqa: E731
    best, weights = score(), blend.weight.data.clone()
    for nudge in (torch.tensor([2.0, 0.0]), torch.tensor([-2.0, 0.0])):
        blend.weight.data = weights + nudge[:, None, None] * torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0])
        assert score() < best


def test_the_crps_of_a_mixture_is_the_sum_over_pairs_of_draws():
    """The slow, obvious twin: every draw of every model against the truth and against every other draw."""
    distributions = [KernelDistribution(torch.full((4,), 0.5), *kernel) for kernel in (kernel_of(0), kernel_of(1), kernel_of(2))]
    truth, mix = torch.tensor([0.0, 1.0, -2.0, 0.5]), torch.rand(4, 3, generator=seeded(5)).softmax(-1)
    off, away, apart = distances(distributions, truth, seeded(7))
    rng = seeded(7)
    draws = [[distribution.sample(rng) for _ in range(CRPS_DRAWS)] for distribution in distributions]
    said = Answered(GateInputs(*[torch.zeros(4)] * 4), off, off, away, apart, off, torch.ones(4))
    for cell in range(4):
        total = 0.0
        for m, mine in enumerate(draws):
            total += mix[cell, m] * sum((one[cell] - truth[cell]).abs() for one in mine) / CRPS_DRAWS
            for n, theirs in enumerate(draws):
                pairs = [(i, j) for i in range(CRPS_DRAWS) for j in range(CRPS_DRAWS) if m != n or i != j]
                apart = sum((mine[i][cell] - theirs[j][cell]).abs() for i, j in pairs) / len(pairs)
                total -= mix[cell, m] * mix[cell, n] * apart / 2
        assert said.crps(mix)[cell].item() == pytest.approx(total.item(), abs=1e-5)
        assert off[cell].tolist() == pytest.approx(
            [distribution.mean()[cell].item() - truth[cell].item() for distribution in distributions], abs=1e-6
        )


@pytest.mark.parametrize("width", [3, 40])
def test_the_usual_loss_is_that_of_the_best_model_at_questions_alike(width):
    """One cell after the other: the same variable, about as much known; in a wide table a twelfth of it."""
    rng, kinds = seeded(0), min(width, 12)
    variable, known = (torch.randint(width, (500,), generator=rng) for _ in range(2))
    loss, none = torch.rand(500, 2, generator=rng), torch.zeros(500, 2)
    at = GateInputs(variable, known / width, none[:, 0], none[:, 0])
    said = Answered(at, none, none, none, none[..., None], none, none[:, 0])
    found = said.usual(loss, width)
    kind = [(int(v), round(int(k) / width * kinds)) for v, k in zip(variable, known, strict=True)]
    for cell in range(0, 500, 7):
        alike = [other for other in range(500) if kind[other] == kind[cell]]
        assert found[cell].item() == pytest.approx(loss[alike].mean(0).min().item())


def kernel_of(seed):
    rng = seeded(seed)
    values = (torch.randn(4, 5, generator=rng) * 2).round() / 2
    return torch.rand(4, 5, generator=rng).softmax(-1), values, torch.full((4, 3), 1 / 3), torch.rand(4, 2, generator=rng) + 0.1


def test_draws_that_are_near_count_beside_nats(monkeypatch):
    """The memory knows that all values are whole numbers, but nothing else; the trees know where about they lie."""
    rng = seeded(0)
    schema = Schema.of(a=Recorded(0.01), b=Recorded(0.01))
    a = torch.randn(900, 1, generator=rng)
    x = torch.cat([(100 * a).round() / 100, (2 * a + 0.5 * torch.randn(900, 1, generator=rng)).round()], dim=1)
    held, shares = x[600:800], []
    for worth in (0.0, 1.0):
        monkeypatch.setattr(blending, "SPREAD", worth)
        monkeypatch.setattr(blending, "ERROR", 0.0)
        memory = Memory(schema, x[:600], torch.ones_like(x[:600], dtype=torch.bool))
        memory.metric.data.fill_(-20.0)
        memory.share.data = torch.tensor([8.0, 0.0, 0.0]).repeat(2, 1)
        blend = Blend([memory, fitted_boosted(schema, x[:600], x[800:])])
        fit_weights(blend, held, torch.ones_like(held, dtype=torch.bool), ardm(), None, seeded(0))
        known = torch.tensor([[True, False]]).expand(200, -1)
        with torch.no_grad():
            (part,) = blend(held, known).parts
            shares.append(blend.log_weight(part.each_at(...)[1]).exp()[:, 1, 0].mean().item())
    assert shares[1] < 0.9 * shares[0]


def test_a_memory_counts_more_where_it_has_a_row_like_this_one():
    """Half of the rows repeat a remembered row exactly, half are new and only the trees know them."""
    rng = seeded(0)
    schema = Schema.of(a=Recorded(0.01), b=Recorded(0.01), c=Recorded(0.01))
    ab = (torch.rand(900, 2, generator=rng) * 100).round() / 100
    x = torch.cat([ab, (100 * (2 * ab[:, :1] - ab[:, 1:])).round() / 100], dim=1)
    present = torch.ones_like(x, dtype=torch.bool)
    blend = Blend([Memory(schema, x[:600], present[:600]), boosted := fitted_boosted(schema, x[:600], x[800:])])
    held = torch.cat([x[:100], x[600:700]])
    fit_weights(blend, held, torch.ones_like(held, dtype=torch.bool), ardm(), None, seeded(0))
    known = torch.tensor([[True, True, False]]).expand(200, -1)
    with torch.no_grad():
        (part,) = blend(held, known).parts
        share = blend.log_weight(part.each_at(...)[1]).exp()[:, 2, 0]
    assert share[:100].mean() > 2 * share[100:].mean()
    assert boosted.schema == schema


@pytest.mark.parametrize("make", [lambda: blend_of().members()[0], lambda: memory_of(gaps=0.2), boosted_of, blend_of])
@torch.no_grad()
def test_asking_for_some_cells_is_asking_for_all_and_taking_some(make):
    """Every question that can be asked of some cells only, for a network, a memory, trees and a blend."""
    model, (x, _) = make(), rows_of(6, seed=2)
    given = torch.rand(x.shape, generator=seeded(4)) < 0.5
    some = torch.rand(x.shape, generator=seeded(5)) < 0.5
    distributions, level = model(x, given), torch.full(x.shape, 0.3)
    for all_cells, some_cells in (
        (distributions.log_prob(x), distributions.log_prob(x, at=some)),
        (distributions.mean(), distributions.mean(at=some)),
        (distributions.quantile(level), distributions.quantile(level, at=some)),
        (distributions.entropy(), distributions.entropy(at=some)),
    ):
        torch.testing.assert_close(some_cells, torch.where(some, all_cells, 0.0))
    best = torch.stack(
        [
            distributions.distribution(i).mean() if i in (0, 2) else distributions.distribution(i).pmf().argmax(-1).float()
            for i in range(5)
        ],
        dim=-1,
    )
    torch.testing.assert_close(distributions.best(at=some), torch.where(some, best, 0.0))
    many = model(x.repeat(4000, 1), given.repeat(4000, 1))
    drawn = many.sample(seeded(0), at=some.repeat(4000, 1)).unflatten(0, (4000, 6))
    assert (drawn[:, ~some] == 0).all()
    codes = torch.tensor([1, 3, 4])  # the mean of codes is the mean of the distribution, within five standard errors
    error = (drawn.mean(0) - distributions.mean())[:, codes] * some[:, codes]
    assert (error.abs() < 5 / 4000**0.5).all()


def test_saved_and_loaded_the_same(tmp_path):
    x, _ = rows_of(6, seed=2)
    given = torch.rand(x.shape, generator=seeded(4)) < 0.5
    for model in (memory_of(gaps=0.2), boosted_of(), blend_of()):
        save_model(model, tmp_path / "model.ao")
        loaded = load_model(tmp_path / "model.ao")
        assert type(loaded) is type(model)
        with torch.no_grad():
            assert torch.equal(loaded(x, given).log_prob(x), model(x, given).log_prob(x))


def test_models_that_do_not_belong_together_are_refused():
    schema = Schema.of(a=Recorded(0.5, (0.0,)), b=Recorded(0.5))  # one atom here, none there: two kinds of head
    two = [build_model(schema, width=4, depth=0), Memory(schema, torch.zeros(3, 2), torch.ones(3, 2, dtype=torch.bool))]
    with pytest.raises(InputError, match="expected the same groups"):
        Blend(two)
    with pytest.raises(InputError, match="same schema"):
        Blend([memory_of(), Memory(Schema.of(a=Category(2)), torch.zeros(3, 1), torch.ones(3, 1, dtype=torch.bool))])


def test_a_context_says_two_things():
    x, present = rows_of(3)
    blend = Blend([boosted_of(), boosted_of(1)])
    with pytest.raises(InputError, match=r"1 column\(s\); expected 2, places in its memory and among all rows"):
        blend(x, present, torch.zeros(3, 1, dtype=torch.long))


@torch.no_grad()
def test_a_model_that_needs_more_to_be_known_has_no_weight_and_is_not_asked():
    blend, (x, _) = blend_of(), rows_of(6, seed=2)
    given = torch.zeros_like(x, dtype=torch.bool)
    given[:, 3] = True
    blend.least[1, 0], blend.least[2, 0] = 2, 1
    distributions, at = blend(x, given).parts[0].each_at((slice(None), torch.tensor([0])))
    assert len(distributions) == 2  # the memory needs two
    share = blend.log_weight(at).exp()
    assert (share[..., 1] == 0).all()
    torch.testing.assert_close(share.sum(-1), torch.ones(6, 1))
    wanted = sum(
        share[:, 0, m, None] * blend.members()[m](x, given).distribution(0).log_prob(x[:, 0]).exp()[:, None] for m in (0, 2)
    )
    torch.testing.assert_close(blend(x, given).distribution(0).log_prob(x[:, 0]).exp()[:, None], wanted)


def test_a_model_that_is_worse_than_the_marginal_has_no_weight_where_little_is_known():
    """The memory's metric is sharp and wrong: with little known it is sure of a few rows."""
    x, present = rows_of(500)
    memory = Memory(SCHEMA, x[:100], present[:100])
    memory.metric.data.fill_(3.0)
    memory.sharpness.data.fill_(3.0)
    network = build_model(SCHEMA, blend_of().members()[0].heads, width=8, depth=0)
    network = fit(network, x[:300], present[:300], Recipe(steps=200)).model
    blend = Blend([network, memory])
    fit_weights(blend, x[300:], present[300:], ardm(), None, seeded(0), recurring=Recurring(SCHEMA, x[:300], present[:300]))
    assert (blend.least[1] >= 2).any()
    assert (blend.least[0] == 0).all()


def test_every_value_is_asked_for_given_all_else():
    present = torch.rand(7, 5, generator=seeded(0)) < 0.8
    rows, edges = questions(present, ardm(), seeded(1))
    alone = (edges.weight > 0).sum(-1) == 1
    left = edges.given == (present[rows] & ~(edges.weight > 0))  # what is not asked for is known
    asked = {(rows[k].item(), edges.weight[k].argmax().item()) for k in (alone & left.all(-1)).nonzero().flatten().tolist()}
    assert asked == {(r, i) for r, i in present.nonzero().tolist()}
    assert not (edges.weight > 0)[~present[rows]].any()


@pytest.mark.slow
def test_a_memory_that_is_left_out_takes_its_distances_with_it():
    """The weights of those that stay are the same as if it had never been there."""
    x, present = rows_of(500)
    network = build_model(SCHEMA, blend_of().members()[0].heads, width=8, depth=0)
    trees, memory = fitted_boosted(SCHEMA, x[:300], x[400:]), Memory(SCHEMA, x[:50], present[:50])
    left = []
    for models, pays in (([network, memory, trees], (0.0, 1e9, 0.0)), ([network, trees], (0.0, 0.0))):
        blend = Blend(models)
        kept = fit_weights(blend, x[300:], present[300:], ardm(), None, seeded(0), pays=pays)
        assert kept == [k for k, model in enumerate(models) if model is not memory]
        left.append(blend.weight.data[kept])
    assert (left[0] - left[1]).abs().mean() < 0.3  # draws differ
    assert left[0][:, :, 3].abs().max() == 0  # how far the memory is counts for nothing
