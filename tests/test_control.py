"""Shared autonomy on a toy arm whose answers are known; the simulators are in bench/shared_autonomy.py."""

import math
import time

import numpy as np
import pytest
from examples.control.arm import JOINTS, NOISE, demonstrations, joints
from examples.control.policy import Policy

from anyorder.errors import InputError


@pytest.fixture(scope="module")
def policy():
    states, actions, episodes, _ = demonstrations()
    return Policy.fit(states, actions, episodes, operator=(0,), steps=600)


NEW = demonstrations(40, seed=1)


def test_a_known_joint_tells_the_intent(policy):
    """E[log p(others | state, joint) - log p(others | state)] is the information of the joint: log 2 here."""
    with_joint = policy.log_p(NEW.states, NEW.actions, [0])
    alone = policy.log_p(NEW.states, NEW.actions, [], target=[1, 2])
    assert abs((with_joint - alone).mean() - math.log(2)) < 0.1
    best = -2 * (math.log(NOISE) + 0.5 * math.log(2 * math.pi) + 0.5)  # of two joints, by their noise
    assert best - 0.8 < with_joint.mean() < best + 0.1


@pytest.mark.parametrize("known", [(0,), (1,), (2,), (0, 2), (0, 1, 3)])
def test_any_joints_may_be_the_operators(policy, known):
    filled = policy.fill_all(NEW.states, {dim: NEW.actions[:, dim] for dim in known})
    truth = joints(NEW.states.astype(float), NEW.intents, np.random.default_rng(0)) + 0.0
    np.testing.assert_array_equal(filled[:, list(known)], NEW.actions[:, list(known)])
    assert np.abs(filled - truth)[:, :3].mean() < 4 * NOISE


def test_without_an_operator_the_mean_lies_between_and_draws_do_not(policy):
    mean = policy.fill(NEW.states[0], {})
    assert abs(mean[0]) < 0.6
    draws = policy.fill(NEW.states[0], {}, draws=200)
    assert draws.shape == (200, JOINTS)
    assert (np.abs(draws[:, 0]) > 0.5).mean() > 0.95
    assert 0.3 < (draws[:, 0] > 0).mean() < 0.7
    assert ((draws[:, 0] > 0) == (draws[:, 2] < 0)).mean() > 0.95  # drawn together


def test_what_never_moves_stays(policy):
    assert (policy.fill_all(NEW.states, {}) == -1)[:, 3].all()
    with pytest.raises(InputError, match="There is no action dimension 7; expected 0 to 3"):
        policy.fill(NEW.states[0], {7: 0.0})


def test_an_answer_is_one_call_of_the_model(policy, monkeypatch):
    calls = []
    forward = type(policy.model).forward
    monkeypatch.setattr(type(policy.model), "forward", lambda *a, **k: (calls.append(1), forward(*a, **k))[1])
    start = time.perf_counter()
    policy.fill(NEW.states[0], {0: 1.0})
    assert len(calls) == 1
    assert time.perf_counter() - start < 1
