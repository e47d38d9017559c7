"""Choosing measurements and whole sequences of them, against brute force on small joint tables."""

import itertools
import math

import pytest
import torch

from anyorder.errors import InputError
from anyorder.inference import (
    CandidateRatio,
    EntropyDifference,
    GainMinusCost,
    GainPerCost,
    Measurement,
    Policy,
    StopReason,
    TargetRatio,
    acquire,
    choose,
    one_by_one,
    seeded,
    uncertainty,
)
from exact import JointTable, mask_of


def conditional_entropy(joint, given, wanted):
    """H(wanted | given) on average over the table."""

    def entropy(variables):
        rest = [i for i in range(joint.probs.ndim) if i not in variables]
        p = joint.probs.sum(rest) if rest else joint.probs
        return -(p * p.clamp(min=1e-300).log()).sum()

    return entropy({*given, *wanted}) - (entropy(set(given)) if given else 0.0)


def true_gain(joint, target, members):
    """I(target; members) when nothing is known."""
    return float(conditional_entropy(joint, (), target) - conditional_entropy(joint, members, target))


def unknown(rows, variables):
    return torch.zeros(rows, variables, dtype=torch.float64), torch.zeros(rows, variables, dtype=torch.bool)


def exclusive_or():
    """a, b, a third that tells a little, and a xor b, in this order."""
    probs = torch.zeros(2, 2, 2, 2)
    for a, b, hint in itertools.product(range(2), repeat=3):
        probs[a, b, hint, a ^ b] = 0.25 * (0.6 if hint == a ^ b else 0.4)
    return JointTable(probs)


@pytest.mark.parametrize("estimator", [CandidateRatio(), TargetRatio(), EntropyDifference()], ids=repr)
def test_the_greedy_choice_is_the_true_one(estimator):
    for seed in range(5):
        joint = JointTable.random(2, 3, 2, 3, seed=seed)
        choice = choose(joint, *unknown(2, 4), [1], one_by_one([0, 2, 3]), seeded(), policy=Policy(estimator=estimator))
        gains = [true_gain(joint, [1], [c]) for c in (0, 2, 3)]
        assert choice.candidate.tolist() == [gains.index(max(gains))] * 2
        assert choice.gain[0].item() == pytest.approx(max(gains), abs=1e-6)
        torch.testing.assert_close(choice.singles.value[0], torch.tensor(gains, dtype=torch.float64), atol=1e-6, rtol=0)


def test_looking_ahead_finds_two_that_tell_nothing_alone():
    joint, candidates = exclusive_or(), one_by_one([0, 1, 2])
    greedy = choose(joint, *unknown(1, 4), [3], candidates, seeded(), budget=2.0)
    assert greedy.candidate.tolist() == [2]
    assert greedy.singles.value[0, :2].tolist() == pytest.approx([0, 0], abs=1e-9)
    ahead = choose(joint, *unknown(1, 4), [3], candidates, seeded(), budget=2.0, policy=Policy(ahead=2))
    assert ahead.candidate.item() in (0, 1)
    assert ahead.together.tolist() == [[True, True, False]]
    assert ahead.gain.item() == pytest.approx(math.log(2), abs=1e-6)


def test_looking_ahead_ends_certain_where_greed_does_not():
    joint, candidates = exclusive_or(), one_by_one([0, 1, 2])
    truth = joint.states()[joint.probs.flatten() > 0]
    nothing = torch.zeros_like(truth, dtype=torch.bool)
    blind = acquire(joint, truth, nothing, [3], candidates, truth, seeded(), budget=2.0)
    seeing = acquire(joint, truth, nothing, [3], candidates, truth, seeded(), budget=2.0, policy=Policy(ahead=2))
    assert (blind.log_prob[:, -1] < -0.4).all()
    torch.testing.assert_close(seeing.log_prob[:, -1], torch.zeros(len(truth), dtype=torch.float64), atol=1e-6, rtol=0)
    assert {frozenset(row) for row in seeing.chosen.tolist()} == {frozenset({0, 1})}


