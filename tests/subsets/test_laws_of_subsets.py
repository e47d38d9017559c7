"""Questions, orders and blocks against their distributions written out by enumeration."""

import itertools
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyorder.errors import InputError
from anyorder.inference import seeded
from anyorder.subsets import (
    AnySize,
    CanonicalOrder,
    Cosine,
    EachWithProbability,
    Even,
    Everything,
    FirstK,
    GivenAnySize,
    Mixture,
    MixtureOfOrders,
    MostCertainFirst,
    Observed,
    OneByOne,
    Planned,
    Precedence,
    Quadratic,
    Question,
    RandomOrder,
    Regions,
    TwoStage,
)
from anyorder.subsets.questions import pick, smallest, stratified
from exact import mask_of, path_distribution, question_distribution, sets_of, subsets

D = 4
PATTERNS = torch.tensor([[True, False, True, False], [False, False, False, True], [True, True, True, True]])
QUESTIONS = [
    Everything(),
    FirstK(2),
    AnySize(),
    GivenAnySize(),
    EachWithProbability(0.25),
    Observed(PATTERNS),
    Regions(PATTERNS),
    Mixture([AnySize(), EachWithProbability(0.5)], (3.0, 1.0)),
]
ORDERS = [
    RandomOrder(),
    CanonicalOrder(),
    CanonicalOrder((2, 0, 3, 1)),
    CanonicalOrder.strided(D, 2),
    TwoStage(torch.tensor([False, True, True, False])),
    Precedence((1, 0, 2, 1)),
    MixtureOfOrders([RandomOrder(), TwoStage(torch.tensor([True, True, False, False])), CanonicalOrder()], (2.0, 1.0, 1.0)),
]
SCHEDULES = [OneByOne(), Even(3), Even(50), Cosine(4), Quadratic(3), Planned((0, 1, 3, 8))]
PRESENT = [(0, 1, 2, 3), (0, 2, 3), (1,), ()]


def assert_follows(outcomes, distribution, draws):
    """The frequencies of `draws` outcomes lie within 5 standard errors of the distribution's probabilities, and
    nothing else occurs.
    """
    counts = Counter(outcomes)
    assert set(counts) <= {outcome for outcome, p in distribution.items() if p > 0}
    for outcome, p in distribution.items():
        p = float(p)
        assert abs(counts[outcome] / draws - p) <= 5 * (p * (1 - p) / draws) ** 0.5 + 1e-12, outcome


@pytest.mark.parametrize("present", PRESENT)
@pytest.mark.parametrize("distribution", QUESTIONS, ids=repr)
def test_questions_follow_their_law(distribution, present):
    draws = 40_000
    question = distribution.sample(mask_of(present, D, draws), seeded())
    outcomes = zip(sets_of(question.given), sets_of(question.target), strict=True)
    assert_follows(outcomes, question_distribution(distribution, present), draws)


def test_any_size_favours_size_c_by_c_plus_one():
    draws = 100_000
    sizes = AnySize(favour_large=True).sample(mask_of(range(D), D, draws), seeded()).count.flatten().tolist()
    assert_follows(sizes, {c: (c + 1) / 14 for c in range(1, D + 1)}, draws)


@pytest.mark.parametrize("target", [(0, 1, 2, 3), (0, 1, 3), (2,), ()])
@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_ranks_and_prefixes_follow_the_law_of_the_order(order, target):
    draws = 20_000
    distribution = path_distribution(order, frozenset(target), D)
    question = Question(mask_of((), D, draws), mask_of(target, D, draws))
    ranks = order.rank(question, seeded(1)).tolist()
    paths = [tuple(sorted(target, key=lambda i, rank=rank: rank[i])) for rank in ranks]
    assert_follows(paths, distribution, draws)
    for row in ranks[:50]:  # targets hold the first places
        assert sorted(row[i] for i in target) == list(range(len(target)))
    for count in range(len(target) + 1):
        prefix = order.prefix(question, torch.full((draws, 1), count), seeded(2))
        expected = Counter()
        for path, p in distribution.items():
            expected[frozenset(path[:count])] += p
        assert_follows(sets_of(prefix), expected, draws)


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_reach_and_next_probs_are_exact(order):
    for target in subsets(range(D)):
        distribution = path_distribution(order, target, D)
        question = Question(mask_of((), D), mask_of(target, D))
        for done in subsets(target):
            through = {path: p for path, p in distribution.items() if frozenset(path[: len(done)]) == done}
            reach = float(sum(through.values()))
            assert order.log_reach(question, mask_of(done, D)).exp().item() == pytest.approx(reach, abs=1e-12)
            for count in range(len(target) - len(done) + 1):
                probs = order.next_probs(question, mask_of(done, D), count)
                for j in range(D) if reach else ():
                    among = sum(p for path, p in through.items() if j in path[len(done) : len(done) + count])
                    assert probs[0, j].item() == pytest.approx(float(among) / reach, abs=1e-6)


