"""Distributions of recorded numbers, each a discrete distribution over all multiples of a spacing: by a head, by a
memory, mixed, bounded.
"""

import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

from anyorder.distributions import (
    BoundedNumber,
    Categorical,
    KernelDistribution,
    LatticeDistribution,
    MixedNumber,
    RecordedDistribution,
    RecordedNumber,
    bound,
    mixed,
)
from anyorder.distributions.combined import ReweightedNumber
from anyorder.distributions.recurring import RecurringNumber, ValueTable
from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.models.any_order import build_model
from anyorder.schema import Recorded, Schema

DOMAINS = [
    Recorded(0.25),
    Recorded(0.25, (0.0, 1.5)),
    Recorded(1.0, (-2.0, 0.0, 3.0)),
    Recorded(0.01, (0.5,)),
    Recorded(4.0, (0.0,)),
]


def distribution_of(domain, cells=(3,), seed=0, scale=1.0, atoms=4, dtype=torch.float64):
    head = RecordedNumber(atoms, components=3)
    numbers = scale * torch.randn(*cells, head.width, generator=seeded(seed), dtype=dtype)
    constants = torch.tensor(head.constants(domain), dtype=dtype).expand(*cells, -1)
    return head(torch.cat([numbers, constants], dim=-1))


def kernel_of(domain, cells=(3,), seed=0, values=5):
    """Remembered values on the lattice, two of them the same."""
    rng = seeded(seed)
    numbers = lambda *shape: torch.randn(*shape, generator=rng, dtype=torch.float64)  # noqa: E731
    value = (2 * numbers(*cells, values) / domain.spacing).round() * domain.spacing
    value[..., 1] = value[..., 0]
    weight, share = numbers(*cells, values).softmax(-1), numbers(*cells, 3).softmax(-1)
    spacing = torch.full(cells, domain.spacing, dtype=torch.float64)
    return KernelDistribution(spacing, weight, value, share, numbers(*cells, 2).exp() / 4)


def mixed_of(domain, cells=(3,), seed=0):
    weight = torch.randn(*cells, 2, generator=seeded(seed), dtype=torch.float64).log_softmax(-1)
    return mixed([distribution_of(domain, cells, seed), kernel_of(domain, cells, seed + 1)], weight)


def bounded_of(domain, cells=(3,), seed=0):
    """A mixture cut off not far from where most of it lies, so that much of it would have been outside."""
    ends = [torch.full(cells, end, dtype=torch.float64) for end in bounds(domain)]
    return bound(mixed_of(domain, cells, seed), *ends)


def bounds(domain):
    return domain.spacing * math.ceil(-1 / domain.spacing), domain.spacing * math.floor(4 / domain.spacing)


def edges_between(domain, count=4, seed=0):
    """Some edges half a step above points of the lattice, the last of them twice."""
    places = torch.randperm(int(12 / domain.spacing), generator=seeded(seed + 9))[:count].sort().values - int(6 / domain.spacing)
    edges = (places.double() + 0.5) * domain.spacing
    return torch.cat([edges, edges[-1:]])


def reweighted_of(domain, cells=(3,), seed=0):
    edges = edges_between(domain, min(4, int(12 / domain.spacing)), seed).expand(*cells, -1)
    weight = torch.randn(*cells, edges.shape[-1] + 1, generator=seeded(seed), dtype=torch.float64).exp()
    distribution = mixed_of(domain, cells, seed)
    return ReweightedNumber(distribution.spacing, distribution, edges, weight)


def recurring_of(domain, cells=(3,), seed=0, own=None):
    """The second of two variables, about values of which some are frequent; one of them is left out."""
    rng = seeded(seed)
    values = ((3 * torch.randn(40, generator=rng)).exp().clamp(max=6.0) / domain.spacing).round() * domain.spacing
    cuts = edges_between(domain, min(4, int(12 / domain.spacing)), seed).unique().float()
    table = ValueTable.of([values[:7], values], [cuts[:1], cuts])
    table = table.with_share(torch.rand(len(table.rows), generator=rng))
    distribution = mixed_of(domain, cells, seed)
    own = torch.full(cells, float(values[3] if own is None else own), dtype=torch.float64)
    return RecurringNumber(distribution.spacing, distribution, torch.ones(cells, dtype=torch.float64), own, table)


MAKERS = [distribution_of, kernel_of, mixed_of, bounded_of, reweighted_of, recurring_of]