@pytest.mark.parametrize("preference", [GainMinusCost(20.0), GainPerCost(20.0), GainMinusCost()], ids=repr)
@pytest.mark.parametrize("budget", [2.0, 5.0, math.inf])
@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_costs_groups_and_budgets_against_brute_force(preference, budget, ahead):
    joint = JointTable.random(2, 2, 3, 2, 2, seed=7)
    panels = [Measurement((1,), 2.0), Measurement((2,), 2.5), Measurement((3, 4), 3.0), Measurement((1, 2), 4.0)]
    policy = Policy(preference, ahead, CandidateRatio(400))
    choice = choose(joint, *unknown(1, 5), [0], panels, seeded(), policy=policy, budget=budget)
    scores = {}
    for size in range(1, ahead + 1):
        for combo in itertools.combinations(range(4), size):
            gain = true_gain(joint, [0], {v for c in combo for v in panels[c].variables})
            cost = sum(panels[c].cost for c in combo)
            if cost <= budget and preference.worth * gain > cost:
                by_money = isinstance(preference, GainPerCost)
                scores[combo] = gain / cost if by_money else gain - cost / preference.worth
    if not scores:
        assert choice.candidate.tolist() == [-1]
        return
    planned = tuple(choice.together[0].nonzero().flatten().tolist())
    assert planned in scores
    assert scores[planned] >= max(scores.values()) - 0.01
    assert choice.candidate.item() in planned


def test_no_candidate_is_chosen_that_is_dear_or_not_worth_it_or_known():
    joint = JointTable.random(2, 3, 2, seed=1)
    x, given = unknown(2, 3)
    candidates = one_by_one([1, 2], costs={1: 3.0, 2: 4.0})
    assert choose(joint, x, given, [0], candidates, seeded(), budget=2.9).candidate.tolist() == [-1, -1]
    assert choose(joint, x, given, [0], candidates, seeded(), budget=torch.tensor([2.0, 3.0])).candidate.tolist() == [-1, 0]
    gain = true_gain(joint, [0], [1])
    for worth, expected in ((3.0 / gain * 1.01, 0), (min(3.0 / gain, 4.0 / true_gain(joint, [0], [2])) * 0.99, -1)):
        policy = Policy(GainMinusCost(worth))
        found = choose(joint, x, given, [0], candidates[:1] if expected == 0 else candidates, seeded(), policy=policy)
        assert found.candidate.tolist() == [expected] * 2
    given[0] = torch.tensor([False, True, True])
    choice = choose(joint, x, given, [0], candidates, seeded())
    assert choice.candidate[0] == -1
    assert choice.gain[0] == 0
    assert not choice.together[0].any()
    only = choose(joint, x, given, [0], candidates, seeded(), allowed=torch.tensor([[True, True], [False, True]]))
    assert only.candidate.tolist() == [-1, 1]


def full_path(**options):
    joint = JointTable.random(2, 3, 2, 3, seed=3)
    truth = joint.states()[::2]
    x, given = torch.full_like(truth, torch.nan), torch.zeros_like(truth, dtype=torch.bool)
    candidates = [Measurement((1,), 0.1), Measurement((2, 3), 0.2)]
    return joint, truth, acquire(joint, x, given, [0], candidates, truth, seeded(), **options)


def test_a_path_has_a_point_before_every_step_and_one_at_the_end():
    joint, truth, path = full_path()
    assert path.chosen.shape == (len(truth), 2)
    assert path.chosen.sort(-1).values.tolist() == [[0, 1]] * len(truth)
    assert path.given[:, 0].sum() == 0
    assert path.given[:, 2].tolist() == mask_of((1, 2, 3), 4, len(truth)).tolist()
    torch.testing.assert_close(path.x[:, 1:], truth[:, 1:])
    target = mask_of((0,), 4, len(truth))
    for point in range(3):
        known = path.given[:, point]
        exact = joint.log_marginal(truth, known | target) - joint.log_marginal(truth, known)
        torch.testing.assert_close(path.log_prob[:, point], exact)
    torch.testing.assert_close(path.cost[:, -1], torch.full((len(truth),), 0.3, dtype=torch.float64))
    group_first = path.chosen[:, 0] == 1
    assert path.given[group_first, 1].tolist() == mask_of((2, 3), 4, int(group_first.sum())).tolist()


