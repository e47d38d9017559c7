"""Draws and entropies against exact answers."""

import pytest
import torch

from anyorder.errors import InputError
from anyorder.inference import entropy, log_prob, sample, seeded
from anyorder.models.any_order import build_model
from anyorder.subsets import CanonicalOrder, Even, MostCertainFirst, Question, RandomOrder, TwoStage
from exact import GaussianOracle, JointTable, mask_of

ORDERS = [CanonicalOrder(), RandomOrder(), TwoStage(torch.tensor([False, True, False])), MostCertainFirst()]


@pytest.mark.parametrize("order", ORDERS, ids=repr)
@pytest.mark.parametrize(("known", "wanted"), [((), (0, 1, 2)), ((1,), (0, 2)), ((0, 2), (1,)), ((2,), (0,))])
def test_samples_of_a_joint_table_follow_the_exact_conditional(order, known, wanted):
    joint = JointTable.random(2, 3, 2)
    draws = 20_000
    x = torch.tensor([[1.0, 2.0, 0.0]], dtype=torch.float64).repeat(draws, 1)
    question = Question(mask_of(known, 3, draws), mask_of(wanted, 3, draws))
    y = sample(joint, x, question, seeded(), order=order)
    untouched = ~question.target
    assert torch.equal(y[untouched], x[untouched])
    states = y.unique(dim=0)
    given = question.given[: len(states)]
    p = (joint.log_marginal(states, given | question.target[: len(states)]) - joint.log_marginal(states, given)).exp()
    for state, probability in zip(states, p, strict=True):
        found = (y == state).all(-1).double().mean()
        assert abs(found - probability) < 5 * (probability * (1 - probability) / draws).sqrt() + 1e-9
    assert p.sum() == pytest.approx(1, abs=0.01)


def test_samples_of_a_gaussian_have_its_conditional_moments():
    oracle = GaussianOracle.random(3)
    draws = 4000
    x = torch.zeros(draws, 3, dtype=torch.float64)
    x[:, 1] = 1.5
    y = sample(oracle, x, Question(mask_of((1,), 3, draws), mask_of((0, 2), 3, draws)), seeded())
    keep, known = [0, 2], [1]
    gain = oracle.covariance[keep][:, known] / oracle.covariance[1, 1]
    mean = oracle.mean[keep] + (gain * (1.5 - oracle.mean[1])).flatten()
    covariance = oracle.covariance[keep][:, keep] - gain @ oracle.covariance[known][:, keep]
    assert ((y[:, keep].mean(0) - mean).abs() < 5 * (covariance.diagonal() / draws).sqrt()).all()
    torch.testing.assert_close(torch.cov(y[:, keep].T), covariance, atol=0.15 * covariance.diagonal().max().item(), rtol=0)


def test_blocks_draw_their_targets_independently():
    joint = JointTable(torch.tensor([[0.5, 0.0], [0.0, 0.5]]))  # two variables that are always equal
    x = torch.zeros(4000, 2, dtype=torch.float64)
    question = Question.joint(torch.ones(4000, 2, dtype=torch.bool))
    one_by_one = sample(joint, x, question, seeded())
    at_once = sample(joint, x, question, seeded(), schedule=Even(1))
    assert (one_by_one[:, 0] == one_by_one[:, 1]).all()
    assert abs((at_once[:, 0] == at_once[:, 1]).double().mean() - 0.5) < 0.04


def test_low_temperature_draws_the_likeliest_and_the_same_seed_the_same():
    joint = JointTable.random(3, 3)
    x = torch.zeros(500, 2, dtype=torch.float64)
    question = Question(mask_of((0,), 2, 500), mask_of((1,), 2, 500))
    cold = sample(joint, x, question, seeded(), temperature=1e-3)
    assert (cold[:, 1] == joint.probs[0].argmax()).all()
    assert torch.equal(sample(joint, x, question, seeded(8)), sample(joint, x, question, seeded(8)))
    assert not torch.equal(sample(joint, x, question, seeded(8)), sample(joint, x, question, seeded(9)))


def exact_entropy(joint, known_values, known, wanted):
    """Minus the sum of p log p over the states of the targets."""
    states = joint.states()
    given, both = mask_of(known, 3, len(states)), mask_of((*known, *wanted), 3, len(states))
    states[:, list(known)] = known_values[list(known)]
    states = states[:, :]
    rest = [i for i in range(3) if i not in known and i not in wanted]
    states[:, rest] = 0
    states = states.unique(dim=0)
    given, both = given[: len(states)], both[: len(states)]
    log_p = joint.log_marginal(states, both) - joint.log_marginal(states, given)
    return -(log_p.exp() * log_p).sum()


