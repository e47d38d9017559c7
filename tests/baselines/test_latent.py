"""VAE and MIWAE against probabilistic PCA, a latent model whose every conditional is a Gaussian in closed form."""

import math

import pytest
import torch
from torch import nn

from anyorder.baselines import MIWAE, VAE, BaselineRecipe, FixedGaussian, each_log_prob, fit_baseline, log_prob, mean, sample
from anyorder.baselines.latent import LEAST_SPREAD
from anyorder.distributions import Gaussian
from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.schema import Category, Real, Recorded, Schema
from anyorder.subsets import GivenAnySize, Question
from exact import GaussianOracle, all_states

VARIANCE = 0.3
MIXED = Schema.of(age=Recorded(0.1, atoms=(0.0,), knots=(-1.0, 0.0, 1.0)), city=Category(3), height=Real(), smokes=Category(2))


class Linear(nn.Module):
    """x = W z + b: the decoder of probabilistic PCA."""

    def __init__(self, loading, shift):
        super().__init__()
        self.loading, self.shift = nn.Parameter(loading), nn.Parameter(shift)

    def forward(self, z):
        return z @ self.loading.T + self.shift


class ExactPosterior(nn.Module):
    """The mean and spread of p(z | x_G), each latent number alone; `broader` stretches the spread."""

    def __init__(self, decoder, broader=1.0):
        super().__init__()
        self.decoder, self.broader = decoder, broader

    def forward(self, x, given):
        seen = self.decoder.loading * given.unsqueeze(-1)  # (batch, variable, latent)
        covariance = torch.linalg.inv(torch.eye(seen.shape[-1], dtype=torch.float64) + seen.mT @ seen / VARIANCE)
        centre = (covariance @ seen.mT @ (x - self.decoder.shift).unsqueeze(-1)).squeeze(-1) / VARIANCE
        spread = self.broader * covariance.diagonal(dim1=-2, dim2=-1).sqrt()
        return torch.cat([centre, torch.log(torch.expm1(spread - LEAST_SPREAD))], dim=-1)


def pca(kind, variables=4, latent=2, broader=1.0, samples=5):
    """A model with the weights of the truth, and the truth."""
    rng = seeded(5)
    loading = torch.randn(variables, latent, generator=rng, dtype=torch.float64)
    shift = torch.randn(variables, generator=rng, dtype=torch.float64)
    oracle = GaussianOracle(shift, loading @ loading.T + VARIANCE * torch.eye(variables, dtype=torch.float64))
    decoder = Linear(loading, shift)
    heads = [FixedGaussian(VARIANCE)] * variables
    return kind(oracle.schema, heads, ExactPosterior(decoder, broader), decoder, samples), oracle


def rows_of(oracle, rows, seed=0):
    root = torch.linalg.cholesky(oracle.covariance)
    return oracle.mean + torch.randn(rows, len(oracle.mean), generator=seeded(seed), dtype=torch.float64) @ root.T


def questions(rows, variables=4, seed=1):
    return GivenAnySize().sample(torch.ones(rows, variables, dtype=torch.bool), seeded(seed))


def exact_log_prob(oracle, x, question):
    return oracle.log_marginal(x, question.given | question.target) - oracle.log_marginal(x, question.given)


@pytest.mark.parametrize("broader", [1.5, 2.5])
def test_weighted_answers_agree_with_the_closed_form_even_where_q_is_not_the_posterior(broader):
    """Two latent numbers are dependent given x, which q cannot say: the weights must put it right."""
    model, oracle = pca(MIWAE, broader=broader)
    x, question = rows_of(oracle, 12), questions(12)
    found = log_prob(model, x, question, seeded(), draws=200_000)
    torch.testing.assert_close(found, exact_log_prob(oracle, x, question), atol=0.06, rtol=0)
    each = each_log_prob(model, x, question, seeded(), draws=200_000)
    exact = torch.where(question.target, oracle(x, question.given).log_prob(x), 0.0)
    torch.testing.assert_close(each, exact, atol=0.06, rtol=0)
    filled = mean(model, x, question, seeded(), draws=200_000)
    torch.testing.assert_close(filled, torch.where(question.target, oracle(x, question.given).mean(), x), atol=0.03, rtol=0)


