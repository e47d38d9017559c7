"""ACE against known densities: the factor by quadrature, its bias by importance sampling, draws, and training."""

import math

import pytest
import torch

from anyorder.baselines import ACE, ACESize, BaselineRecipe, Importance, Quadrature, factor_bias, fit_baseline
from anyorder.baselines.energy import EnergyDistribution
from anyorder.distributions import GaussianDistribution, GaussianMixtureDistribution
from anyorder.errors import InputError
from anyorder.inference import log_prob, sample, seeded
from anyorder.schema import Category, Real, Schema
from anyorder.subsets import Question
from exact import GaussianOracle

SMALL = ACESize(32, 1, 16, 1, 4, 3)


class Known:
    """Energies that are a bell curve's, and a proposal of another width."""

    tilted, support = False, (-12.0, 12.0)

    def __init__(self, mu, sigma):
        self.mu, self.sigma, self.normaliser = mu, sigma, Quadrature()

    def energy(self, x, told, variable):
        return 0.5 * ((x - self.mu) / self.sigma) ** 2


def known(width, mu=0.3, sigma=1.0, cells=1):
    """The density N(mu, sigma) beside the proposal N(0, width)."""
    proposal = GaussianMixtureDistribution(*(torch.full((cells, 1), value).double() for value in (0.0, 0.0, width)))
    return EnergyDistribution(proposal, torch.zeros(cells, 1).double(), torch.zeros(cells).long(), Known(mu, sigma))


def test_quadrature_knows_the_factor_and_all_that_follows():
    for width in (0.02, 0.5, 3.0):
        density, truth = known(width), GaussianDistribution(torch.tensor([0.3]).double(), torch.tensor([1.0]).double())
        x = torch.tensor([-1.7]).double()
        assert Quadrature().log_factor(density).item() == pytest.approx(0.5 * math.log(2 * math.pi), abs=1e-6)
        torch.testing.assert_close(density.log_prob(x), truth.log_prob(x), atol=1e-6, rtol=0)
        torch.testing.assert_close(density.mean(), truth.mean(), atol=1e-6, rtol=0)
        torch.testing.assert_close(density.entropy(), truth.entropy(), atol=1e-6, rtol=0)
        torch.testing.assert_close(density.cdf(x), truth.cdf(x), atol=0.02, rtol=0)
        torch.testing.assert_close(
            density.quantile(torch.tensor([0.8]).double()), truth.quantile(torch.tensor([0.8])), atol=0.05, rtol=0
        )


@pytest.mark.parametrize("count", [20, 100, 500])
def test_importance_sampling_is_too_large_by_what_theory_says(count):
    """E[-log mean w] + log E[w] is the variance of w / E[w] over twice the draws; for two bell curves in closed form."""
    width, sigma, cells = 2.0, 1.0, 40_000 if count < 500 else 8000
    density = known(width, 0.0, sigma, cells)
    # E[w^2] / E[w]^2 for w = p / q: the integral of p^2 / q
    squared = width**2 / sigma / math.sqrt(2 * width**2 - sigma**2)
    gain = 0.5 * math.log(2 * math.pi) - Importance(count).log_factor(density)
    theory = (squared - 1) / (2 * count)
    error = gain.std().item() / cells**0.5
    assert gain.mean().item() > 0
    assert gain.mean().item() == pytest.approx(theory, abs=4 * error + 0.1 * theory)


def test_a_proposal_that_is_too_narrow_hides_mass_that_quadrature_sees():
    density = known(0.3, 2.0, 1.0, 500)  # nearly all mass lies where nothing is drawn
    bias = [float((Quadrature().log_factor(density) - Importance(n).log_factor(density)).mean()) for n in (20, 200, 2000)]
    assert bias[0] > bias[1] > bias[2] > 0.3


def test_resampled_draws_have_the_energys_moments():
    drawn = known(2.0, 0.5, 1.0, 20_000).sample(seeded())
    assert drawn.mean().item() == pytest.approx(0.5, abs=0.03)
    assert drawn.std().item() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("tilted", [True, False])
