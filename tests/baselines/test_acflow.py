"""ACFlow: every conditional integrates to one on a grid, draws have that density, and training nears a known truth."""

import pytest
import torch

from anyorder.baselines import ACFlow, BaselineRecipe, fit_baseline
from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.schema import Category, Real, Schema
from anyorder.subsets import GivenAnySize, Question
from exact import GaussianOracle


def shaken(variables=3, couplings=3):
    model = ACFlow(Schema.repeat(Real(), variables), 16, 1, couplings, 2)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.1 * torch.randn(p.shape, generator=seeded(1))
    return model.double()


@pytest.mark.parametrize("given", [[True, False, False], [False, True, False], [False, False, False]])
def test_conditionals_of_two_numbers_integrate_to_one(given):
    """On a grid of 241 x 241; with nothing known the third variable is in neither set."""
    model, line = shaken(), torch.linspace(-30, 30, 241).double()
    given = torch.tensor(given)
    target = ~given if given.any() else torch.tensor([True, False, True])
    first, second = target.nonzero().flatten().tolist()
    x = torch.full((241 * 241, 3), 0.7).double()
    x[:, first], x[:, second] = line.repeat_interleave(241), line.repeat(241)
    question = Question(given.expand_as(x), target.expand_as(x))
    with torch.no_grad():
        p = torch.cat([model.log_prob(x[some], question[some]) for some in torch.arange(len(x)).split(50_000)]).exp()
    assert p.sum().item() * (60 / 240) ** 2 == pytest.approx(1.0, abs=5e-3)


def test_draws_have_the_density():
    model, rows = shaken(), 20_000
    given = torch.tensor([[True, False, True]]).expand(rows, 3)
    x, question = torch.full((rows, 3), 0.4).double(), Question(given, ~given)
    drawn = model.sample(x, question, seeded())
    assert torch.equal(drawn[:, given[0]], x[:, given[0]])
    line = torch.linspace(-30, 30, rows).double()
    on_line = x.clone()
    on_line[:, 1] = line
    with torch.no_grad():
        mass = model.log_prob(on_line, question).exp() * 60 / rows
    assert drawn[:, 1].mean().item() == pytest.approx(float((mass * line).sum()), abs=0.05)
    below = float(mass[line < drawn[:, 1].median()].sum())
    assert below == pytest.approx(0.5, abs=0.02)


def test_what_is_in_neither_set_does_not_matter():
    model = shaken()
    given, target = torch.tensor([[True, False, False]]), torch.tensor([[False, True, False]])
    x = torch.tensor([[0.3, -0.2, 5.0]]).double()
    other = torch.tensor([[0.3, -0.2, -80.0]]).double()
    assert torch.equal(model.log_prob(x, Question(given, target)), model.log_prob(other, Question(given, target)))


def test_training_nears_the_truth():
    oracle = GaussianOracle(torch.zeros(3), torch.tensor([[1.0, 0.8, -0.5], [0.8, 1.0, -0.3], [-0.5, -0.3, 1.0]]))
    root = torch.linalg.cholesky(oracle.covariance)
    x = (torch.randn(3000, 3, generator=seeded(), dtype=torch.float64) @ root.T).float()
    model = ACFlow(oracle.schema, 32, 1, 2, 2)
    fit_baseline(model, x, recipe=BaselineRecipe(steps=200, check_every=100, batch_size=128, learning_rate=5e-3))
    test = (torch.randn(1000, 3, generator=seeded(7), dtype=torch.float64) @ root.T).float()
    question = GivenAnySize().sample(torch.ones_like(test, dtype=torch.bool), seeded(2))
    exact = oracle.log_marginal(test, torch.ones_like(question.given)) - oracle.log_marginal(test, question.given)
    with torch.no_grad():
        found = model.log_prob(test, question)
    assert found.mean().item() > exact.mean().item() - 0.12


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="'city' is none"):
        ACFlow(Schema.of(age=Real(), city=Category(3)))
    with pytest.raises(InputError, match="couplings=-1"):
        ACFlow(Schema.repeat(Real(), 2), couplings=-1)