def test_plain_answers_are_right_where_q_is_the_posterior_and_wrong_where_it_is_not():
    right, oracle = pca(VAE, latent=1)
    wrong, _ = pca(VAE, latent=1, broader=3.0)
    x, question = rows_of(oracle, 40), questions(40)
    exact = exact_log_prob(oracle, x, question)
    torch.testing.assert_close(log_prob(right, x, question, seeded(), draws=40_000), exact, atol=0.06, rtol=0)
    assert log_prob(wrong, x, question, seeded(), draws=40_000).mean() < exact.mean() - 0.1


@pytest.mark.parametrize("kind", [VAE, MIWAE])
def test_with_the_exact_posterior_every_bound_is_the_log_likelihood(kind):
    """Every single importance weight is then p(x_G) itself; the VAE's bound is so in the mean."""
    model, oracle = pca(kind, latent=1, samples=1 if kind is MIWAE else 100_000)
    x, question = rows_of(oracle, 10), questions(10)
    shown = question.target
    tolerance = 1e-9 if kind is MIWAE else 0.1
    torch.testing.assert_close(model.bound(x, shown, seeded()), oracle.log_marginal(x, shown), atol=tolerance, rtol=0)


def test_the_bound_grows_with_the_number_of_samples_and_stays_below_the_truth():
    oracle = pca(MIWAE)[1]
    x = rows_of(oracle, 20)
    shown = torch.ones_like(x, dtype=torch.bool)
    many, everything = x.repeat(400, 1), shown.repeat(400, 1)
    bounds = [
        pca(kind, broader=2.0, samples=k)[0].bound(many, everything, seeded()).mean().item()
        for kind, k in ((VAE, 1), (MIWAE, 1), (MIWAE, 3), (MIWAE, 10), (MIWAE, 50))
    ]
    exact = oracle.log_marginal(x, shown).mean().item()
    assert bounds[0] == pytest.approx(bounds[1], abs=0.03)  # with one sample the two are the same in the mean
    assert bounds[1] < bounds[2] < bounds[3] < bounds[4] < exact + 0.005
    assert exact - bounds[4] < 0.05


def test_samples_have_the_moments_of_the_exact_conditional():
    model, oracle = pca(MIWAE, broader=1.5)
    x = rows_of(oracle, 1).repeat(20_000, 1)
    given = torch.tensor([[True, False, False, True]]).expand_as(x)
    drawn = sample(model, x, Question(given, ~given), seeded(), draws=200)
    assert torch.equal(drawn[given], x[given])
    known, hidden = given[0], ~given[0]
    gain = oracle.covariance[hidden][:, known] @ torch.linalg.inv(oracle.covariance[known][:, known])
    centre = oracle.mean[hidden] + gain @ (x[0] - oracle.mean)[known]
    spread = oracle.covariance[hidden][:, hidden] - gain @ oracle.covariance[known][:, hidden]
    torch.testing.assert_close(drawn[:, hidden].mean(0), centre, atol=0.04, rtol=0)
    torch.testing.assert_close(drawn[:, hidden].T.cov(), spread, atol=0.06, rtol=0)


# Every model of the room, as it is built


def mixed_rows(rows, seed=0):
    rng = seeded(seed)
    age = (torch.randn(rows, generator=rng) * 10).round() / 10
    city = torch.randint(3, (rows,), generator=rng).float()
    return torch.stack([age, city, city + torch.randn(rows, generator=rng), (age > 0).float()], dim=-1)


@pytest.mark.parametrize("kind", [VAE, MIWAE])
def test_hidden_values_do_not_leak(kind):
    model = kind.build(MIXED, width=16, depth=1)
    x = mixed_rows(12)
    question = questions(12)
    neither = question.target & (torch.arange(4) == 3)  # the last variable is asked for by nobody
    question = Question(question.given, question.target & ~neither)
    other = torch.where(question.given, x, mixed_rows(12, seed=9))
    gaps = torch.where(question.given, x, torch.nan)
    for verb in (sample, mean):
        first, second = (verb(model, y, question, seeded(), draws=20) for y in (x, other))
        assert torch.equal(first[question.target], second[question.target])
        assert verb(model, gaps, question, seeded(), draws=20)[question.target].isfinite().all()
    blank = torch.where(neither, torch.nan, x)
    for verb in (log_prob, each_log_prob):
        assert torch.equal(verb(model, x, question, seeded(), 20), verb(model, blank, question, seeded(), 20))


