"""What every head's distribution must obey, for every head."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from anyorder.distributions import (
    HEADS,
    Bernoulli,
    Categorical,
    ColourMixture,
    Gaussian,
    GaussianMixture,
    GaussianMixtureDistribution,
    LogisticMixture,
    RecordedNumber,
    default_head,
    head_from_json,
)
from anyorder.distributions.logistic_mixture import log_one_minus_exp
from anyorder.errors import FormatError, InputError
from anyorder.inference import seeded
from anyorder.models.any_order import build_model
from anyorder.schema import Category, Ordinal, Real, Schema

DISCRETE = [Bernoulli(), Categorical(2), Categorical(5), LogisticMixture(2, 1), LogisticMixture(7, 3), LogisticMixture(256, 4)]
DISCRETE += [ColourMixture(2, 1), ColourMixture(5, 3)]
CONTINUOUS = [Gaussian(), GaussianMixture(1), GaussianMixture(4)]
ALL = DISCRETE + CONTINUOUS


def params_of(head, cells=(3,), seed=0, scale=1.0):
    rng = seeded(seed)
    return scale * torch.randn(*cells, head.width, generator=rng, dtype=torch.float64)


def levels_of(head):
    return getattr(head, "levels", 2)


def test_every_head_is_in_the_tests():
    assert {type(head) for head in ALL} | {RecordedNumber} == set(HEADS)  # that one has tests of its own


@pytest.mark.parametrize("head", DISCRETE, ids=repr)
@pytest.mark.parametrize("scale", [0.1, 1.0, 8.0])
def test_probabilities_sum_to_one_and_agree_with_the_table(head, scale):
    distribution = head(params_of(head, (5,), scale=scale))
    codes = torch.arange(levels_of(head), dtype=torch.float64)
    each = torch.stack([distribution.log_prob(k.expand(5)) for k in codes], dim=-1)
    torch.testing.assert_close(each.exp().sum(-1), torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(distribution.log_pmf(), each)
    torch.testing.assert_close(distribution.pmf(), each.exp())
    cumulative = torch.stack([distribution.cdf(k.expand(5)) for k in codes], dim=-1)
    torch.testing.assert_close(cumulative, each.exp().cumsum(-1))
    assert (distribution.cdf(torch.full((5,), -0.5)) == 0).all()
    assert (distribution.cdf(torch.full((5,), 1e9)) == 1).all()
    torch.testing.assert_close(distribution.cdf(codes[:1].expand(5) + 0.7), each.exp()[:, 0])
    torch.testing.assert_close(distribution.mean(), (each.exp() * codes).sum(-1))
    torch.testing.assert_close(distribution.entropy(), -(each.exp() * each).sum(-1))


@pytest.mark.parametrize("head", ALL, ids=repr)
def test_a_cdf_at_several_places_is_that_at_each(head):
    distribution, places = head(params_of(head, (2, 3))), torch.linspace(-2, 4, 5, dtype=torch.float64).expand(2, 3, 5)
    wanted = torch.stack([distribution.cdf(place) for place in places.unbind(-1)], dim=-1)
    torch.testing.assert_close(distribution.cdfs(places), wanted)


@pytest.mark.parametrize("head", CONTINUOUS, ids=repr)
def test_densities_integrate_to_one_and_cdf_is_the_integral(head):
    distribution = head(params_of(head, (), seed=1))
    density = lambda x: math.exp(distribution.log_prob(torch.tensor(x, dtype=torch.float64)).item())  # noqa: E731
    for top in (-1.0, 0.3, 2.0, 60.0):
        area, error = integrate.quad(density, -60, top, points=[-1.5, 0.0, 1.5], limit=400)
        assert distribution.cdf(torch.tensor(top, dtype=torch.float64)).item() == pytest.approx(area, abs=max(1e-7, 2 * error))
    assert area == pytest.approx(1, abs=1e-7)
    mean, _ = integrate.quad(lambda x: x * density(x), -60, 60, points=[-1.5, 0.0, 1.5], limit=400)
    assert distribution.mean().item() == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("head", CONTINUOUS, ids=repr)
@pytest.mark.parametrize("seed", range(8))
def test_entropy_of_densities_agrees_with_quadrature(head, seed):
    distribution = head(params_of(head, (), seed=seed, scale=2.0))
    x = torch.linspace(-40, 40, 400_001, dtype=torch.float64)
    log_p = head(params_of(head, (), seed=seed, scale=2.0).expand(len(x), -1)).log_prob(x)
    expected = torch.trapezoid(-(log_p.exp() * log_p.clamp(min=-1e4)), x).item()
    assert distribution.entropy().item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("head", ALL, ids=repr)
@given(seed=st.integers(0, 1000), q=st.floats(0.0005, 0.9995))
def test_quantile_is_the_smallest_value_whose_cdf_reaches_q(head, seed, q):
    distribution = head(params_of(head, (6,), seed=seed))
    level = torch.full((6,), q, dtype=torch.float64)
    x = distribution.quantile(level)
    if head in CONTINUOUS:
        torch.testing.assert_close(distribution.cdf(x), level, atol=1e-7, rtol=0)
    else:
        assert (x == x.round()).all()
        assert (distribution.cdf(x) >= level - 1e-12).all()
        assert (distribution.cdf(x - 1) < level + 1e-12).all()


@pytest.mark.parametrize("head", ALL, ids=repr)
def test_quantiles_at_the_ends(head):
    distribution = head(params_of(head, (3,)))
    low, high = (
        distribution.quantile(torch.zeros(3, dtype=torch.float64)),
        distribution.quantile(torch.ones(3, dtype=torch.float64)),
    )
    if head in CONTINUOUS:
        assert (low == -torch.inf).all()
        assert (high == torch.inf).all()
    else:
        assert (low == 0).all()
        assert ((high >= 0) & (high <= levels_of(head) - 1)).all()


@pytest.mark.parametrize("head", ALL, ids=repr)
def test_samples_follow_the_law(head):
    """By the Kolmogorov distance between the sample's and the distribution's cdf."""
    draws = 40_000
    distribution = head(params_of(head, (), seed=2).expand(draws, -1))
    x = distribution.sample(seeded(5)).sort().values
    assert x.shape == (draws,)
    below = torch.searchsorted(x, x, right=True) / draws
    assert (below - distribution.cdf(x)).abs().max() < 1.95 / draws**0.5 * (1 if head in CONTINUOUS else 1.2)


@pytest.mark.parametrize("head", ALL, ids=repr)
def test_temperature(head):
    distribution = head(params_of(head, (4,)))
    same, cold, hot = distribution.tempered(1.0), distribution.tempered(0.25), distribution.tempered(4.0)
    x = distribution.sample(seeded())
    torch.testing.assert_close(same.log_prob(x), distribution.log_prob(x))
    assert (cold.entropy() < distribution.entropy()).all()
    assert (hot.entropy() > distribution.entropy()).all()
    if head in DISCRETE:
        sharpened = distribution.log_pmf() / 0.25
        torch.testing.assert_close(cold.log_pmf(), sharpened - sharpened.logsumexp(-1, keepdim=True))


@pytest.mark.parametrize("head", ALL, ids=repr)
def test_gradient_reaches_every_parameter(head):
    params = params_of(head, (8,)).requires_grad_()
    x = head(params.detach()).sample(seeded())
    head(params).log_prob(x).sum().backward()
    alone = getattr(head, "components", 2) == 1  # the weight of a single component is 1 whatever its score
    assert (params.grad[..., int(alone) :].abs().sum(0) > 0).all()


@pytest.mark.parametrize("head", ALL, ids=repr)
def test_one_value_does_not_depend_on_its_neighbours(head):
    params = params_of(head, (4, 3))
    x = head(params).sample(seeded())
    assert x.shape == (4, 3)
    torch.testing.assert_close(head(params[1:2]).log_prob(x[1:2]), head(params).log_prob(x)[1:2])
    torch.testing.assert_close(head(params[:, 2]).entropy(), head(params).entropy()[:, 2])


def test_far_tails_are_exact_in_float32_and_their_gradient_is_alive():
    """Against the same probabilities computed in float64."""
    head = LogisticMixture(256, 1)
    scale = 1e-3 + math.log1p(math.exp(-7.0))
    for mean in (-0.999, 0.0, 0.999):
        params = torch.tensor([[0.0, mean - (-0.8), -6.0]]).repeat(256, 1).requires_grad_()
        x = torch.arange(256.0)
        log_p = head(params).log_prob(x)
        place = np.arange(256) / 127.5 - 1
        upper, lower = (place + 1 / 255 - mean) / scale, (place - 1 / 255 - mean) / scale
        exact = special.log_expit(upper) + special.log_expit(-lower) + np.log(-np.expm1(-(2 / 255) / scale))
        exact[0], exact[-1] = special.log_expit(upper[0]), special.log_expit(-lower[-1])
        np.testing.assert_allclose(log_p.detach().numpy(), exact, rtol=2e-4, atol=2e-5)
        assert log_p.min() < -400  # a float32 probability would have been 0 from -104 on
        log_p.sum().backward()
        assert (params.grad[:, 1].abs() > 0).sum() >= 254
        assert params.grad.isfinite().all()


def test_gaussian_tails_are_exact_in_float32():
    params = torch.tensor([[0.0, 0.5413]])  # mean 0, scale about 1
    distribution = Gaussian()(params)
    for x in (-40.0, 40.0):
        expected = stats.norm.logpdf(x, scale=distribution.sigma.item())
        assert distribution.log_prob(torch.tensor([x])).item() == pytest.approx(expected, rel=1e-5)
    mixed = GaussianMixture(3)(torch.zeros(1, 9)).log_prob(torch.tensor([1e4]))
    assert mixed.isfinite().all()


def test_bernoulli_is_stable_for_huge_scores():
    distribution = Bernoulli()(torch.tensor([[500.0], [-500.0]]))
    torch.testing.assert_close(distribution.log_prob(torch.tensor([0.0, 1.0])), torch.tensor([-500.0, -500.0]))
    assert distribution.entropy().isfinite().all()


def test_a_rare_code_is_drawn_as_often_as_it_should_be():
    """Float32 tricks cut off what is rarer than one in 16 million; a zero is never drawn."""
    from anyorder.distributions.distribution import draw_code

    table = torch.tensor([math.log(1e-3), 0.0, -torch.inf]).expand(200_000, 3)
    counts = draw_code(table, seeded()).bincount(minlength=3)
    assert counts[2] == 0
    assert abs(counts[0].item() - 200) < 5 * 200**0.5


@pytest.mark.parametrize("head", ALL, ids=repr)
def test_json_round_trip(head):
    assert head_from_json(head.to_json()) == head


def test_default_heads_fit_their_domains():
    domains = [Real(), Category(2), Category(9), Ordinal(256)]
    schema = Schema.of(**{f"v{i}": d for i, d in enumerate(domains)})
    assert [default_head(d) for d in domains] == [GaussianMixture(), Bernoulli(), Categorical(9), LogisticMixture(256)]
    build_model(schema)


def test_bad_heads_are_explained():
    with pytest.raises(FormatError, match=r"Unknown head 'spline'; this version knows bernoulli"):
        head_from_json({"kind": "spline"})
    with pytest.raises(InputError, match=r"Variable 'a' is Real\(\), but its head is Categorical\(levels=3\)"):
        build_model(Schema.of(a=Real()), [Categorical(3)])
    with pytest.raises(InputError, match=r"Choose a head for 4 levels"):
        build_model(Schema.of(a=Category(4)), [Bernoulli()])
    with pytest.raises(InputError, match=r"Got 2 heads for 1 variables"):
        build_model(Schema.of(a=Real()), [Gaussian(), Gaussian()])


def test_tempered_densities_are_powers_of_the_density():
    x = torch.linspace(-3, 3, 7, dtype=torch.float64)
    distribution = Gaussian()(torch.tensor([0.3, -0.5], dtype=torch.float64).expand(7, -1))
    ratio = distribution.tempered(0.5).log_prob(x) - distribution.log_prob(x) / 0.5
    torch.testing.assert_close(ratio, ratio[:1].expand(7))
    # Components far apart and of different width: the narrow one gains by being sharpened.
    apart = GaussianMixtureDistribution(torch.zeros(1, 2), torch.tensor([[-20.0, 20.0]]), torch.tensor([[0.1, 2.0]]))
    cold = apart.tempered(0.5)
    places = torch.tensor([-20.0, 20.0])
    powers = torch.stack([apart.log_prob(p[None]) / 0.5 - cold.log_prob(p[None]) for p in places])
    torch.testing.assert_close(powers[0], powers[1])


def test_scales_never_fall_below_their_floor():
    assert Gaussian(0.25)(torch.tensor([0.0, -100.0])).sigma.item() == 0.25
    assert (GaussianMixture(2, 0.25)(torch.full((6,), -100.0)).sigma == 0.25).all()


def test_log_of_one_minus_exp_is_precise_at_both_ends_with_a_gradient():
    x = torch.tensor([-1e-6, -0.5, -1.0, -20.0, -90.0]).requires_grad_()
    found = log_one_minus_exp(x)
    exact = np.log(-np.expm1(x.detach().double().numpy()))
    np.testing.assert_allclose(found.detach().numpy(), exact, rtol=1e-5, atol=1e-30)
    found.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize(
    "make", [lambda: GaussianMixture(0), lambda: Gaussian(-1.0), lambda: Gaussian(float("nan")), lambda: LogisticMixture(10**9)]
)
def test_heads_of_no_size_are_refused(make):
    with pytest.raises(InputError, match="expected a positive number"):
        make()


def test_a_law_over_millions_of_colours_scores_draws_and_sharpens_without_a_table():
    head = ColourMixture(256, 3)
    distribution = head(params_of(head, (2000,), seed=3))
    x = distribution.sample(seeded(1))
    assert ((x >= 0) & (x < 2**24) & (x == x.round())).all()
    below, up_to = distribution.cdf(x - 1), distribution.cdf(x)
    torch.testing.assert_close((up_to - below), distribution.log_prob(x).exp(), atol=1e-12, rtol=1e-6)
    uniform = below + (up_to - below) * torch.rand(2000, generator=seeded(2), dtype=torch.float64)
    assert stats.kstest(uniform.numpy(), "uniform").pvalue > 1e-3
    assert (
        distribution.tempered(0.2).log_prob(distribution.tempered(0.2).sample(seeded(4))).mean()
        > distribution.log_prob(x).mean() + 1
    )
    for question in (distribution.log_pmf, distribution.mean, distribution.entropy):
        with pytest.raises(InputError, match="16777216 colours"):
            question()


def test_green_leans_on_red_and_blue_on_both():
    """Every colour of a distribution with three shades, against a sum written out by hand."""
    head = ColourMixture(3, 2)
    params = params_of(head, (), seed=5)
    distribution = head(params)
    edges = torch.tensor([-torch.inf, -0.5, 0.5, torch.inf], dtype=torch.float64)
    for code in range(27):
        colour = [code // 9, code // 3 % 3, code % 3]
        place = [c - 1.0 for c in colour]
        total = 0.0
        for k in range(2):
            lean = [
                0,
                distribution.slope[k, 0] * place[0],
                distribution.slope[k, 1] * place[0] + distribution.slope[k, 2] * place[1],
            ]
            product = distribution.logits.softmax(-1)[k]
            for c in range(3):
                up, down = (
                    torch.sigmoid((edges[colour[c] + d] - distribution.mu[k, c] - lean[c]) / distribution.sigma[k, c])
                    for d in (1, 0)
                )
                product = product * (up - down)
            total += product
        assert distribution.log_prob(torch.tensor(float(code), dtype=torch.float64)).exp().item() == pytest.approx(
            float(total), rel=1e-9
        )