def test_a_budget_is_never_overspent_and_its_last_penny_is_spent():
    _, truth, path = full_path(budget=0.3)  # 0.1 + 0.2 > 0.3 in floating point
    assert path.chosen.shape == (len(truth), 2)
    _, truth, path = full_path(budget=0.15)
    assert path.chosen.tolist() == [[0]] * len(truth)
    _, truth, path = full_path(budget=0.05)
    assert path.chosen.shape == (len(truth), 0)
    assert path.log_prob.shape == path.cost.shape == (len(truth), 1)


def test_each_row_stops_when_nothing_is_worth_it():
    worth = 4.0
    joint, _, path = full_path(policy=Policy(GainMinusCost(worth)))
    assert (path.chosen == -1).any()
    prices = torch.tensor([0.1, 0.2, 0.0], dtype=torch.float64)[path.chosen]  # -1 is the last: nothing
    torch.testing.assert_close(path.cost.diff(dim=-1), prices)
    assert (worth * path.gain[path.chosen >= 0] > prices[path.chosen >= 0]).all()
    candidates = [Measurement((1,), 0.1), Measurement((2, 3), 0.2)]
    end = choose(joint, path.x, path.given[:, -1], [0], candidates, seeded(1), policy=Policy(GainMinusCost(worth)))
    assert (end.candidate == -1).double().mean() > 0.9  # a panel's gain is drawn: near the line another draw may differ


def test_a_row_stops_when_its_target_is_certain_enough():
    joint = JointTable.random(2, 3, 2, 3, seed=3)
    _, truth, path = full_path(policy=Policy(certain=0.5))
    for row in range(len(truth)):
        steps = int((path.chosen[row] >= 0).sum())
        unsure = [
            uncertainty(joint, path.x[row : row + 1], path.given[row : row + 1, k], [0], seeded()).value.item() > 0.5
            for k in range(path.given.shape[1])
        ]
        assert all(unsure[:steps])
        assert steps == 2 or not unsure[steps]
    assert full_path(policy=Policy(certain=10.0))[2].chosen.shape[1] == 0
    assert full_path(policy=Policy(steps=1))[2].chosen.shape[1] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, StopReason.NOTHING_LEFT),
        ({"budget": 0.15}, StopReason.BUDGET),
        ({"policy": Policy(GainMinusCost(1e-6))}, StopReason.NOT_WORTH_IT),
        ({"policy": Policy(certain=10.0)}, StopReason.CERTAIN),
        ({"policy": Policy(steps=1)}, StopReason.STEPS),
    ],
)
def test_every_row_says_why_it_stopped(options, reason):
    _, truth, path = full_path(**options)
    assert path.stop.tolist() == [reason] * len(truth)


def test_rows_may_stop_for_different_reasons():
    joint, truth, path = full_path(policy=Policy(certain=0.5))
    for row in range(len(truth)):
        last = uncertainty(joint, path.x[row : row + 1], path.given[row : row + 1, -1], [0], seeded()).value.item()
        measured_all = int((path.chosen[row] >= 0).sum()) == 2
        assert path.stop[row] == (StopReason.NOTHING_LEFT if measured_all else StopReason.CERTAIN)
        assert measured_all or last <= 0.5
    assert len(path.stop.unique()) == 2