@pytest.mark.parametrize("kind", [VAE, MIWAE])
def test_the_answer_is_a_normalised_law_for_any_number_of_draws(kind):
    schema = Schema.of(a=Category(2), b=Category(3), c=Category(2))
    model = kind.build(schema, width=16, depth=1)
    states = all_states((2, 3, 2)).float()
    given = torch.tensor([[False, True, False]]).expand_as(states)
    for draws in (1, 3, 50):  # one state a call, so that all see the same draws
        alone = [log_prob(model, s[None], Question(given[:1], ~given[:1]), seeded(), draws) for s in states if s[1] == 1]
        assert torch.cat(alone).exp().sum().item() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("kind", [VAE, MIWAE])
def test_gradient_reaches_every_parameter(kind):
    model = kind.build(MIXED, width=16, depth=1)
    x = mixed_rows(64)
    shown = torch.rand(x.shape, generator=seeded()) < 0.7
    model.bound(torch.where(shown, x, torch.nan), shown, seeded()).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", [VAE, MIWAE])
def test_training_finds_the_truth_through_gaps(kind):
    """Three numbers that share one cause, a quarter of the cells missing: conditionals near the exact ones."""
    loading = torch.tensor([[1.0], [0.8], [-0.9]], dtype=torch.float64)
    oracle = GaussianOracle(torch.zeros(3), loading @ loading.T + 0.2 * torch.eye(3))
    x = rows_of(oracle, 3000).float()
    present = torch.rand(x.shape, generator=seeded()) < 0.75
    model = kind.build(oracle.schema, [Gaussian()] * 3, latent=2, width=32, depth=1)
    scores = fit_baseline(
        model, torch.where(present, x, torch.nan), recipe=BaselineRecipe(steps=400, check_every=100, batch_size=128)
    )
    test, question = rows_of(oracle, 1000, seed=7), questions(1000, 3)
    found = log_prob(model, test.float(), question, seeded(), draws=200).mean().item()
    independent = GaussianOracle(oracle.mean, oracle.covariance.diagonal().diag())
    exact, floor = (exact_log_prob(o, test, question).mean().item() for o in (oracle, independent))
    assert min(scores) < scores[0]
    assert exact - found < 0.2 * (exact - floor)


def test_whatever_stands_in_a_gap_the_weights_come_out_the_same():
    x, present = mixed_rows(40), torch.rand(40, 4, generator=seeded()) < 0.6
    weights = []
    for junk in (torch.nan, 1e9):
        model = MIWAE.build(MIXED, width=8, depth=1)
        fit_baseline(model, torch.where(present, x, junk), present, BaselineRecipe(steps=4, check_every=2, batch_size=16))
        weights.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(*weights)


def test_early_stopping_keeps_the_best_weights():
    x = torch.randn(30, 3, generator=seeded())
    model = MIWAE.build(Schema.repeat(Real(), 3), [Gaussian()] * 3, width=64)
    recipe = BaselineRecipe(steps=2000, check_every=20, patience=3, average=0.0, learning_rate=1e-2)
    scores = fit_baseline(model, x, recipe=recipe)
    assert len(scores) < 100
    assert scores.index(min(scores)) == len(scores) - 4


def test_a_fixed_width_is_fixed():
    distribution = FixedGaussian(0.1)(torch.zeros(2, 3, 1))
    assert distribution.log_prob(torch.zeros(2, 3)).unique().item() == pytest.approx(-0.5 * math.log(2 * math.pi * 0.1))


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="one head per variable"):
        VAE.build(MIXED, [Gaussian()])
    with pytest.raises(InputError, match="samples=0"):
        MIWAE.build(MIXED, samples=0)
    with pytest.raises(InputError, match="steps=0"):
        BaselineRecipe(steps=0)
    with pytest.raises(InputError, match="held_out=1"):
        BaselineRecipe(held_out=1.0)
    model, x = VAE.build(MIXED), mixed_rows(2)
    with pytest.raises(InputError, match="draws=0"):
        log_prob(model, x, questions(2), seeded(), draws=0)
    with pytest.raises(InputError, match="nothing to learn"):
        fit_baseline(model, torch.full_like(x, torch.nan))
