"""Learning a model that cannot pay for its place in an archive ends early, and others are not disturbed."""

import numpy as np
import pytest

from anyorder.archives.archive import Goal, HopelessError
from anyorder.modalities.tables.codec.table_archives import csv_source
from anyorder.training import Check


def check(step, nats):
    return Check(step, 1000, nats, nats, nats, 0.0)


def test_a_goal_that_is_out_of_reach_ends_it_with_a_word():
    """80 nats for 1000 items are 14,427 bytes; at the pace of one nat in 100 steps, taken twice, 14 nats more are gained."""
    for most, hopeless in ((11_000, True), (12_000, False)):
        told = []
        goal = Goal(most, 1000, told.append)
        goal(check(200, 81.0))
        if hopeless:
            with (
                pytest.warns(UserWarning, match="stopped early: the archive is smaller without one"),
                pytest.raises(HopelessError),
            ):
                goal(check(300, 80.0))
        else:
            goal(check(300, 80.0))
        assert [one.step for one in told] == [200, 300]


def test_nothing_is_judged_at_once_and_stages_add_up():
    goal = Goal(10, 1000)
    goal(check(100, 80.0))
    goal(check(200, 80.0))  # before a quarter of the way
    goal = Goal(16_000, 1000)
    for stage in (0, 1):
        goal(check(900, 45.0), stage)
        if stage == 0:
            goal(check(1000, 45.0), stage)
    with pytest.warns(UserWarning, match="stopped early"), pytest.raises(HopelessError):
        goal(check(1000, 45.0), 1)


def test_noise_is_not_learned_to_the_end():
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a},{b}" for a, b in rng.integers(0, 100, (3000, 2)))
    source, steps = csv_source(f"a,b\n{rows}\n".encode()), []
    with pytest.warns(UserWarning, match="stopped early"):
        assert source.own_codec(9000, 0.2, lambda done, of: steps.append((done, of))) is None
    assert steps[-1][0] < steps[-1][1]
