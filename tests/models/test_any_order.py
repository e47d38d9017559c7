"""Categories of different sizes share a table: nobody may notice."""

import pandas as pd
import pytest
import torch

from anyorder.estimator import AnyOrder
from anyorder.inference import seeded
from anyorder.models.any_order import CodesTogether, build_model
from anyorder.models.conditionals import Conditionals
from anyorder.models.memory import Memory
from anyorder.models.trees import Boosted
from anyorder.schema import LEVELS_TOGETHER, Category, Ordinal, Recorded, Schema, Variable, alike, levels_of
from anyorder.training.growing import frequencies, grow

LEVELS = (2, 16, 3, 17, 2, 300, 64)
DOMAINS = [*(Category(levels) for levels in LEVELS[:3]), Recorded(0.5), Ordinal(4), *(Category(levels) for levels in LEVELS[3:])]
SCHEMA = Schema(tuple(Variable(f"v{i}", domain) for i, domain in enumerate(DOMAINS)))


def rows_of(count: int, seed: int = 0) -> torch.Tensor:
    rng = seeded(seed)
    columns = [torch.randint(levels_of(d) or 9, (count,), generator=rng) * (1.0 if levels_of(d) else 0.5) for d in DOMAINS]
    return torch.stack(columns, dim=-1)


def model_of(kind: str):
    x = rows_of(40)
    present = torch.rand(x.shape, generator=seeded(1)) < 0.9
    if kind == "network":
        return build_model(SCHEMA, width=8, depth=1)
    if kind == "memory":
        return Memory(SCHEMA, x, present)
    return Boosted(SCHEMA, grow(SCHEMA, x, present, seeded(0)), frequencies(SCHEMA, x, present))


@torch.no_grad()
def test_a_network_says_the_same_with_every_category_alone():
    model, x = build_model(SCHEMA, width=8, depth=1), rows_of(5)
    given = torch.rand(x.shape, generator=seeded(3)) < 0.5
    assert sum(isinstance(group, CodesTogether) for group in model.groups) == 2  # up to 16, and up to 64
    params, start = model.network(torch.where(given, x, 0.0), given), 0
    distributions = model(x, given)
    for head in dict.fromkeys(model.heads):
        for i in (i for i, other in enumerate(model.heads) if other == head):
            mine, start = params[:, start : start + head.width], start + head.width
            if levels_of(DOMAINS[i]):
                torch.testing.assert_close(
                    distributions.distribution(i).log_pmf(), head(mine if head.width > 1 else mine[:, 0]).log_pmf()
                )


@torch.no_grad()
@pytest.mark.parametrize("kind", ["network", "memory", "trees"])
def test_no_category_gets_a_code_it_does_not_have(kind):
    model, x = model_of(kind), rows_of(200, seed=2)
    distributions: Conditionals = model(x, torch.rand(x.shape, generator=seeded(4)) < 0.5)
    log_prob, drawn, best = (
        distributions.log_prob(x),
        distributions.sample(seeded(5)),
        distributions.best(torch.ones_like(x, dtype=torch.bool)),
    )
    entropy, mean = distributions.entropy(), distributions.mean()
    for i, domain in enumerate(DOMAINS):
        if not isinstance(domain, Category):
            continue
        pmf = distributions.distribution(i).pmf().double()
        assert pmf.shape == (len(x), domain.levels)
        torch.testing.assert_close(pmf.sum(-1), torch.ones(len(x), dtype=torch.float64), rtol=1e-5, atol=0.0)
        torch.testing.assert_close(
            pmf.gather(1, x[:, i : i + 1].long())[:, 0].log().float(), log_prob[:, i], rtol=1e-4, atol=1e-4
        )
        torch.testing.assert_close(-torch.xlogy(pmf, pmf).sum(-1).float(), entropy[:, i], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close((pmf @ torch.arange(domain.levels).double()).float(), mean[:, i], rtol=1e-4, atol=1e-4)
        assert (drawn[:, i] < domain.levels).all()
        assert (best[:, i] == pmf.argmax(-1)).all()


def test_codes_go_together_by_size():
    groups = [[levels_of(DOMAINS[i]) for i in group] for group in alike(SCHEMA)]
    assert groups == [[2, 16, 3, 2], [0], [4], [17, 64], [300]]
    assert tuple(sorted(LEVELS_TOGETHER)) == LEVELS_TOGETHER


def test_columns_of_one_step_do_not_know_each_other_and_with_a_step_each_all_do():
    """Two columns that are always equal: drawn one by one they agree, drawn at once they do by chance."""
    twin = torch.randint(4, (400,), generator=seeded(0)).tolist()
    model = AnyOrder(effort=0.1, random_state=0).fit(pd.DataFrame({"a": [f"l{k}" for k in twin], "b": [f"r{k}" for k in twin]}))
    agree = {steps: (lambda t: (t.a.str[1:] == t.b.str[1:]).mean())(model.sample(1000, steps=steps)) for steps in (None, 2, 1)}
    assert agree[None] > 0.97
    assert agree[2] > 0.97
    assert 0.19 < agree[1] < 0.31  # a quarter, within four standard deviations
