"""A toy arm whose best answer is known: what it is about to do is not in the state, but any of its joints shows it.

The state is where two things lie; the arm goes for one of them, and nobody but its joints tells for which. So p(the other
joints | state) has two peaks, and p(the other joints | state, one joint) has one: they differ by log 2, the information that a
joint has about the intent.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

JOINTS = 4
NOISE = 0.05


class Demonstrations(NamedTuple):
    states: NDArray[np.float32]
    actions: NDArray[np.float32]
    episodes: NDArray[np.int32]
    intents: NDArray[np.int64]


def demonstrations(episodes: int = 200, steps: int = 20, seed: int = 0) -> Demonstrations:
    """Each episode has one intent; the last joint never moves."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(episodes), steps)
    states = rng.uniform(-1, 1, (len(number), 2))
    intents = rng.integers(0, 2, episodes)[number]
    return Demonstrations(
        states.astype(np.float32), joints(states, intents, rng).astype(np.float32), number.astype(np.int32), intents
    )


def joints(states: NDArray[np.float64], intents: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """What all joints do: towards the first thing or the second, a little unsteadily."""
    side = 2 * intents - 1
    wanted = np.stack([side + 0.3 * states[:, 0], 0.5 * side - 0.2 * states[:, 1], -side + 0.1 * states.sum(-1)], axis=-1)
    moving = wanted + NOISE * rng.standard_normal(wanted.shape)
    return np.concatenate([moving, np.full((len(states), 1), -1.0)], axis=-1)
