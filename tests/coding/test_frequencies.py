"""Laws as whole numbers: exact sums, no zero, and what the heads say in floating point."""

import math
import zlib

import numpy as np
import pytest
import torch

from anyorder.codecs.laws import coded
from anyorder.coding import Coder, tables
from anyorder.coding.frequencies import TOTAL, edges, starts
from anyorder.heads import Bernoulli, Categorical, ColourMixture, LogisticMixture
from integer_laws import LAWS, LEAST


@pytest.mark.parametrize("name", LAWS)
def test_every_symbol_has_a_share_and_all_add_up(name):
    law = LAWS[name]()
    below = np.stack([law.below(np.full(50, symbol)) for symbol in range(law.size + 1)])
    assert (below[0] == 0).all()
    assert (below[-1] == TOTAL).all()
    assert (np.diff(below, axis=0) >= 1).all()


def test_tables_are_the_functions_they_are_named_after():
    z = (np.arange(len(tables.sigmoid())) - len(tables.sigmoid()) // 2) / 2**tables.ARGUMENT
    assert np.abs(tables.sigmoid() / 2**tables.SHARE - 1 / (1 + np.exp(-z))).max() < 2 / 2**tables.SHARE
    d = np.arange(len(tables.exponential())) / 2**tables.COARSE
    assert np.abs(tables.exponential() / 2**tables.WEIGHT - np.exp(-d)).max() < 1 / 2**tables.WEIGHT
    raw = (np.arange(len(tables.steepness(LEAST))) + 0.5) / 2**tables.COARSE - tables.MOST
    expected = 2**tables.STEEP / (0.001 + np.log1p(np.exp(raw - 1)))
    assert np.abs(tables.steepness(LEAST) / expected - 1).max() < 3e-4  # whole numbers, some of them small


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
        "sigmoid": zlib.crc32(tables.sigmoid().astype("<i8").tobytes()),
        "exponential": zlib.crc32(tables.exponential().astype("<i8").tobytes()),
        "steepness": zlib.crc32(tables.steepness(LEAST).astype("<i8").tobytes()),
        "edges": zlib.crc32(edges(256).astype("<i8").tobytes()),
        "starts": zlib.crc32(starts(5).astype("<i8").tobytes()),
    }
    assert found == known


class Counting(Coder):
    """A coder that only adds up what symbols cost."""

    def __init__(self):
        self.bits = 0.0

    def __call__(self, law, symbols):
        share = (law.below(symbols + 1) - law.below(symbols)) / TOTAL
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
    """The integer law next to the law in floating point that was trained."""
    rng = np.random.default_rng(1)
    said = torch.from_numpy(rng.integers(-2500, 2500, (2000, head.width)) / 1024)
    symbols = head(said).sample(torch.Generator().manual_seed(0)).long().numpy()
    coder = Counting()
    assert (coded(coder, head, said, symbols) == symbols).all()
    nats = -head(said).log_prob(torch.from_numpy(symbols).double()).numpy()
    assert coder.bits.mean() == pytest.approx(nats.mean() / math.log(2), rel=5e-3)
    assert np.abs(coder.bits - nats / math.log(2)).mean() < 0.02
