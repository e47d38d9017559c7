"""Rubin's rules against a direct computation, and against what they promise: an interval that covers."""

import math

import numpy as np
import pytest

from anyorder.errors import InputError
from anyorder.modalities.tables.rubin import pool


def test_the_formulas():
    found = pool([1.0, 1.4, 0.6, 1.2], [0.04, 0.05, 0.03, 0.04])
    between = 1.25 * np.var([1.0, 1.4, 0.6, 1.2], ddof=1)
    assert found.estimate == pytest.approx(1.05)
    assert found.standard_error == pytest.approx(math.sqrt(0.04 + between))
    assert found.degrees == pytest.approx(3 * (1 + 0.04 / between) ** 2)
    assert found.missing_share == pytest.approx(between / (0.04 + between))


def test_no_gaps_leave_the_plain_interval():
    low, high = pool([2.0, 2.0], [0.25, 0.25]).interval(0.95)
    assert (low, high) == pytest.approx((2 - 1.959964 * 0.5, 2 + 1.959964 * 0.5))


def test_intervals_cover_a_mean_estimated_through_gaps():
    """Half the values of a sample are missing and drawn anew from the posterior of a normal distribution with known variance."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        seen = rng.normal(0, 1, 50)
        tables = [np.concatenate([seen, rng.normal(rng.normal(seen.mean(), 50**-0.5), 1, 50)]) for _ in range(10)]
        low, high = pool([t.mean() for t in tables], [1 / 100] * 10).interval(0.9)
        inside += low <= 0 <= high
    assert 0.86 <= inside / 400 <= 0.94


@pytest.mark.parametrize(
    ("estimates", "variances"), [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, 2.0], [1.0, -1.0]), ([1.0, math.nan], [1.0, 1.0])]
)
def test_nonsense_is_refused(estimates, variances):
    with pytest.raises(InputError, match="pool got"):
        pool(estimates, variances)
