"""Scores against exact answers: an enumerated joint, a full-covariance Gaussian, and sums over all states."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import InputError
from anyorder.inference import (
    ModeAndStep,
    elbo,
    fixed_orders,
    log_prob,
    mixture_log_prob,
    path_terms,
    ratio_log_prob,
    seeded,
    walk,
)
from anyorder.models.any_order import build_model
from anyorder.schema import Category, Ordinal, Real, Schema
from anyorder.subsets import (
    CanonicalOrder,
    Cosine,
    Even,
    MixtureOfOrders,
    MostCertainFirst,
    OneByOne,
    Planned,
    Precedence,
    Quadratic,
    Question,
    RandomOrder,
    TwoStage,
    ask,
)
from exact import GaussianOracle, JointTable, all_states, disjoint_pairs, mask_of

ORDERS = [
    CanonicalOrder(),
    CanonicalOrder((2, 0, 1)),
    RandomOrder(),
    TwoStage(torch.tensor([False, True, False])),
    Precedence((1, 0, 1)),
    MixtureOfOrders([RandomOrder(), CanonicalOrder()], (1.0, 3.0)),
    MostCertainFirst(),
]
SCHEDULES = [OneByOne(), Even(2), Cosine(2), Quadratic(2), Planned((0, 1, 3))]
SIZES = (2, 3, 2)


def untrained(sizes=SIZES, seed=1):
    """A network whose conditionals contradict each other."""
    return build_model(schema_of(sizes), width=16, depth=1, seed=seed)


def schema_of(sizes):
    return Schema.of(**{f"v{i}": Category(k) for i, k in enumerate(sizes)})


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_log_prob_is_the_exact_conditional_of_a_joint_table(order):
    joint = JointTable.random(*SIZES)
    x = joint.states()
    for known, wanted in disjoint_pairs(len(SIZES)):
        question = Question(mask_of(known, 3, len(x)), mask_of(wanted, 3, len(x)))
        expected = joint.log_marginal(x, question.given | question.target) - joint.log_marginal(x, question.given)
        torch.testing.assert_close(log_prob(joint, x, question, order=order), expected)


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_log_prob_is_the_exact_conditional_of_a_gaussian(order):
    oracle = GaussianOracle.random(3)
    x = torch.randn(5, 3, generator=seeded(), dtype=torch.float64)
    for known, wanted in disjoint_pairs(3):
        question = Question(mask_of(known, 3, len(x)), mask_of(wanted, 3, len(x)))
        expected = oracle.log_marginal(x, question.given | question.target) - oracle.log_marginal(x, question.given)
        torch.testing.assert_close(log_prob(oracle, x, question, order=order), expected)


@pytest.mark.parametrize("variables", [3, 4])
@pytest.mark.parametrize("via", [mixture_log_prob, elbo])
def test_mixtures_and_bounds_of_a_consistent_model_are_exact_too(variables, via):
    joint = JointTable.random(*(2,) * variables)
    x = joint.states()
    question = Question.joint(torch.ones(len(x), variables, dtype=torch.bool))
    expected = joint.log_marginal(x, question.target)
    torch.testing.assert_close(via(joint, x, question, fixed_orders(variables, 5)), expected)
    torch.testing.assert_close(ratio_log_prob(joint, x, question), expected)


def total_probability(model, score, known, wanted):
    """The sum over the states of the targets, for every state of the given variables."""
    sizes = [v.domain.levels for v in model.schema]
    x = all_states(sizes).float()
    rest = set(range(len(sizes))) - known - wanted
    x = x[(x[:, sorted(rest)] == 0).all(-1)]  # what is marginalised may hold anything
    question = Question(mask_of(known, len(sizes), len(x)), mask_of(wanted, len(sizes), len(x)))
    p = score(x, question).double().exp()
    groups = {}
    for row, value in zip(x[:, sorted(known)].tolist(), p.tolist(), strict=True):
        groups[tuple(row)] = groups.get(tuple(row), 0.0) + value
    return torch.tensor(list(groups.values()))


def row_by_row(score):
    """Every row with the same seed, and so with the same order."""
    return lambda x, question: torch.cat([score(x[i : i + 1], question[slice(i, i + 1)]) for i in range(len(x))])


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_probabilities_of_an_untrained_network_sum_to_one(order, schedule):
    model = untrained()
    score = row_by_row(lambda x, question: log_prob(model, x, question, order=order, schedule=schedule, rng=seeded(4)))
    for known, wanted in disjoint_pairs(3):
        total = total_probability(model, score, known, wanted)
        torch.testing.assert_close(total, torch.ones_like(total), atol=1e-5, rtol=0)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_mixtures_of_fixed_orders_sum_to_one(count, schedule):
    model = untrained((2, 3, 2, 2))
    score = lambda x, question: mixture_log_prob(model, x, question, fixed_orders(4, count), schedule=schedule)  # noqa: E731
    for known, wanted in disjoint_pairs(4):
        total = total_probability(model, score, known, wanted)
        torch.testing.assert_close(total, torch.ones_like(total), atol=1e-5, rtol=0)


def test_the_ratio_of_marginals_of_an_untrained_network_need_not_sum_to_one():
    model = untrained()
    totals = [total_probability(model, lambda x, q: ratio_log_prob(model, x, q), k, w) for k, w in disjoint_pairs(3)]
    assert max((t - 1).abs().max().item() for t in totals) > 1e-3


def test_the_elbo_over_all_orders_is_the_expected_loss_and_below_the_mixture():
    from anyorder.subsets import Everything
    from exact import edge_mass

    model, x = untrained((2, 2, 3, 2)), torch.tensor([[1.0, 0.0, 2.0, 1.0]])
    orders = [CanonicalOrder(path) for path in itertools.permutations(range(4))]
    question = Question.joint(torch.ones(1, 4, dtype=torch.bool))
    expected = 0.0
    for (known, j), mass in edge_mass(Everything(), RandomOrder(), range(4), 4).items():
        expected += float(mass) * model(x, mask_of(known, 4)).log_prob(x)[0, j].item()
    bound = elbo(model, x, question, orders).item()
    assert bound == pytest.approx(expected, abs=1e-5)
    assert mixture_log_prob(model, x, question, orders).item() > bound


MIXED = Schema.of(a=Real(), b=Category(3), c=Ordinal(5), d=Category(2), e=Real())


def mixed_rows(rows, seed=0):
    rng = seeded(seed)
    x = torch.rand(rows, 5, generator=rng)
    x[:, 1:4] = (x[:, 1:4] * torch.tensor([3, 5, 2])).floor()
    return x, torch.rand(rows, 5, generator=rng) < 0.7


@pytest.mark.parametrize("rows_per_call", [1, 3, 7, None])
@pytest.mark.parametrize("schedule", [OneByOne(), Even(2), Planned((0, 2, 5))], ids=repr)
@pytest.mark.parametrize("order", [CanonicalOrder((4, 2, 0, 1, 3)), RandomOrder(), MostCertainFirst()], ids=repr)
def test_many_steps_in_one_call_equal_one_step_at_a_time(order, schedule, rows_per_call):
    model = build_model(MIXED, width=16, depth=1)
    x, present = mixed_rows(13)
    x[~present] = torch.nan
    given = present & (torch.rand(13, 5, generator=seeded(9)) < 0.3)
    question = Question(given, present & ~given)
    slow = torch.zeros(13, 5)
    with torch.inference_mode():
        for step in walk(model, x, question, order=order, schedule=schedule, rng=seeded(3)):
            slow += torch.where(step.now, step.conditionals.log_prob(torch.where(question.target, x, 0.0)), 0.0)
    fast = path_terms(model, x, question, [order], schedule=schedule, rng=seeded(3), rows_per_call=rows_per_call)[0]
    torch.testing.assert_close(fast, slow)
    assert (fast[~question.target] == 0).all()
    assert (fast[question.target] != 0).all()


def test_terms_of_several_orders_are_those_of_each_alone():
    model = build_model(MIXED, width=16, depth=1)
    x, present = mixed_rows(6)
    orders = fixed_orders(5, 3)
    together = path_terms(model, x, Question.joint(present), orders)
    for k, order in enumerate(orders):
        torch.testing.assert_close(together[k], path_terms(model, x, Question.joint(present), [order])[0])


@given(seed=st.integers(0, 50), garbage=st.sampled_from([math.nan, math.inf, -1e30, 7.0]))
def test_a_hidden_value_changes_nothing(seed, garbage):
    model = build_model(MIXED, width=16, depth=1, seed=seed)
    x, known = mixed_rows(8, seed)
    wrong = torch.where(known, x, garbage)
    clean = model(x, known)
    dirty = model(wrong, known)
    for one, other in zip(clean.parts, dirty.parts, strict=True):
        assert torch.equal(one.params, other.params)
    question = Question(known, ~known & torch.tensor([True, False, True, True, False]))
    if question.target.any():
        rest = ~known & ~question.target
        assert torch.equal(log_prob(model, x, question), log_prob(model, torch.where(rest, garbage, x), question))


def test_fixed_orders_come_in_mirrored_pairs_and_never_change():
    orders = fixed_orders(9, 5)
    assert orders == fixed_orders(9, 5)
    assert orders[1].order == orders[0].order[::-1]
    assert orders[:4] == fixed_orders(9, 4)
    assert orders != fixed_orders(9, 5, seed=1)


def test_mode_and_step_reach_the_network():
    model = build_model(schema_of(SIZES), width=16, depth=1, context=(2, 4))
    x = all_states(SIZES).float()
    question = Question.joint(torch.ones(len(x), 3, dtype=torch.bool))
    first, second = (log_prob(model, x, question, context=ModeAndStep(m)) for m in (0, 1))
    assert not torch.allclose(first, second)
    fixed = torch.zeros(len(x), 2, dtype=torch.long)
    torch.testing.assert_close(
        log_prob(model, x, question, context=fixed),
        log_prob(model, x, question, context=lambda g, rows: torch.zeros(len(g), 2, dtype=torch.long)),
    )
    score = row_by_row(lambda x, q: log_prob(model, x, q, context=ModeAndStep(1)))
    torch.testing.assert_close(total_probability(model, score, set(), {0, 1, 2}), torch.ones(1), atol=1e-5, rtol=0)


def test_rows_without_a_target_score_zero_and_no_rows_score_nothing():
    joint = JointTable.random(2, 2)
    x = torch.tensor([[0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    question = Question(torch.tensor([[True, False], [True, True]]), torch.tensor([[False, True], [False, False]]))
    assert log_prob(joint, x, question)[1] == 0
    assert log_prob(joint, x[:0], question[slice(0, 0)]).shape == (0,)


PRESENT = torch.ones(1, 5, dtype=torch.bool)
GOOD = torch.tensor([[0.5, 2.0, 4.0, 1.0, -3.0]])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: ask(MIXED, PRESENT, ["a"], ["a", "b"]), "share 1 variable.*: a.*remove it from one of the two"),
        (lambda m: ask(MIXED, PRESENT, ["aa"]), "There is no variable 'aa'. Did you mean 'a'"),
        (lambda m: ask(MIXED, PRESENT, []), "`target` is empty"),
        (lambda m: ask(MIXED, PRESENT, "a"), r"Expected a list of names, got the text 'a'. Write \['a'\]"),
        (lambda m: log_prob(m, GOOD, Question(PRESENT, PRESENT)), "share 5 variable"),
        (lambda m: log_prob(m, GOOD[:, :4], Question.joint(PRESENT)), r"x has shape \(1, 4\); expected .* 5 variables"),
        (
            lambda m: log_prob(m, GOOD, Question.joint(PRESENT[:, :3])),
            r"question.given is .* shape \(1, 3\); expected .*\(1, 5\)",
        ),
        (lambda m: MIXED.check(GOOD.long(), PRESENT), "dtype torch.int64; expected floating point"),
        (
            lambda m: log_prob(m, torch.where(torch.tensor([1, 0, 0, 0, 0]) > 0, torch.nan, GOOD), Question.joint(PRESENT)),
            r"x\[0, 0\] = nan of variable 'a' \(Real\(\)\) is not a finite number \(1 such cell",
        ),
        (
            lambda m: log_prob(m, GOOD + torch.tensor([0, 1, 0, 0, 0]), Question.joint(PRESENT)),
            r"x\[0, 1\] = 3 of variable 'b' \(Category\(levels=3\)\) is no code",
        ),
        (lambda m: log_prob(m, GOOD + 0.25, Question.joint(PRESENT)), "is no code of its variable"),
        (lambda m: mixture_log_prob(m, GOOD, Question.joint(PRESENT), []), r"`orders` is \[\]; expected at least one order"),
    ],
)
def test_bad_questions_are_explained(act, message):
    with pytest.raises(InputError, match=message):
        act(build_model(MIXED, width=8, depth=1))


def test_gaps_are_neither_given_nor_asked_for():
    question = ask(MIXED, torch.tensor([[True, False, True, False, True]]), target=["a", "b"], given=["c", "d"])
    assert question.target.tolist() == [[True, False, False, False, False]]
    assert question.given.tolist() == [[False, False, True, False, False]]


def test_the_ratio_of_marginals_of_a_consistent_model_is_the_exact_conditional():
    joint = JointTable.random(*SIZES)
    x = joint.states()
    for known, wanted in disjoint_pairs(len(SIZES)):
        question = Question(mask_of(known, 3, len(x)), mask_of(wanted, 3, len(x)))
        expected = joint.log_marginal(x, question.given | question.target) - joint.log_marginal(x, question.given)
        torch.testing.assert_close(ratio_log_prob(joint, x, question), expected)
        torch.testing.assert_close(ratio_log_prob(joint, x, question, order=RandomOrder(), rng=seeded(1)), expected)
    with pytest.raises(InputError, match="share 3 variable"):
        ratio_log_prob(joint, x, Question(question.target | True, question.target | True))


def test_a_label_beside_mode_and_step_belongs_to_its_row():
    model = build_model(schema_of(SIZES), width=16, depth=1, context=(2, 4, 3))
    x = all_states(SIZES).float()
    question = Question.joint(torch.ones(len(x), 3, dtype=torch.bool))
    label = (torch.arange(len(x)) % 3)[:, None]
    together = log_prob(model, x, question, context=ModeAndStep(1, label))
    for i in range(len(x)):
        alone = log_prob(model, x[i : i + 1], question[slice(i, i + 1)], context=ModeAndStep(1, label[i : i + 1]))
        torch.testing.assert_close(together[i : i + 1], alone)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (torch.zeros(1, 3, dtype=torch.long), r"shape \(1, 3\); expected whole numbers of shape \(1, 2\)"),
        (torch.zeros(1, 2), "context is torch.float32"),
        (torch.zeros(2, dtype=torch.long), r"shape \(2,\)"),
        (torch.tensor([[0, 9]]), "out of range"),
        (torch.tensor([[-2, 0]]), "out of range"),
    ],
)
def test_bad_contexts_are_explained(context, message):
    model = build_model(MIXED, width=8, depth=1, context=(2, 4))
    with pytest.raises(InputError, match=message):
        model(GOOD, PRESENT, context)
    with pytest.raises(InputError, match="built without one"):
        build_model(MIXED, width=8, depth=1)(GOOD, PRESENT, torch.zeros(1, 1, dtype=torch.long))


def test_doubles_and_foreign_containers():
    model = build_model(MIXED, width=8, depth=1)
    question = Question.joint(PRESENT)
    torch.testing.assert_close(log_prob(model, GOOD.double(), question).float(), log_prob(model, GOOD, question))
    with pytest.raises(InputError, match=r"`present` is ndarray; expected a torch.bool tensor \(rows, 5\)"):
        ask(MIXED, PRESENT.numpy(), ["a"])
    with pytest.raises(InputError, match=r"`present` is torch.float32 of shape \(1, 5\)"):
        ask(MIXED, GOOD, ["a"])
