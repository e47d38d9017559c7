"""The inner loops of text compiled by numba; imported only if it is installed. Each has an equal twin in numpy."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

Array = Any  # of numpy
F = TypeVar("F", bound=Callable[..., Any])


def loop(function: F) -> F:
    """Compiled when it is first called, and kept on disk."""
    compiled: Any = njit(cache=True, nogil=True)(unwrap(function))  # tests wrap every function to check its types
    return cast(F, compiled)


@loop
def find(start: Array, symbol: Array, state: int, wanted: int) -> int:
    """Where a pair stands; -1 if it was never seen."""
    low, end = start[state], start[state + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if symbol[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and symbol[low] == wanted else -1


@loop
def step(
    start: Array,
    symbol: Array,
    final: Array,
    lower: Array,
    target: Array,
    back: Array,
    back_lower: Array,
    parent: Array,
    states: Array,
    symbols: Array,
    choices: int,
    out: Array,
    after: Array,
) -> None:
    """The twin of `Automaton._step`."""
    for i in range(len(states)):
        state, wanted, weight, first = states[i], symbols[i], 1.0, True
        while True:
            place = find(start, symbol, state, wanted)
            if place >= 0:
                out[i], after[i] = weight * (final[place] if first else lower[place]), target[place]
                break
            weight *= back[state] if first else back_lower[state]
            if state == 0:
                out[i], after[i] = weight / choices, 0
                break
            state, first = parent[state], False


@loop
def rows(
    start: Array,
    symbol: Array,
    final: Array,
    lower: Array,
    target: Array,
    back: Array,
    back_lower: Array,
    parent: Array,
    dense_final: Array,
    dense_lower: Array,
    dense_target: Array,
    states: Array,
    out: Array,
    after: Array,
) -> None:
    """The twin of `Automaton._rows`."""
    dense, levels = dense_final.shape
    chain = np.empty(300, np.int64)
    for i in range(len(states)):
        depth, state = 0, np.int64(states[i])
        while state >= dense:
            chain[depth] = state
            depth += 1
            state = np.int64(parent[state])
        for y in range(levels):
            out[i, y] = dense_final[state, y] if depth == 0 else dense_lower[state, y]
            after[i, y] = dense_target[state, y]
        for d in range(depth - 1, -1, -1):
            here = chain[d]
            share = back[here] if d == 0 else back_lower[here]
            for y in range(levels):
                out[i, y] *= share
            for place in range(start[here], start[here + 1]):
                out[i, symbol[place]] = final[place] if d == 0 else lower[place]
                after[i, symbol[place]] = target[place]


@loop
def distinct(numbers: Array, slots: Array, found: Array, inverse: Array) -> int:
    """How many different numbers there are; which, in order of appearance, and which of them each is. `slots` are -1."""
    count, mask = 0, len(slots) - 1
    for i in range(len(numbers)):
        place = (numbers[i] * 2654435761 >> 7) & mask
        while slots[place] >= 0 and found[slots[place]] != numbers[i]:
            place = (place + 1) & mask
        if slots[place] < 0:
            slots[place] = count
            found[count] = numbers[i]
            count += 1
        inverse[i] = slots[place]
    return count
