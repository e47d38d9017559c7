"""The planner against brute force over all policies, and step losses against enumeration."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import InputError
from anyorder.inference import log_prob, plan, sample, seeded, step_losses
from anyorder.models.any_order import build_model
from anyorder.schema import Category, Schema
from anyorder.subsets import Planned, Question, RandomOrder
from exact import mask_of, subsets


def cost(losses, places):
    return sum((b - a) * losses[a] for a, b in itertools.pairwise(places))


def brute_force(losses, steps):
    count = len(losses)
    policies = ((0, *middle, count) for middle in itertools.combinations(range(1, count), steps - 1))
    return min(cost(losses, places) for places in policies)


@given(losses=st.lists(st.floats(0, 10), min_size=1, max_size=9), data=st.data())
def test_the_plan_is_as_good_as_the_best_of_all_policies(losses, data):
    steps = data.draw(st.integers(1, len(losses)))
    planned = plan(torch.tensor(losses, dtype=torch.float64), steps, isotonic=False)
    assert len(planned.places) == steps + 1
    assert cost(losses, planned.places) == pytest.approx(brute_force(losses, steps), abs=1e-9)
    falling = sorted(losses, reverse=True)
    planned = plan(torch.tensor(falling, dtype=torch.float64), steps)
    assert cost(falling, planned.places) == pytest.approx(brute_force(falling, steps), abs=1e-9)


def test_noise_in_the_losses_is_not_exploited():
    """A dip in a falling curve is noise: the plan must not jump into it."""
    noisy = torch.tensor([5.0, 1.0, 4.0, 3.0, 2.0, 1.5])
    assert plan(noisy, 2, isotonic=False).places == (0, 1, 6)
    smooth = torch.tensor([5.0, 2.5, 2.5, 2.5, 2.0, 1.5])
    assert plan(noisy, 3).places == plan(smooth, 3).places


def test_the_step_count_is_checked():
    with pytest.raises(InputError, match=r"steps=5; expected between 1 and 4"):
        plan(torch.ones(4), 5)


def test_step_losses_are_the_mean_over_all_sets_of_a_size():
    model = build_model(Schema.repeat(Category(3), 4), width=16, depth=1, seed=2)
    row = torch.tensor([[0.0, 2.0, 1.0, 1.0]])
    exact = torch.zeros(4, dtype=torch.float64)
    for size in range(4):
        sets = [s for s in subsets(range(4)) if len(s) == size]
        for known in sets:
            log_p = model(row, mask_of(known, 4)).log_prob(row)[0]
            hidden = [j for j in range(4) if j not in known]
            exact[size] -= log_p[hidden].mean().item() / len(sets)
    rows = 20_000
    present = torch.ones(rows, 4, dtype=torch.bool)
    found = step_losses(model, row.repeat(rows, 1), present, seeded())
    torch.testing.assert_close(found, exact, atol=0.01, rtol=0)
    # Their sum is the mean score along random orders.
    scores = log_prob(model, row.repeat(rows, 1), Question.joint(present), order=RandomOrder())
    assert found.sum().item() == pytest.approx(-scores.double().mean().item(), abs=0.02)


def test_step_losses_of_rows_with_gaps_use_the_steps_they_have():
    model = build_model(Schema.repeat(Category(2), 4), width=16, depth=1)
    present = torch.tensor([[True, True, False, True], [False, True, True, False]])
    losses = step_losses(model, torch.zeros(2, 4), present, seeded())
    assert losses.isfinite().all()
    assert losses[3] == losses[2]


def test_a_plan_walks():
    model = build_model(Schema.repeat(Category(2), 6), width=16, depth=1)
    x, present = torch.zeros(10, 6), torch.ones(10, 6, dtype=torch.bool)
    schedule = plan(step_losses(model, x, present, seeded()), steps=3)
    assert isinstance(schedule, Planned)
    drawn = sample(model, x, Question.joint(present), seeded(), schedule=schedule)
    assert set(drawn.unique().tolist()) <= {0.0, 1.0}