def test_most_certain_first_takes_the_smallest_entropy_of_what_is_left():
    class Entropies:
        def entropy(self):
            return torch.tensor([[3.0, 1.0, 2.0, 0.5]])

    order, question = MostCertainFirst(), Question(mask_of((3,), D), mask_of((0, 1, 2), D))
    rank = order.rank(question, seeded())
    assert order.revise(rank, question, mask_of((), D), Entropies())[0, :3].tolist() == [2, 0, 1]
    assert order.revise(rank, question, mask_of((0,), D), Entropies())[0, :3].tolist() == [0, 1, 2]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@given(counts=st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_blocks_cut_every_path_into_rising_steps(schedule, counts):
    count = torch.tensor(counts)[:, None]
    bounds = schedule.bounds(count)
    for c, row in zip(counts, bounds.tolist(), strict=True):
        assert row[0] == 0
        assert row[-1] == c
        rising = row[: row.index(c) + 1]
        assert all(a < b for a, b in itertools.pairwise(rising))
        assert set(row[row.index(c) :]) == {c}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_a_step_is_found_from_its_fraction(schedule):
    count = torch.tensor([[8], [3], [0], [1]])
    bounds = schedule.bounds(count)
    for row, c in enumerate(count.flatten().tolist()):
        steps = (bounds[row].diff() > 0).sum().item()
        for u in (0.0, 0.3, 0.7, 0.999):
            stop = schedule.step(count, torch.full((4, 1), u, dtype=torch.float64))
            assert stop.steps[row].item() == steps
            if c:
                index = int(u * steps)
                assert stop.done[row].item() == bounds[row, index].item()
                assert stop.size[row].item() == (bounds[row, index + 1] - bounds[row, index]).item()


@given(count=st.integers(1, 300), seed=st.integers(0, 99))
def test_stratified_numbers_fall_one_into_each_interval(count, seed):
    u = stratified(count, seeded(seed))
    assert ((u >= 0) & (u < 1)).all()
    assert sorted((u * count + 1e-9).long().clamp(max=count - 1).tolist()) == list(range(count))


def test_smallest_takes_the_asked_number_and_never_an_infinite_key():
    keys = torch.tensor([[0.3, 0.1, torch.inf, 0.2]] * 5, dtype=torch.float64)
    taken = smallest(keys, torch.arange(5)[:, None])
    assert sets_of(taken) == [frozenset(), {1}, {1, 3}, {0, 1, 3}, {0, 1, 3}]


def test_pick_follows_its_weights():
    assert_follows(pick((1.0, 0.0, 3.0), 20_000, seeded()).tolist(), {0: 0.25, 2: 0.75}, 20_000)


def test_strided_orders_visit_everything_once():
    for variables, stride in ((250, 25), (250, 7), (3072, 48), (5, 9)):
        order = CanonicalOrder.strided(variables, stride).order
        assert sorted(order) == list(range(variables))
    assert CanonicalOrder.strided(250, 25).order[:11] == (*range(0, 250, 25), 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CanonicalOrder((0, 0, 1)), "expected every number from 0 to 2 once"),
        (lambda: CanonicalOrder((1, 0)).rank(Question.joint(mask_of(range(3), 3)), seeded()), "made for 2 variables"),
        (lambda: Precedence((0, 1)).rank(Question.joint(mask_of(range(3), 3)), seeded()), "made for 2 variables"),
        (lambda: Observed(PATTERNS).sample(mask_of(range(3), 3), seeded()), "patterns have 4 variables, the data have 3"),
        (lambda: EachWithProbability(1.5), "p=1.5; expected a probability"),
        (lambda: FirstK(0), "k=0; expected at least 1"),
        (lambda: Even(0), "steps=0; expected at least 1"),
        (lambda: Planned((0, 3, 2)), "expected rising whole numbers"),
        (lambda: MixtureOfOrders([MostCertainFirst()]), "adaptive order cannot be part of a mixture"),
        (
            lambda: MostCertainFirst().next_probs(Question.joint(mask_of((), D)), mask_of((), D)),
            "train with RandomOrder or another order",
        ),
        (
            lambda: MostCertainFirst().log_reach(Question.joint(mask_of((), D)), mask_of((), D)),
            "train with RandomOrder or another order",
        ),
    ],
)
def test_bad_arguments_are_explained(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_mixture_of_orders_of_many_variables_does_not_underflow():
    variables, rows = 1200, 8
    order = MixtureOfOrders([RandomOrder(), TwoStage(torch.arange(variables) < 600)])
    question = Question.joint(torch.ones(rows, variables, dtype=torch.bool))
    done = order.prefix(question, torch.arange(0, 1200, 150)[:, None], seeded())
    torch.testing.assert_close(order.next_probs(question, done).sum(-1), torch.ones(rows), atol=1e-4, rtol=0)


def test_few_targets_come_first_and_many_later():
    for schedule in (Cosine(4), Quadratic(4)):
        sizes = schedule.bounds(torch.tensor([[100]])).diff(dim=-1)[0]
        assert (sizes.diff() > 0).all()


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 2.0, 3.0), (-1.0, 2.0), (0.0, 0.0), (float("nan"), 1.0)])
@pytest.mark.parametrize(
    "make",
    [lambda w: Mixture([AnySize(), Everything()], w), lambda w: MixtureOfOrders([RandomOrder(), CanonicalOrder()], w)],
)
def test_weights_that_do_not_fit_are_refused(make, weights):
    with pytest.raises(InputError, match=r"has 2 part\(s\) and weights .* expected one weight from 0 up for each"):
        make(weights)
    with pytest.raises(InputError, match="is empty; expected at least one part"):
        Mixture([])
