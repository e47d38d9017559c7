"""Bits: what was coded is decoded, whatever the distribution, and costs what the distribution says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.coding import Decoder, Encoder, Uniform
from anyorder.coding.frequencies import TOTAL
from anyorder.errors import FormatError
from integer_distributions import LAWS


@pytest.mark.parametrize("name", LAWS)
def test_every_symbol_comes_back(name):
    distribution, rng = LAWS[name](), np.random.default_rng(0)
    several = [rng.integers(0, distribution.size, 50) for _ in range(5)] + [np.zeros(50, int), np.full(50, distribution.size - 1)]
    encoder = Encoder()
    for symbols in several:
        assert (encoder(distribution, symbols) == symbols).all()
    decoder = Decoder(encoder.content())
    for symbols in several:
        assert (decoder(distribution, np.zeros(50, int)) == symbols).all()


def drawn(distribution, rng):
    """Symbols as frequent as the distribution says."""
    below = np.stack([distribution.below(np.full(50, symbol)) for symbol in range(distribution.size)], -1)
    return (below <= rng.integers(0, TOTAL, (50, 1))).sum(-1) - 1


@pytest.mark.parametrize("name", LAWS)
def test_bits_are_those_of_the_law(name):
    distribution, rng = LAWS[name](), np.random.default_rng(0)
    encoder, expected = Encoder(), 0.0
    for _ in range(100):
        symbols = drawn(distribution, rng)
        encoder(distribution, symbols)
        expected -= np.log2((distribution.below(symbols + 1) - distribution.below(symbols)) / TOTAL).sum()
    assert 8 * len(encoder.content()) == pytest.approx(expected, rel=1e-3, abs=64)


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 63)), max_size=20))
def test_plain_numbers_come_back(pairs):
    bits = np.array([bits for _, bits in pairs], dtype=np.int64)
    numbers = np.array([number % 2**bits for number, bits in pairs], dtype=np.int64)
    encoder = Encoder()
    encoder.plain(numbers, bits)
    np.testing.assert_array_equal(Decoder(encoder.content()).plain(np.zeros_like(numbers), bits), numbers)


@given(st.lists(st.tuples(st.integers(0, 2**62 - 1), st.integers(1, 2**62)), max_size=20))
def test_numbers_below_their_sizes_come_back(pairs):
    sizes = np.array([size for _, size in pairs], dtype=np.int64)
    numbers = np.array([number % size for number, size in pairs], dtype=np.int64)
    encoder = Encoder()
    encoder.evenly(numbers, sizes)
    np.testing.assert_array_equal(Decoder(encoder.content()).evenly(np.zeros_like(numbers), sizes), numbers)


@pytest.mark.parametrize("size", [1, 3, 1000, 2**16 + 1, 10**6, 3 * 2**40])
def test_even_numbers_cost_the_logarithm_of_their_size(size):
    numbers = np.random.default_rng(0).integers(0, size, 4000)
    encoder = Encoder()
    encoder.evenly(numbers, np.full(4000, size))
    assert 8 * len(encoder.content()) == pytest.approx(4000 * np.log2(size), rel=1e-3, abs=64)


@given(st.lists(st.integers(-(2**62) + 1, 2**62 - 1), max_size=20))
def test_signed_numbers_come_back(numbers):
    encoder, numbers = Encoder(), np.array(numbers, dtype=np.int64)
    encoder.signed(numbers)
    np.testing.assert_array_equal(Decoder(encoder.content()).signed(np.zeros_like(numbers)), numbers)


def test_nothing_costs_nothing():
    encoder = Encoder()
    encoder(Uniform(5), np.zeros(0, int))
    assert len(encoder.content()) == 0


def test_streams_are_whole_words():
    with pytest.raises(FormatError, match="multiple of 4"):
        Decoder(b"abc")