def test_an_oracle_may_be_asked_and_may_fail():
    joint, truth, path = full_path()
    asked = []

    def tell(rows, wanted):
        asked.append((rows, wanted))
        return torch.where(wanted, truth[rows], torch.nan)

    x, given = torch.full_like(truth, torch.nan), torch.zeros_like(truth, dtype=torch.bool)
    candidates = [Measurement((1,), 0.1), Measurement((2, 3), 0.2)]
    told = acquire(joint, x, given, [0], candidates, tell, seeded())
    assert torch.equal(told.chosen, path.chosen)
    assert torch.equal(told.given, path.given)
    assert told.log_prob.isnan().all()
    assert len(asked) == 2

    silent = acquire(joint, x, given, [0], candidates, lambda rows, wanted: torch.full(wanted.shape, torch.nan), seeded())
    assert silent.chosen.sort(-1).values.tolist() == [[0, 1]] * len(truth)  # paid for, once each
    assert not silent.given.any()
    with pytest.raises(InputError, match="The oracle returned shape"):
        acquire(joint, x, given, [0], candidates, lambda rows, wanted: torch.zeros(1, 1), seeded())


def test_what_is_a_gap_in_the_true_rows_is_not_measured():
    joint, truth, _ = full_path()
    truth = truth.clone()
    truth[0, 1], truth[1, 0], truth[2, 2] = torch.nan, torch.nan, torch.nan
    candidates = [Measurement((1,)), Measurement((2, 3))]
    path = acquire(joint, truth.nan_to_num(), torch.zeros_like(truth, dtype=torch.bool), [0], candidates, truth, seeded())
    assert path.chosen[0].tolist() == [1, -1]
    assert path.log_prob[1].isnan().all()
    assert not path.log_prob[[0, 2]].isnan().any()
    assert path.given[2, -1].tolist() == [False, True, False, True]


def test_rows_need_not_be_there():
    joint = JointTable.random(2, 2)
    path = acquire(joint, *unknown(0, 2), [0], one_by_one([1]), torch.zeros(0, 2), seeded())
    assert path.chosen.shape == (0, 0)
    assert path.log_prob.shape == (0, 1)


@pytest.mark.parametrize("cost", [-1.0, math.inf, math.nan])
def test_a_price_is_a_finite_number(cost):
    with pytest.raises(InputError, match="expected a finite number, 0 or more"):
        Measurement((1,), cost)


def test_bad_input_is_refused():
    joint, (x, given) = JointTable.random(2, 2, 2), unknown(2, 3)
    candidates = one_by_one([1, 2])
    with pytest.raises(InputError, match=r"no price for the variables \[2\]"):
        one_by_one([1, 2], costs={1: 2.0})
    with pytest.raises(InputError, match=r"worth=0\.0; expected a positive price"):
        GainMinusCost(0.0)
    with pytest.raises(InputError, match="ahead=0; expected at least 1"):
        Policy(ahead=0)
    for budget in (-1.0, math.nan, torch.tensor([1.0, 2.0, 3.0])):
        with pytest.raises(InputError, match="The budget is"):
            choose(joint, x, given, [0], candidates, seeded(), budget=budget)
    with pytest.raises(InputError, match="nothing to choose from"):
        choose(joint, x, given, [0], [], seeded())
    with pytest.raises(InputError, match="contains the target 'v1'"):
        acquire(joint, x, given, [1], candidates, x, seeded())
    with pytest.raises(InputError, match="already known in row 0"):
        acquire(joint, x, ~given, [0], candidates, x, seeded())
    with pytest.raises(InputError, match="The oracle has shape"):
        acquire(joint, x, given, [0], candidates, x[:1], seeded())
    with pytest.raises(InputError, match="`allowed` is"):
        choose(joint, x, given, [0], candidates, seeded(), allowed=torch.ones(2, 3, dtype=torch.bool))


def test_too_many_sets_are_refused():
    joint = JointTable(torch.ones([2] * 8))
    with pytest.raises(InputError, match="Look less far ahead"):
        choose(joint, *unknown(1, 8), [0], one_by_one(list(range(1, 8)) * 6), seeded(), policy=Policy(ahead=4))
