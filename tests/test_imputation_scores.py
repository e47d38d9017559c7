"""The energy I-score: equal to its closed form, whatever the number of draws, and least for the true conditional distribution."""

from itertools import product

import numpy as np
import pytest
from bench.imputation_scores import HiddenColumn, category_energy, crps, energy_iscore


def test_of_two_points_is_the_closed_form_on_average():
    """X is 1 with chance p: E|X - y| - E|X - X'| / 2 is p^2 if y is 0, and (1 - p)^2 if y is 1."""
    p, draws = 0.3, np.array(list(product([0.0, 1.0], repeat=4))).T
    chances = np.prod(np.where(draws == 1, p, 1 - p), axis=0)
    for truth, exact in ((0.0, p**2), (1.0, (1 - p) ** 2)):
        assert (chances * crps(draws, np.full(16, truth))).sum() == pytest.approx(exact)


def test_of_categories_is_the_closed_form_on_average():
    """Corners of the unit cube: the root of 2 times (1 - p_y - (1 - sum of p^2) / 2)."""
    p, draws = np.array([0.5, 0.3, 0.2]), np.array(list(product(range(3), repeat=3)), dtype=float).T
    chances = np.prod(p[draws.astype(int)], axis=0)
    for truth in range(3):
        exact = np.sqrt(2) * (1 - p[truth] - (1 - (p**2).sum()) / 2)
        assert (chances * category_energy(draws, np.full(27, float(truth)))).sum() == pytest.approx(exact)


def test_one_draw_is_its_distance():
    assert crps(np.array([[3.0]]), np.array([1.0])) == pytest.approx([2.0])
    assert category_energy(np.array([[1.0, 2.0]]), np.array([1.0, 0.0])) == pytest.approx([0.0, np.sqrt(2)])


def test_the_true_conditional_is_best():
    """Of normal numbers with the correlation r: its score is sqrt((1 - r^2) / pi), that of the marginal 1 / sqrt(pi)."""
    rng, rows, r = np.random.default_rng(0), 20_000, 0.8
    known = rng.normal(size=rows)
    truth = r * known + np.sqrt(1 - r**2) * rng.normal(size=rows)
    noise = rng.normal(size=(20, rows))
    conditional, marginal = r * known + np.sqrt(1 - r**2) * noise, noise

    def scored(draws):
        return energy_iscore([HiddenColumn(10 * truth, 10 * draws, scale=10.0, missing=0.2)])

    assert scored(conditional) == pytest.approx(np.sqrt((1 - r**2) / np.pi), rel=0.02)
    assert scored(marginal) == pytest.approx(1 / np.sqrt(np.pi), rel=0.02)
    others = [marginal, conditional + 0.3, r * known + 0.3 * noise, r * known + 0.9 * noise, (r * known)[None]]
    assert all(scored(other) > scored(conditional) for other in others)


def test_columns_weigh_by_missing_times_observed():
    numbers = HiddenColumn(np.zeros(3), np.ones((1, 3)), scale=1.0, missing=0.5)  # 1 apart
    hits = HiddenColumn(np.ones(3), np.ones((1, 3)), scale=0.0, missing=0.1)
    assert energy_iscore([numbers, hits]) == pytest.approx(0.25 / (0.25 + 0.09))
