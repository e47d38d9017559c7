"""Ranges and sets as evidence against the exact answer: a small joint table, summed."""

import math

import pytest
import torch

from anyorder.distributions import RecordedNumber
from anyorder.errors import InputError
from anyorder.inference import Interval, Members, sample, sample_constrained, seeded
from anyorder.schema import Recorded
from anyorder.subsets import Question
from exact import JointTable

MANY = 40_000


@pytest.fixture(scope="module")
def model():
    return JointTable.random(3, 4, 3, seed=1)


def exact(model, condition):
    """p(x) given a condition on codes, as a table."""
    table = model.probs.clone()
    for index in torch.cartesian_prod(*[torch.arange(n) for n in table.shape]):
        if not condition(*index.tolist()):
            table[tuple(index)] = 0
    return table / table.sum(), table.sum() / model.probs.sum()


def test_two_sets_give_the_conditional_law(model):
    allowed = {0: Members((0.0, 2.0)), 1: Members((1.0, 3.0))}
    nothing = torch.zeros(MANY, 3, dtype=torch.bool)
    particles = sample_constrained(model, torch.zeros(MANY, 3), nothing, allowed, seeded(0))
    table, mass = exact(model, lambda a, b, c: a in (0, 2) and b in (1, 3))
    assert particles.mass == pytest.approx(mass.item(), abs=0.01)
    x = sample(model, particles.resampled(MANY, seeded(1)), Question(particles.given, ~particles.given), seeded(2)).long()
    found = torch.zeros_like(table).index_put_(tuple(x.T), torch.tensor(1.0 / MANY, dtype=table.dtype), accumulate=True)
    assert (found - table).abs().max() < 0.02
    assert 0.2 * MANY < particles.effective <= MANY


def test_one_set_needs_no_weights(model):
    given = torch.zeros(100, 3, dtype=torch.bool)
    given[:, 2] = True
    particles = sample_constrained(model, torch.ones(100, 3), given, {1: Members((0.0, 2.0))}, seeded(0))
    assert particles.effective == pytest.approx(100)
    table = exact(model, lambda a, b, c: c == 1)[0].sum((0, 2))
    assert particles.mass == pytest.approx((table[0] + table[2]).item(), abs=1e-5)
    assert set(particles.x[:, 1].tolist()) == {0.0, 2.0}


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.75), (-math.inf, 0.0), (0.25, math.inf), (0.5, 0.5)])
def test_a_range_of_a_recorded_number(low, high):
    head = RecordedNumber(2, components=3)
    constants = torch.tensor(head.constants(Recorded(0.25, (0.5,))))
    params = torch.cat([torch.randn(1, head.width, generator=seeded(0)), constants[None]], dim=-1)
    distribution = head(params.expand(MANY, -1))
    points = torch.arange(-800, 801) * 0.25
    mass = head(params.expand(len(points), -1)).log_prob(points).exp()
    inside = (points >= low) & (points <= high)
    limit = Interval(low, high)
    assert limit.mass(distribution)[0].item() == pytest.approx(mass[inside].sum().item(), abs=1e-5)
    drawn = limit.draw(distribution, seeded(1))
    assert ((drawn >= low) & (drawn <= high)).all()
    assert drawn.mean().item() == pytest.approx(((mass * points)[inside].sum() / mass[inside].sum()).item(), abs=0.1)


def test_what_is_impossible_is_said(model):
    model.probs[0] = 0
    with pytest.raises(InputError, match="no probability at all, given the rest"):
        sample_constrained(model, torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool), {0: Members((0.0,))}, seeded(0))