def test_any_network_gives_densities_that_integrate_to_one(tilted):
    model = ACE(Schema.repeat(Real(), 3), SMALL, tilted)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.3 * torch.randn(p.shape, generator=seeded(1))
    given = torch.tensor([[True, False, False]]).expand(2001, 3)
    x = torch.zeros(2001, 3)
    x[:, 1] = torch.linspace(*model.support, 2001)
    with torch.no_grad():
        p = model(x, given).log_prob(x)[:, 1].exp()
    assert torch.trapezoid(p, x[:, 1]).item() == pytest.approx(1.0, abs=2e-3)


def test_a_tilted_energy_begins_at_its_proposal_and_cannot_leave_it():
    model = ACE(Schema.repeat(Real(), 2), SMALL)
    x, given = torch.randn(6, 2, generator=seeded()), torch.tensor([[True, False]]).expand(6, 2)
    density = model(x, given).parts[0].at(~given)
    torch.testing.assert_close(density.log_prob(x[:, 1]), density.proposal.log_prob(x[:, 1]), atol=1e-4, rtol=0)
    with torch.no_grad():
        model.last.bias += 100
        model.last.weight += 100
    density = model(x, given).parts[0].at(~given)
    assert (density.log_prob(x[:, 1]) - density.proposal.log_prob(x[:, 1])).abs().max() < 10.01
    bias = factor_bias(model, x, given, (20, 500))
    assert abs(bias[500]) < 0.5


def test_gradient_reaches_every_parameter_and_hidden_values_none():
    model = ACE(Schema.repeat(Real(), 3), SMALL)
    with torch.no_grad():
        model.last.weight += 0.1
    x = torch.randn(32, 3, generator=seeded())
    model.bound(x, torch.ones_like(x, dtype=torch.bool), seeded()).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.abs().sum() > 0 for p in model.parameters())
    given = torch.tensor([[True, False, False]]).expand(32, 3)
    junk = torch.where(given, x, torch.nan)
    a, b = (model(rows, given).parts[0].at(~given).proposal.mu for rows in (x, junk))
    assert torch.equal(a, b)


def test_trained_it_answers_the_verbs_nearly_as_the_truth():
    oracle = GaussianOracle(torch.zeros(2), torch.tensor([[1.0, 0.8], [0.8, 1.0]]))
    root = torch.linalg.cholesky(oracle.covariance)
    x = (torch.randn(2000, 2, generator=seeded(), dtype=torch.float64) @ root.T).float()
    model = ACE(oracle.schema, SMALL)
    fit_baseline(model, x, recipe=BaselineRecipe(steps=300, check_every=150, batch_size=64, learning_rate=5e-3))
    test = (torch.randn(200, 2, generator=seeded(7), dtype=torch.float64) @ root.T).float()
    given = torch.tensor([[True, False]]).expand(200, 2)
    question = Question(given, ~given)
    found = log_prob(model, test, question).mean().item()
    exact = (oracle.log_marginal(test, given | ~given) - oracle.log_marginal(test, given)).mean().item()
    assert found > exact - 0.1
    drawn = sample(model, test, question, seeded())
    assert torch.equal(drawn[:, 0], test[:, 0])
    assert torch.corrcoef(drawn.T)[0, 1].item() == pytest.approx(0.8, abs=0.15)
    bias = factor_bias(model, test, given)
    assert all(abs(value) < 0.1 for value in bias.values())


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="'city' is none"):
        ACE(Schema.of(age=Real(), city=Category(3)))
    with pytest.raises(InputError, match="samples=1"):
        ACE(Schema.repeat(Real(), 2), SMALL, samples=1)
    with pytest.raises(InputError, match="samples=0"):
        Importance(0)
    with pytest.raises(InputError, match="temperature"):
        known(1.0).tempered(0.5)
