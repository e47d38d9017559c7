"""Distributions as whole numbers, one of every kind, fifty cells each."""

from decimal import Decimal

import numpy as np

from anyorder.coding import Binary, Scored, Uniform, shades

LEAST = Decimal("0.001")


def numbers(width, cells=50, spread=4000, seed=0):
    return np.random.default_rng(seed).integers(-spread, spread, (cells, width))


LAWS = {
    "even": lambda: Uniform(7),
    "binary": lambda: Binary(numbers(1)[:, 0]),
    "scored": lambda: Scored(numbers(5)),
    "one score": lambda: Scored(numbers(1)),
    "extreme scores": lambda: Scored(numbers(5, spread=30_000)),
    "shades": lambda: shades(*np.split(numbers(15), 3, -1), 256, LEAST),
    "two shades": lambda: shades(*np.split(numbers(15), 3, -1), 2, LEAST),
    "extreme shades": lambda: shades(*np.split(numbers(15, spread=32_000), 3, -1), 17, LEAST),
    "one component": lambda: shades(*np.split(numbers(3), 3, -1), 256, LEAST),
}