def lattice(domain, reach=120.0):
    count = int(reach / domain.spacing)
    return torch.arange(-count, count + 1, dtype=torch.float64) * domain.spacing


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_mass_sums_to_one_and_cdf_is_its_running_sum(domain, seed, make):
    points = lattice(domain)
    distribution = make(domain, (), seed).map_tensors(lambda t: t.expand(len(points), *t.shape))
    mass = distribution.log_prob(points).exp()
    assert mass.sum().item() == pytest.approx(1, abs=1e-9)
    torch.testing.assert_close(distribution.cdf(points), mass.cumsum(0), atol=1e-9, rtol=0)
    torch.testing.assert_close(distribution.cdf(points + 0.6 * domain.spacing), mass.cumsum(0), atol=1e-9, rtol=0)
    mean = (mass * points).sum()
    assert abs(distribution.mean()[0] - mean) <= domain.spacing / 2


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_cdf_at_several_places_is_that_at_each(domain, make):
    distribution, places = make(domain, (2, 3)), torch.linspace(-2, 4, 5, dtype=torch.float64).expand(2, 3, 5)
    wanted = torch.stack([distribution.cdf(place) for place in places.unbind(-1)], dim=-1)
    torch.testing.assert_close(distribution.cdfs(places), wanted)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("q", [0.001, 0.2, 0.5, 0.9, 0.999])
def test_quantile_is_the_smallest_lattice_point_whose_cdf_reaches_q(domain, q, make):
    distribution = make(domain, (5,))
    level = torch.full((5,), q, dtype=torch.float64)
    x = distribution.quantile(level)
    whole = x / domain.spacing
    torch.testing.assert_close(whole, whole.round())
    assert (distribution.cdf(x) >= level).all()
    assert (distribution.cdf(x - domain.spacing) < level).all()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_samples_follow_the_law_and_lie_on_the_lattice(domain, make):
    draws = 40_000
    distribution = make(domain, (), seed=2).map_tensors(lambda t: t.expand(draws, *t.shape))
    x = distribution.sample(seeded(3)).sort().values
    torch.testing.assert_close(x / domain.spacing, (x / domain.spacing).round())
    below = torch.searchsorted(x, x + 1e-9, right=True) / draws
    assert (below - distribution.cdf(x)).abs().max() < 2.2 / draws**0.5


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_entropy_is_near_the_sum(domain, make):
    points = lattice(domain, 200.0)
    distribution = make(domain, ()).map_tensors(lambda t: t.expand(len(points), *t.shape))
    log_p = distribution.log_prob(points)
    exact = -(log_p.exp() * log_p).sum().item()
    assert make(domain, (2, 3)).entropy().shape == (2, 3)
    assert make(domain, ()).entropy().item() == pytest.approx(exact, abs=0.06)


