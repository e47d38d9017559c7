"""MAC's Table 7, exactly: the enumerated objectives have its entropies and counts, and the samplers follow the
enumerated objectives.
"""

import pytest
import torch
from bench.mac_table7 import COLUMNS, ROWS, code, entropy, exact_objectives, members, sampled_objectives

ENTROPIES = {"M": 7.212, "w-RND": 5.745, "w-MAC": 4.439, "w-MAC, reweighted": 5.521}
COUNTS = {  # per million, rows as in the paper; its own 433 for w-RND of the last row is 6 sigma off
    "M": (1263, 6944, 379, 1263, 6944),
    "w-RND": (220, 14606, 481, 2024, 579),
    "w-MAC": (631, 76389, 0, 526, 6944),
    "w-MAC, reweighted": (1852, 40741, 0, 421, 22222),
}


@pytest.fixture(scope="module")
def exact():
    return exact_objectives()


@pytest.mark.parametrize("name", COLUMNS)
def test_the_exact_laws_have_the_known_entropies_and_counts(exact, name):
    objective = exact[name]
    assert sum(objective.values()) == 1
    assert entropy([float(p) for p in objective.values()]) == pytest.approx(ENTROPIES[name], abs=5e-4)
    assert tuple(round(1e6 * float(objective.get(members(row), 0))) for row in ROWS) == COUNTS[name]


def test_the_samplers_follow_the_exact_laws(exact):
    """By the chi-square statistic over all masks that are expected at least five times."""
    draws = 400_000
    for name, counts in sampled_objectives(draws, seed=1).items():
        expected = torch.zeros(4096, dtype=torch.float64)
        for mask, p in exact[name].items():
            expected[code(mask)] = draws * float(p)
        often = expected >= 5
        assert counts[expected == 0].sum() == 0
        statistic = ((counts[often] - expected[often]) ** 2 / expected[often]).sum()
        freedom = often.sum() - 1
        assert statistic < freedom + 5 * (2 * freedom) ** 0.5, name