@pytest.mark.parametrize(("known", "wanted"), [((), (0, 1, 2)), ((1,), (0, 2)), ((0, 2), (1,)), ((2,), (0,))])
def test_entropy_of_a_joint_table(known, wanted):
    joint = JointTable.random(2, 3, 2, seed=4)
    x = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    answer = entropy(joint, x, Question(mask_of(known, 3, 2), mask_of(wanted, 3, 2)), seeded(), draws=4000)
    for row in range(2):
        exact = exact_entropy(joint, x[row], known, wanted)
        assert abs(answer.value[row] - exact) <= 5 * answer.standard_error[row] + 1e-9
    if len(wanted) == 1:
        assert (answer.standard_error < 1e-9).all()  # one target needs no luck


def test_entropy_of_a_gaussian_needs_no_luck_at_all():
    oracle = GaussianOracle.random(3)
    x = torch.zeros(2, 3, dtype=torch.float64)
    answer = entropy(oracle, x, Question(mask_of((), 3, 2), mask_of((0, 2), 3, 2)), seeded(), draws=4)
    block = oracle.covariance[[0, 2]][:, [0, 2]]
    exact = torch.distributions.MultivariateNormal(torch.zeros(2, dtype=torch.float64), block).entropy()
    torch.testing.assert_close(answer.value, exact.expand(2))
    assert (answer.standard_error < 1e-6).all()


def test_a_context_per_row_is_repeated_with_its_row():
    from anyorder.schema import Category, Schema

    model = build_model(Schema.of(a=Category(2), b=Category(2)), width=16, depth=1, context=(3,))
    x, context = torch.zeros(3, 2), torch.tensor([[0], [1], [2]])
    question = Question(mask_of((), 2, 3), mask_of((0,), 2, 3))
    together = entropy(model, x, question, seeded(), draws=2, context=context).value
    for row in range(3):
        alone = entropy(model, x[:1], question[slice(0, 1)], seeded(), draws=2, context=context[row : row + 1]).value
        torch.testing.assert_close(together[row : row + 1], alone)
    assert together.unique().numel() == 3


def test_minus_the_mean_log_prob_of_samples_is_the_entropy():
    model_x = JointTable.random(2, 2, 2)
    x = torch.zeros(20_000, 3, dtype=torch.float64)
    question = Question.joint(torch.ones(20_000, 3, dtype=torch.bool))
    y = sample(model_x, x, question, seeded())
    scores = -log_prob(model_x, y, question)
    exact = entropy(model_x, x[:1], question[slice(0, 1)], seeded(1), draws=4000)
    assert abs(scores.mean() - exact.value[0]) < 5 * (scores.std() / 20_000**0.5 + exact.standard_error[0])


def test_bad_requests_are_explained():
    joint = JointTable.random(2, 2)
    x, question = torch.zeros(1, 2, dtype=torch.float64), Question.joint(torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(InputError, match=r"temperature=0.0; expected a positive number"):
        sample(joint, x, question, seeded(), temperature=0.0)
    with pytest.raises(InputError, match=r"draws=1; expected at least 2"):
        entropy(joint, x, question, seeded(), draws=1)
    with pytest.raises(InputError, match="is no code of its variable"):
        sample(joint, x + 5, Question(mask_of((0,), 2), mask_of((1,), 2)), seeded())
    # What is asked for may hold anything.
    assert sample(joint, x * torch.nan, question, seeded()).isfinite().all()


def test_the_standard_error_is_the_spread_of_the_answer():
    joint = JointTable.random(3, 3, 3, seed=2)
    x = torch.zeros(1, 3, dtype=torch.float64)
    question = Question.joint(torch.ones(1, 3, dtype=torch.bool))
    answers = [entropy(joint, x, question, seeded(s), draws=32) for s in range(100)]
    spread = torch.stack([a.value for a in answers]).std().item()
    stated = torch.stack([a.standard_error for a in answers]).mean().item()
    assert 0.7 < spread / stated < 1.4


def test_rows_in_parts_give_the_same_kind_of_answer(monkeypatch):
    monkeypatch.setattr("anyorder.inference.sampling.MOST_SCORED_ROWS", 8)
    oracle = GaussianOracle.random(2)
    question = Question.joint(torch.ones(5, 2, dtype=torch.bool))
    answer = entropy(oracle, torch.zeros(5, 2, dtype=torch.float64), question, seeded(), draws=4)
    exact = torch.distributions.MultivariateNormal(oracle.mean, oracle.covariance).entropy()
    torch.testing.assert_close(answer.value, exact.expand(5))
    assert entropy(oracle, torch.zeros(0, 2), Question.joint(torch.ones(0, 2, dtype=torch.bool)), seeded()).value.shape == (0,)


def test_draws_can_be_changed_and_trained_on():
    joint = JointTable.random(2, 2)
    y = sample(joint, torch.zeros(3, 2), Question.joint(torch.ones(3, 2, dtype=torch.bool)), seeded())
    y[:, 0] *= 2
    torch.nn.Linear(2, 1)(y).sum().backward()
