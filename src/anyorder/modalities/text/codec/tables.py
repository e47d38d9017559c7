"""Tables of whole numbers that the model looks things up in; made without floating point, the same on every machine.

Probabilities are 16-bit numbers, of 65536 that the next bit is a one. Where they are mixed they are logits, in 1/256:
ln(p / (1 - p)) * 256.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

UNIT = 256  # of a logit
LOGIT_MOST = 2047  # of what goes into the mixer: 8 * 256
MIXED_MOST = 2815  # of what comes out of it: 11 * 256
EXACT = 96  # binary places while the exponentials are computed

HISTORY = 4  # bits of a history that are kept as they came
COUNTED = (41, 30, 12, 7, 6, 5)  # how often the commoner bit is counted when the rarer one was seen 0, 1, 2 ... times


def exponentials(most: int) -> list[int]:
    """e^(k / UNIT) for k from 0 to most, in 1 / 2^EXACT, by the series for the first one and products from there."""
    one, term, first = 1 << EXACT, 1 << EXACT, 0
    for k in range(1, 30):
        first += term
        term = term // UNIT // k
    found = [one]
    for _ in range(most):
        found.append(found[-1] * first >> EXACT)
    return found


@cache
def squash() -> NDArray[np.int32]:
    """The 16-bit probability of every logit from -MIXED_MOST to MIXED_MOST."""
    above = [(power << 16) // (power + (1 << EXACT)) for power in exponentials(MIXED_MOST)]
    both = [65536 - p for p in reversed(above[1:])] + above
    return np.clip(np.array(both, dtype=np.int32), 1, 65535)


@cache
def stretch() -> NDArray[np.int32]:
    """The logit of every 12-bit probability: the smallest whose probability is not below the middle of its step."""
    logits = np.searchsorted(squash(), np.arange(4096) * 16 + 8) - MIXED_MOST
    return np.clip(logits, -LOGIT_MOST, LOGIT_MOST).astype(np.int32)


History = tuple[int, ...]  # (bits of a short history as they came) or (zeros, ones, last bit, 0, 0) of a longer one


def counted(zeros: int, ones: int, last: int) -> History:
    """A long history, its counts cut to those that are told apart."""
    rare, common = min(zeros, ones), max(zeros, ones)
    rare = min(rare, len(COUNTED) - 1)
    common = max(rare, min(common, COUNTED[rare]))
    pair = (rare, common) if zeros <= ones else (common, rare)
    return (*pair, last, 0, 0)


def counts(history: History) -> tuple[int, int]:
    if len(history) > HISTORY:
        return history[0], history[1]
    return len(history) - sum(history), sum(history)


def after(history: History, bit: int) -> History:
    """The history after one more bit: what was seen of the other bit is half forgotten."""
    if len(history) < HISTORY:
        return (*history, bit)
    seen = list(counts(history))
    seen[bit] += 1
    if seen[1 - bit] > 2:
        seen[1 - bit] = 2 + (seen[1 - bit] - 2) // 2
    return counted(seen[0], seen[1], bit)


@cache
def histories() -> tuple[tuple[History, ...], tuple[int, ...]]:
    """Every history that is told apart, and the numbers of those that follow it: [2 * number + bit]."""
    number, order = dict[History, int]({(): 0}), list[History]([()])
    follow = list[int]()
    for history in order:  # which grows
        for bit in (0, 1):
            new = after(history, bit)
            if new not in number:
                number[new] = len(order)
                order.append(new)
            follow.append(number[new])
    return tuple(order), tuple(follow)


@cache
def following() -> NDArray[np.int16]:
    return np.array(histories()[1] + (0,) * (512 - len(histories()[1])), dtype=np.int16)


@cache
def beginnings() -> NDArray[np.int32]:
    """The 22-bit probability of a one after every history, before any was met: one more of each was seen, half a time."""
    first = [((2 * ones + 1) << 22) // (2 * (zeros + ones) + 2) for zeros, ones in map(counts, histories()[0])]
    return np.array(first + [0] * (256 - len(first)), dtype=np.int32)
