"""The next symbol given those before it: contexts of any length up to a longest, each falling back on the next shorter one."""

from collections.abc import Sequence
from functools import cache
from typing import Any, final

import numpy as np
from jaxtyping import Float64, Int, Int32, Shaped, UInt8
from numpy.typing import NDArray

from .text_counts import Table, bits_of, without_first

ROOT = 0  # the state in which nothing is known of what came before
DENSE_CELLS = 2**21  # (state, symbol) pairs of the shortest contexts that are kept as whole rows
RAW_SCALE, LOWER_SCALE = 1.4, 1.1  # of the discounts; tuned on text8's validation part, as the next two
END_PRIOR = 1.0  # occurrences of a context for which the share of ends of its suffix counts
LOWER_SHARE, OFTEN = 0.8, 20.0  # the share of the lower distribution, half of it where symbols occur 20 times a neighbour
Symbols = UInt8[np.ndarray, " place"]
States = Int[np.ndarray, "*states"]


@cache
def compiled() -> Any:
    """The inner loops compiled, or None where numba is not installed: what they do, numpy does slower."""
    try:
        from . import text_numba
    except ImportError:
        return None
    return text_numba


@final
class Automaton:
    r"""A state is a context that occurred often enough; :math:`p(y \mid s)` is interpolated with that of its suffix.

    .. math:: p(y \mid s) = \frac{\max(c(sy) - D, 0)}{N_s} + b_s \, p_\text{lower}(y \mid \text{suffix of } s)

    Modified Kneser-Ney: :math:`p_\text{lower}` counts in how many contexts a string occurs, and the last distribution is half
    that and half what the counts themselves say. Only pairs that were seen are stored; others are looked up in the suffix.

    The symbol that ends documents is not smoothed like that: it follows many contexts, each of them seldom, which Kneser-Ney
    takes for a sign that it fits anywhere. Whether a document ends is decided first, and then which other symbol follows:

    .. math:: p(\text{end} \mid s) = \frac{c(s\,\text{end}) + p(\text{end} \mid \text{suffix of } s)}{c(s) + 1}

    That rests on how often it was seen: a context without an end has less of it than its suffix.

    Reference: Chen and Goodman, An Empirical Study of Smoothing Techniques for Language Modeling (1999).
    """

    def __init__(self, tables: Sequence[Table], levels: int, fewest: int, end: int | None = None) -> None:
        self.levels, self.order = levels, len(tables) - 1  # the longest context
        self.end, self.choices = end, levels - (end is not None)  # what ends documents, and how many others there are
        contexts = number_contexts(tables, levels, fewest)
        self.parent, self.length = contexts.parent, contexts.length
        self.last, self.last_but_one = contexts.last, contexts.last_but_one
        count = len(self.parent)
        pairs_of = [np.zeros(0, np.int64)] * (len(tables) + 1)  # where the pair of every string stands, by length
        sizes = []
        owners, symbols, finals, lowers, targets = (list[NDArray[Any]]() for _ in range(5))
        self.back, self.back_lower = np.ones(count, np.float32), np.ones(count, np.float32)
        self.ends = np.full(count, 1.0 / levels)  # p(end | state)
        bits, filled = bits_of(levels), 0
        for length, table in enumerate(tables, 1):
            prefix = tables[length - 2].find(table.keys >> np.uint64(bits)) if length > 1 else np.zeros(len(table.keys), int)
            owner = contexts.number[length - 1][prefix]
            mine = np.flatnonzero(owner >= 0)
            suffix = tables[length - 2].find(without_first(table.keys[mine], length, bits)) if length > 1 else mine
            pairs_of[length] = np.full(len(table.keys), -1, np.int64)
            pairs_of[length][mine] = filled + np.arange(len(mine))
            owner, own = owner[mine], contexts.number[length][mine]
            symbol = (table.keys[mine] & np.uint64((1 << bits) - 1)).astype(np.uint8)
            other: Any = 1 if end is None else symbol != end
            below = pairs_of[length - 1][suffix] if length > 1 else mine
            under: NDArray[Any]
            fallback: NDArray[Any]
            if length == 1:
                under, fallback = np.full(len(mine), 1.0 / self.choices) * other, np.zeros(len(mine), np.int64)
            else:
                under, fallback = np.concatenate(lowers)[below], np.concatenate(targets)[below]
            self._count_ends(owner, table.counts[mine], symbol, length - 1)
            raw = table.counts[mine] * other
            spread = left_neighbours(tables, length, bits)[mine] * other if length < len(tables) else raw
            parts = Interpolation(owner, count, under)
            top = length == len(tables)
            plain, back = parts.of(raw, LOWER_SCALE if top else RAW_SCALE)
            lower, back_lower = (plain, back) if top else parts.of(spread, LOWER_SCALE if length == 1 else 1.0)
            totals = [np.bincount(owner, counts, count) for counts in (raw, spread)]
            share = LOWER_SHARE / (1 + (totals[0] / np.maximum(totals[1], 1) / OFTEN) ** 2)
            used = np.unique(owner)
            self.back[used], self.back_lower[used] = (back + share * (back_lower - back))[used], back_lower[used]
            owners.append(owner)
            symbols.append(symbol)
            finals.append((plain + share[owner] * (lower - plain)).astype(np.float32))
            lowers.append(lower.astype(np.float32))
            targets.append(np.where(own >= 0, own, fallback).astype(np.int32))
            sizes.append(len(mine))
            filled += len(mine)
        self.symbol, self.final, self.lower, self.target = (np.concatenate(p) for p in (symbols, finals, lowers, targets))
        self.start = np.searchsorted(np.concatenate(owners), np.arange(count + 1)).astype(np.int32)
        self.widest = int(np.diff(self.start).max())
        self._rows_of_short_contexts()
        self.fast = compiled()
        self.short: NDArray[np.float32] | None = None  # what lattices look ahead with, once there is one
        self.sparse = (
            *(self.start, self.symbol, self.final, self.lower, self.target),
            *(self.back, self.back_lower, self.parent),
        )

    def __len__(self) -> int:
        return len(self.parent)

    def _count_ends(
        self,
        owner: Int[np.ndarray, " pair"],
        counts: Int[np.ndarray, " pair"],
        symbol: Symbols,
        length: int,
    ) -> None:
        """p(end) after the contexts of one length: counted, with that of the suffix for `END_PRIOR` occurrences."""
        if self.end is None:
            return
        low, high = np.searchsorted(self.length, [length, length + 1])
        is_end = symbol == self.end
        seen = np.bincount(owner, counts, high)[low:high]
        ended = np.bincount(owner[is_end], counts[is_end], high)[low:high]
        self.ends[low:high] = (ended + END_PRIOR * self.ends[self.parent[low:high]]) / (seen + END_PRIOR)

    # One pair at a time

    def find(self, states: States, symbols: Shaped[np.ndarray, "*states"]) -> States:
        """Where each pair stands; -1 if it was never seen."""
        low, end = self.start[states].astype(np.int64), self.start[states + 1].astype(np.int64)
        high = end.copy()
        for _ in range(self.widest.bit_length()):
            middle = (low + high) >> 1
            smaller = (low < high) & (self.symbol[np.minimum(middle, len(self.symbol) - 1)] < symbols)
            low = np.where(smaller, middle + 1, low)
            high = np.where(smaller, high, np.minimum(high, middle))
        hit = (low < end) & (self.symbol[np.minimum(low, len(self.symbol) - 1)] == symbols)
        return np.where(hit, low, -1)

    def step(
        self, states: States, symbols: Shaped[np.ndarray, "*symbols"]
    ) -> tuple[Float64[np.ndarray, "*out"], Int32[np.ndarray, "*out"]]:
        """How likely a symbol is next, and the state after it."""
        states, symbols = np.broadcast_arrays(states, symbols)
        shape = states.shape
        states, symbols = np.asarray(states.ravel(), np.int64), symbols.ravel()
        out, after = self._step(states, symbols)
        if self.end is not None:
            ends = self.ends[states]
            out = np.where(symbols == self.end, ends, out * (1 - ends))
        return out.reshape(shape), after.reshape(shape)

    def _step(
        self, states: Int[np.ndarray, " pair"], symbols: Shaped[np.ndarray, " pair"]
    ) -> tuple[Float64[np.ndarray, " pair"], Int32[np.ndarray, " pair"]]:
        """The same if no document ends; the end has probability 0."""
        out, after = np.empty(len(states)), np.empty(len(states), np.int32)
        if self.fast:
            self.fast.step(*self.sparse, states, symbols.astype(np.int64), self.choices, out, after)
            return out, after
        weight: NDArray[Any] = np.ones(len(states))
        first: NDArray[Any] = np.ones(len(states), bool)
        rest: NDArray[Any] = np.arange(len(states))
        while len(rest):
            short = states < self.dense
            there = rest[short]
            rows, cells = states[short], symbols[short]
            out[there] = weight[short] * np.where(first[short], self.dense_final[rows, cells], self.dense_lower[rows, cells])
            after[there] = self.dense_target[rows, cells]
            rest, states, symbols, weight, first = (a[~short] for a in (rest, states, symbols, weight, first))
            place = self.find(states, symbols)
            hit = place >= 0
            there, where = rest[hit], place[hit]
            out[there] = weight[hit] * np.where(first[hit], self.final[where], self.lower[where])
            after[there] = self.target[where]
            weight = weight * np.where(first, self.back[states], self.back_lower[states])
            rest, states, symbols, weight = rest[~hit], self.parent[states[~hit]], symbols[~hit], weight[~hit]
            first = np.zeros(len(rest), bool)
        return out, after

    # All symbols at a time

    def rows(self, states: Int[np.ndarray, " state"]) -> tuple[Float64[np.ndarray, "state s"], Int32[np.ndarray, "state s"]]:
        """How likely every symbol is next, and the state after each."""
        out, after = self._rows(states)
        if self.end is not None:
            ends = self.ends[states]
            out *= (1 - ends)[:, None]
            out[:, self.end] = ends
        return out, after

    def _rows(self, states: Int[np.ndarray, " state"]) -> tuple[Float64[np.ndarray, "state s"], Int32[np.ndarray, "state s"]]:
        """The same if no document ends."""
        if self.fast:
            out, after = np.empty((len(states), self.levels)), np.empty((len(states), self.levels), np.int32)
            self.fast.rows(*self.sparse, self.dense_final, self.dense_lower, self.dense_target, states, out, after)
            return out, after
        chain = [np.asarray(states, np.int64)]
        while (chain[-1] >= self.dense).any():
            chain.append(np.where(chain[-1] >= self.dense, self.parent[chain[-1]], chain[-1]))
        bottom = chain[-1]
        own = (chain[0] < self.dense)[:, None]
        out = np.where(own, self.dense_final[bottom], self.dense_lower[bottom]).astype(np.float64)
        after = self.dense_target[bottom]
        for depth in range(len(chain) - 2, -1, -1):
            here = np.flatnonzero(chain[depth] >= self.dense)
            at = chain[depth][here]
            table, back = (self.final, self.back) if depth == 0 else (self.lower, self.back_lower)
            out[here] *= back[at][:, None]
            place, row = ranges(self.start[at], self.start[at + 1])
            out[here[row], self.symbol[place]] = table[place]
            after[here[row], self.symbol[place]] = self.target[place]
        return out, after

    def _rows_of_short_contexts(self) -> None:
        """Whole rows of the first states: contexts of one and two symbols, mostly."""
        most = max(1, min(len(self), DENSE_CELLS // self.levels))
        self.dense = 1 if self.order < 1 else int(np.searchsorted(self.length, self.length[most - 1], side="right"))
        self.dense = min(self.dense, most)
        final, lower = (np.empty((self.dense, self.levels), np.float32) for _ in range(2))
        target = np.empty((self.dense, self.levels), np.int32)
        for level in range(int(self.length[self.dense - 1]) + 1):
            at = np.flatnonzero(self.length[: self.dense] == level)
            if level == 0:
                final[0] = lower[0] = 1.0 / self.choices
                if self.end is not None:
                    final[0, self.end] = lower[0, self.end] = 0.0
                target[0] = ROOT
                final[0] *= self.back[0]
                lower[0] *= self.back_lower[0]
            else:
                up = self.parent[at]
                final[at], lower[at] = self.back[at][:, None] * lower[up], self.back_lower[at][:, None] * lower[up]
                target[at] = target[up]
            place, row = ranges(self.start[at], self.start[at + 1])
            cells = at[row], self.symbol[place]
            final[cells], lower[cells], target[cells] = self.final[place], self.lower[place], self.target[place]
        self.dense_final, self.dense_lower, self.dense_target = final, lower, target

    # Known text

    def after(self, symbols: Symbols, state: int = ROOT) -> int:
        """The state after some symbols."""
        for symbol in symbols:
            state = int(self.step(np.array([state]), np.array([symbol]))[1][0])
        return state

    def states_along(self, symbols: Symbols, state: int = ROOT) -> Int32[np.ndarray, " place_and_end"]:
        """The state before every symbol of a known text, and after the last.

        A state depends on no more symbols than the longest context has, so all places are found together.
        """
        out = np.full(len(symbols) + 1, ROOT, np.int32)
        out[: self.order + 1] = state
        far = np.arange(min(self.order, len(symbols) + 1), len(symbols) + 1)
        for back in range(self.order, 0, -1):
            out[far] = self.step(out[far], symbols[far - back])[1]
        for place in range(1, min(self.order, len(symbols) + 1)):
            out[place] = self.step(out[place - 1 : place], symbols[place - 1 : place])[1][0]
        return out

    def log_probs(self, symbols: Symbols, state: int = ROOT) -> Float64[np.ndarray, " place"]:
        """How likely every symbol of a known text is, given those before it; in nats."""
        return np.log(self.step(self.states_along(symbols, state)[:-1], symbols)[0])

    def shortened(self, states: Int[np.ndarray, " state"], most: int) -> Int[np.ndarray, " state"]:
        """The longest suffixes of no more than so many symbols."""
        states = states.copy()
        while (long := self.length[states] > most).any():
            states[long] = self.parent[states[long]]
        return states


@final
class Contexts:
    """Contexts as numbers, the shortest first: of every string its number (-1: none), of every number its suffix."""

    def __init__(self, number: list[NDArray[np.int64]], parent: list[NDArray[np.int64]], last: list[NDArray[np.int64]]) -> None:
        self.number = number
        self.parent = np.concatenate(parent).astype(np.int32)
        self.length = np.repeat(np.arange(len(parent)), [len(p) for p in parent]).astype(np.uint8)
        both = np.concatenate(last)
        self.last, self.last_but_one = (both >> 8).astype(np.uint8), (both & 255).astype(np.uint8)


def number_contexts(tables: Sequence[Table], levels: int, fewest: int) -> Contexts:
    """Strings that occur `fewest` times and whose suffix does, up to one symbol less than the longest; all single symbols."""
    bits = bits_of(levels)
    mask = np.uint64((1 << bits) - 1)
    numbers = [np.zeros(1, np.int64)]
    parents, lasts = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    count = 1
    for length, table in enumerate(tables[:-1], 1):
        if length == 1:
            up = np.zeros(len(table.keys), np.int64)
            stays = table.counts > 0
        else:
            suffix = tables[length - 2].find(without_first(table.keys, length, bits))
            prefix = tables[length - 2].find(table.keys >> np.uint64(bits))
            up = numbers[-1][suffix]
            stays = (table.counts >= fewest) & (suffix >= 0) & (up >= 0) & (numbers[-1][prefix] >= 0)
        number = np.where(stays, np.cumsum(stays) - 1 + count, -1)
        numbers.append(number)
        parents.append(up[stays])
        last = (table.keys & mask).astype(np.int64) << 8
        before = ((table.keys >> np.uint64(bits)) & mask).astype(np.int64) if length > 1 else 0
        lasts.append((last | before)[stays])
        count += int(stays.sum())
    numbers.append(np.full(len(tables[-1].keys), -1, np.int64))
    return Contexts(numbers, parents, lasts)


def left_neighbours(tables: Sequence[Table], length: int, bits: int) -> Int[np.ndarray, " string"]:
    """In how many contexts every string of this length occurs: how many longer ones end with it, at least 1."""
    longer, own = tables[length], tables[length - 1]
    suffix = own.find(without_first(longer.keys, length + 1, bits))
    return np.maximum(np.bincount(suffix[suffix >= 0], minlength=len(own.keys)), 1)


@final
class Interpolation:
    """Counts of pairs, discounted by Chen and Goodman's estimate; what that sets free goes to the shorter context."""

    def __init__(self, owner: Int[np.ndarray, " pair"], states: int, under: Shaped[np.ndarray, " pair"]) -> None:
        self.owner, self.states, self.under = owner, states, under

    def of(
        self, counts: Int[np.ndarray, " pair"], scale: float
    ) -> tuple[Float64[np.ndarray, " pair"], Float64[np.ndarray, " state"]]:
        """The probability of every pair, and the share of every state that falls back."""
        discount = discounts(counts)
        cut = np.array([0.0, *(min(max(d * scale, 0.05), 0.95 * n) for n, d in enumerate(discount, 1))])
        kept = counts - cut[np.minimum(counts, 3)]
        total = np.maximum(np.bincount(self.owner, counts, self.states), 1)  # 0 where nothing but an end was seen
        share = kept / total[self.owner]
        back = 1.0 - np.bincount(self.owner, share, self.states)
        return share + back[self.owner] * self.under, back


def discounts(counts: Int[np.ndarray, " pair"]) -> tuple[float, float, float]:
    """How much is taken from counts of 1, 2, and 3 or more."""
    n = [float((counts == k).sum()) for k in range(5)]
    y = n[1] / (n[1] + 2 * n[2]) if n[1] else 0.0
    usual = (0.6, 0.9, 1.2)
    found = [k - (k + 1) * y * n[k + 1] / n[k] if n[k] > 20 and n[k + 1] > 20 else usual[k - 1] for k in (1, 2, 3)]
    return found[0], found[1], found[2]


def ranges(start: NDArray[np.int32], stop: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[Any]]:
    """All numbers from every start to its stop, and which of them each belongs to."""
    sizes = (stop - start).astype(np.int64)
    row = np.repeat(np.arange(len(start)), sizes)
    first = np.cumsum(sizes) - sizes
    return np.arange(len(row)) - first[row] + start[row], row