def test_a_kernel_law_is_the_sum_over_what_it_remembers():
    """The slow, obvious twin: value by value, kernel by kernel, with scipy's logistic distribution."""
    domain = Recorded(0.25)
    distribution = kernel_of(domain, ())
    for x in (-0.75, 0.0, float(distribution.value[0]), 2.5):
        total = 0.0
        for weight, value in zip(distribution.weight.tolist(), distribution.value.tolist(), strict=True):
            total += weight * distribution.share[0].item() * (abs(x - value) < 1e-9)
            for share, scale in zip(distribution.share[1:].tolist(), distribution.blur.tolist(), strict=True):
                total += (
                    weight * share * (stats.logistic.cdf(x + 0.125, value, scale) - stats.logistic.cdf(x - 0.125, value, scale))
                )
        broad = stats.logistic.cdf(x + 0.125, 0, 3) - stats.logistic.cdf(x - 0.125, 0, 3)
        assert distribution.log_prob(torch.tensor(x, dtype=torch.float64)).exp().item() == pytest.approx(
            0.999 * total + 0.001 * broad
        )


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_shortfall_is_the_sum_over_what_lies_below(domain, make):
    points = lattice(domain)
    distribution = make(domain, (), 1).map_tensors(lambda t: t.expand(len(points), *t.shape))
    mass = distribution.log_prob(points).exp()
    for top in (-3.0, 0.4, 2.0, 30.0):
        slow = (mass * (top - points).clamp(min=0.0)).sum()
        assert abs(distribution.integrated_cdf(torch.full_like(points, top))[0] - slow) <= domain.spacing / 2 + 2e-4


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_law_of_recurring_values_is_the_law_and_shares_of_what_was_seen(domain):
    """Against plain counting, bin by bin; the own value is left out once."""
    points, distribution = lattice(domain), recurring_of(domain, (), 2)
    table, plain = (
        distribution.table,
        distribution.distribution.map_tensors(lambda t: t.expand(len(points), *t.shape)).log_prob(points).exp(),
    )
    seen = (table.keys[table.first[2] :] - 3e4).tolist()  # of the second variable
    upto, ends = table.upto.tolist()[-len(seen) :], [*table.high.tolist()[2:]]
    wanted = plain.clone()
    for place, (low, high) in enumerate(zip(table.low.tolist()[2:], ends, strict=True)):
        inside = (points > low) & (points < high)
        here = [k for k, value in enumerate(seen) if low < value < high]
        count = {seen[k]: upto[k] - (upto[k - 1] if k - 1 in here else 0) for k in here}
        for value in [value for value in count if abs(value - float(distribution.own)) < domain.spacing / 2]:
            count[value] -= 1
        total, share = sum(count.values()), float(table.share[2 + place])
        if total:
            wanted[inside] *= 1 - share
            for value, often in count.items():
                nearest = (points - value).abs().argmin()
                wanted[nearest] += share * plain[inside].sum() * often / total
    torch.testing.assert_close(
        distribution.map_tensors(lambda t: t.expand(len(points), *t.shape)).log_prob(points).exp(), wanted, atol=1e-7, rtol=0
    )


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_reweighted_law_has_its_bins_weights_and_its_own_shape_inside_them(domain):
    points, distribution = lattice(domain), reweighted_of(domain, (), 3)
    plain = distribution.distribution.map_tensors(lambda t: t.expand(len(points), *t.shape)).log_prob(points).exp()
    wanted = plain * distribution.weight[(distribution.edges < points[:, None]).sum(-1)]
    mass = distribution.map_tensors(lambda t: t.expand(len(points), *t.shape)).log_prob(points).exp()
    torch.testing.assert_close(mass, wanted / wanted.sum(), atol=1e-9, rtol=0)
    assert float(distribution.mean()) == pytest.approx(float((mass * points).sum()), abs=domain.spacing / 2 + 1e-3)
    even = replace(distribution, weight=torch.ones_like(distribution.weight))
    torch.testing.assert_close(even.mean(), distribution.distribution.mean())


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_bounded_law_is_the_law_within_its_bounds_and_a_millionth_beyond(domain):
    """Against the distribution it was made from, summed point by point."""
    points = lattice(domain, 60.0)
    free, distribution = (
        make(domain, (), 4).map_tensors(lambda t: t.expand(len(points), *t.shape)) for make in (mixed_of, bounded_of)
    )
    low, high = bounds(domain)
    inside = (points >= low - 1e-9) & (points <= high + 1e-9)
    mass = torch.where(inside, free.log_prob(points).exp(), 0.0)
    assert mass.sum() < 0.99  # or there is nothing to see
    torch.testing.assert_close(
        distribution.log_prob(points)[inside].exp(), (1 - 1e-6) * mass[inside] / mass.sum(), rtol=1e-9, atol=0
    )
    assert distribution.log_prob(points)[~inside].exp().sum().item() == pytest.approx(1e-6, rel=1e-4)
    assert distribution.log_prob(points)[~inside].isfinite().all()


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("shift", [0.0, 30.0], ids=["near", "far"])
def test_draws_between_two_ends_are_the_draws_that_fall_between_them(domain, shift):
    """The fast way of the head's distribution against all of its draws; far out only the broad part and nothing else is left."""
    draws = 40_000
    one = distribution_of(domain, (), seed=4)
    middle = round(shift / domain.spacing)
    ends = [torch.tensor((middle + steps) * domain.spacing, dtype=torch.float64) for steps in (-3.5, 9.5)]
    many = one.map_tensors(lambda t: t.expand(draws, *t.shape))
    x = many.sample_between(*(end.expand(draws) for end in ends), seeded(3)).sort().values
    assert (x > ends[0]).all()
    assert (x < ends[1]).all()
    low, high = one.cdf(ends[0]), one.cdf(ends[1])
    below = torch.searchsorted(x, x + 1e-9, right=True) / draws
    assert (below - (many.cdf(x) - low) / (high - low)).abs().max() < 2.2 / draws**0.5


