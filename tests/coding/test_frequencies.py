"""Distributions as whole numbers: exact sums, no zero, and what the heads say in floating point."""

import math
import zlib

import numpy as np
import pytest
import torch

from anyorder.archives.codecs import coded
from anyorder.coding import Coder, frequencies
from anyorder.coding.frequencies import TOTAL, edges, starts
from anyorder.distributions import Bernoulli, Categorical, ColourMixture, LogisticMixture
from integer_distributions import LAWS, LEAST


@pytest.mark.parametrize("name", LAWS)
def test_every_symbol_has_a_share_and_all_add_up(name):
    distribution = LAWS[name]()
    below = np.stack([distribution.below(np.full(50, symbol)) for symbol in range(distribution.size + 1)])
    assert (below[0] == 0).all()
    assert (below[-1] == TOTAL).all()
    assert (np.diff(below, axis=0) >= 1).all()


def test_tables_are_the_functions_they_are_named_after():
    z = (np.arange(len(frequencies.sigmoid())) - len(frequencies.sigmoid()) // 2) / 2**frequencies.ARGUMENT
    assert np.abs(frequencies.sigmoid() / 2**frequencies.SHARE - 1 / (1 + np.exp(-z))).max() < 2 / 2**frequencies.SHARE
    d = np.arange(len(frequencies.exponential())) / 2**frequencies.COARSE_BITS
    assert np.abs(frequencies.exponential() / 2**frequencies.WEIGHT - np.exp(-d)).max() < 1 / 2**frequencies.WEIGHT
    raw = (np.arange(len(frequencies.steepness_table(LEAST))) + 0.5) / 2**frequencies.COARSE_BITS - frequencies.LARGEST_ARGUMENT
    expected = 2**frequencies.STEEP / (0.001 + np.log1p(np.exp(raw - 1)))
    assert np.abs(frequencies.steepness_table(LEAST) / expected - 1).max() < 3e-4  # whole numbers, some of them small


def test_tables_never_change():
    """Archives are read with them for ever."""
    known = {
        "sigmoid": 3168508804,
        "exponential": 2866013449,
        "steepness": 3307405884,
        "edges": 2091863133,
        "starts": 1844891904,
    }
    found = {
        "sigmoid": zlib.crc32(frequencies.sigmoid().astype("<i8").tobytes()),
        "exponential": zlib.crc32(frequencies.exponential().astype("<i8").tobytes()),
        "steepness": zlib.crc32(frequencies.steepness_table(LEAST).astype("<i8").tobytes()),
        "edges": zlib.crc32(edges(256).astype("<i8").tobytes()),
        "starts": zlib.crc32(starts(5).astype("<i8").tobytes()),
    }
    assert found == known


class Counting(Coder):
    """A coder that only adds up what symbols cost."""

    def __init__(self):
        self.bits = 0.0

    def __call__(self, distribution, symbols):
        share = (distribution.below(symbols + 1) - distribution.below(symbols)) / TOTAL
        self.bits -= np.log2(share)
        return symbols

    def _bits(self, wanted, chance):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("head", "levels"),
    [
        (Bernoulli(), 2),
        (Categorical(6), 6),
        (LogisticMixture(256, 5), 256),
        (LogisticMixture(17, 1), 17),
        (ColourMixture(16, 4), 16**3),
    ],
    ids=["bernoulli", "categorical", "shades", "one component", "colours"],
)
def test_symbols_cost_what_the_heads_say(head, levels):
    """The integer distribution next to the distribution in floating point that was trained."""
    rng = np.random.default_rng(1)
    said = torch.from_numpy(rng.integers(-2500, 2500, (2000, head.width)) / 1024)
    symbols = head(said).sample(torch.Generator().manual_seed(0)).long().numpy()
    coder = Counting()
    assert (coded(coder, head, said, symbols) == symbols).all()
    nats = -head(said).log_prob(torch.from_numpy(symbols).double()).numpy()
    assert coder.bits.mean() == pytest.approx(nats.mean() / math.log(2), rel=5e-3)
    assert np.abs(coder.bits - nats / math.log(2)).mean() < 0.02