def test_draws_of_a_bounded_law_lie_within_its_bounds_but_for_a_millionth():
    distribution = bounded_of(DOMAINS[0], (300_000,))
    low, high = bounds(DOMAINS[0])
    drawn = distribution.sample(seeded(1))
    beyond = (drawn < low) | (drawn > high)
    assert beyond.sum() <= 5  # 0.3 are to be expected
    often = replace(distribution, outside=torch.full_like(distribution.outside, 0.25))
    drawn = often.sample(seeded(2))
    beyond = ((drawn < low) | (drawn > high)).double().mean().item()
    assert beyond == pytest.approx(0.25, abs=0.005)
    assert (drawn < low).double().mean().item() == pytest.approx(
        often.cdf(torch.full_like(drawn, low - 0.25))[0].item(), abs=0.005
    )


def test_a_fine_lattice_keeps_what_lies_at_its_bounds():
    """In float32 the last of a million steps may be lost; what nearly always happens there must not be."""
    rng = seeded(0)
    steps = torch.randint(100_000, 3_000_000, (2000,), generator=rng, dtype=torch.float64)
    spacing = (1 + torch.rand(2000, generator=rng, dtype=torch.float64)) * 1e-6
    end, none = (steps * spacing).float(), torch.zeros(2000, 1)
    choice, atom = torch.tensor([0.9, 0.1]).log().expand(2000, -1), end[:, None]
    by_head = RecordedDistribution(spacing.float(), choice, none, none, none + 1, atom)
    by_memory = KernelDistribution(spacing.float(), none + 1, atom, choice.exp(), none + 1)
    for distribution in (by_head, by_memory):
        both = bound(distribution, torch.full_like(end, -20.0), end)
        assert (both.log_prob(end) <= 1e-4).all()
        assert (both.cdf(end) >= 1 - 1e-4).all()
        assert ((both.sample(rng) - end).abs() < spacing).double().mean() > 0.85  # nine tenths lie there


def test_a_mean_lies_within_the_bounds():
    distribution = RecordedDistribution(*(torch.tensor(v, dtype=torch.float64) for v in (0.5, [0.0], [0.0], [-0.8], [0.1], [])))
    low, high = torch.tensor([-0.5, 4.0], dtype=torch.float64)
    assert bound(distribution, low, high).mean() == -0.5


def test_a_mixture_reaches_one_whatever_the_precision_of_its_weights():
    weight = torch.tensor([0.2, 0.3, 0.5]).log().log_softmax(-1)  # in float32, whose sum is a little off
    distribution = mixed([distribution_of(DOMAINS[0], (), seed, dtype=torch.float32) for seed in range(3)], weight).map_tensors(
        lambda t: t.double()
    )
    assert distribution.cdf(torch.tensor(1e4, dtype=torch.float64)).item() == pytest.approx(1, abs=1e-15)


def test_variables_without_bounds_stay_as_they_were_beside_others():
    free, domain = distribution_of(DOMAINS[1], (2,), seed=3), DOMAINS[1]
    ends = zip(bounds(domain), (-math.inf, math.inf), strict=True)
    low, high = (torch.tensor(end, dtype=torch.float64) for end in ends)
    both, at = bound(free, low, high), torch.tensor([0.25, 0.25], dtype=torch.float64)
    assert both.log_prob(at)[0] > free.log_prob(at)[0]
    assert both.log_prob(at)[1] == free.log_prob(at)[1]
    torch.testing.assert_close(both.cdf(at)[1], free.cdf(at)[1], rtol=1e-12, atol=0)
    assert both.mean()[1] == free.mean()[1]
    assert bound(free, low[1:].expand(2), high[1:].expand(2)) is free


def test_laws_that_cannot_be_mixed_are_named():
    codes = Categorical(3)(torch.zeros(2, 3))
    with pytest.raises(InputError, match="Cannot mix CategoricalDistribution, RecordedDistribution"):
        mixed([codes, distribution_of(DOMAINS[0], (2,))], torch.zeros(2, 2))
    both = mixed([codes, Categorical(3)(torch.tensor([[5.0, 0.0, 0.0]] * 2))], torch.tensor([[0.5, 0.5]] * 2).log())
    torch.testing.assert_close(both.pmf()[0], (torch.full((3,), 1 / 3) + torch.tensor([5.0, 0.0, 0.0]).softmax(-1)) / 2)
    torch.testing.assert_close(both.log_prob(torch.tensor([1.0, 2.0])).exp(), both.pmf()[0, 1:])
    assert (both.tempered(0.1).entropy() < both.entropy()).all()


def test_every_lattice_law_is_in_the_tests():
    found = {type(make(DOMAINS[0])) for make in MAKERS}
    assert (
        found
        == set(LatticeDistribution.__subclasses__())
        == {
            RecordedDistribution,
            KernelDistribution,
            MixedNumber,
            BoundedNumber,
            ReweightedNumber,
            RecurringNumber,
        }
    )


def test_an_atom_adds_its_own_weight():
    domain = Recorded(0.5, (1.0,))
    distribution = distribution_of(domain, (1,), atoms=1)
    without = distribution.map_tensors(lambda t: t if t is not distribution.atoms else t + torch.nan)
    at, beside = torch.tensor([1.0], dtype=torch.float64), torch.tensor([1.5], dtype=torch.float64)
    assert distribution.log_prob(at).exp() - without.log_prob(at).exp() == pytest.approx(distribution.choice[0, 0].exp().item())
    assert torch.equal(distribution.log_prob(beside), without.log_prob(beside))


def test_far_tails_are_finite_in_float32_and_gradients_are_alive():
    head = RecordedNumber(2, components=3)
    constants = torch.tensor(head.constants(Recorded(1e-3, (0.0,))))
    params = torch.zeros(7, head.width).requires_grad_()
    x = torch.tensor([-1000.0, -50.0, -1.0, 0.0, 2.0, 80.0, 1000.0])
    log_p = head(torch.cat([params, constants.expand(7, -1)], dim=-1)).log_prob(x)
    assert log_p.isfinite().all()
    torch.testing.assert_close(log_p[0], log_p[6])
    assert log_p[6].item() == pytest.approx(-1000 / 3 + torch.tensor(1e-3 * 1e-3 / 3 / 2).log().item(), abs=0.1)
    log_p.sum().backward()
    assert params.grad.isfinite().all()
    assert (params.grad.abs().sum(0)[: head.atoms + 1] > 0).tolist() == [True, False, True]  # the second atom's place is empty
    assert (params.grad.abs().sum(0)[head.atoms + 1 :] > 0).all()


@pytest.mark.parametrize("make", MAKERS)
def test_a_temperature_below_one_sharpens(make):
    distribution, at = make(DOMAINS[1], (4,)), torch.arange(4.0, dtype=torch.float64)
    torch.testing.assert_close(distribution.tempered(1.0).log_prob(at), distribution.log_prob(at))
    assert (distribution.tempered(0.3).entropy() < distribution.entropy()).all()
    each = torch.tensor([1.0, 0.3, 0.7, 0.9], dtype=torch.float64)
    alone = [distribution.tempered(t).log_prob(at)[cell] for cell, t in enumerate(each.tolist())]
    torch.testing.assert_close(distribution.tempered(each).log_prob(at), torch.stack(alone))


def test_recorded_variables_share_one_head_and_keep_their_own_constants():
    schema = Schema.of(a=Recorded(0.5, (0.0,)), b=Recorded(0.1, (0.2, 0.4)), c=Recorded(0.01))
    model = build_model(schema, [RecordedNumber(2)] * 3, width=16, depth=1)
    conditionals = model(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool))
    assert len(conditionals.parts) == 1
    assert conditionals.distribution(1).spacing.tolist() == pytest.approx([0.1, 0.1])
    assert conditionals.distribution(1).atoms[0].tolist() == pytest.approx([0.2, 0.4])
    assert conditionals.distribution(2).atoms.isnan().all()
    assert [build_model(schema).heads[i].atoms for i in range(3)] == [1, 2, 0]


def test_bad_domains_are_explained():
    with pytest.raises(InputError, match=r"spacing=0\.0; expected a positive number"):
        Recorded(0.0)
    with pytest.raises(InputError, match=r"bounds=\(2\.0, 1\.0\); expected two rising numbers"):
        Recorded(1.0, bounds=(2.0, 1.0))
    with pytest.raises(InputError, match="room for 1 atoms, the variable has 2"):
        RecordedNumber(1).constants(Recorded(1.0, (0.0, 1.0)))
