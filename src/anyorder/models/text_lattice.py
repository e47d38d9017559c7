"""Forward-backward over the gaps of a text: every filling is one path of a lattice, those of little weight share theirs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Shaped
from numpy.typing import NDArray

from .text_automaton import ROOT, Automaton, Symbols

TWO_BACK = 64  # levels up to which the beam looks ahead from the last two symbols, and from the last one beyond
MOST_CELLS = 2**26  # (place, state, symbol) triples that a lattice holds: the beam of a very long gap is narrower
FALLS = (255, 5, 3, 2, 1, 0)  # to how many symbols a context outside the beam is shortened, round after round
KEPT = 0.6  # share of the beam that keeps its contexts


@dataclass(frozen=True)
class Stage:
    """One place: the states that it may be reached in, the symbols it may have, and which state of the next stage follows."""

    symbols: Int[np.ndarray, " symbol"]
    chance: Float[np.ndarray, "state symbol"]
    leads_to: Int[np.ndarray, "state symbol"]


@final
class Lattice:
    r"""The fillings of a stretch of text, each with the probability that the automaton gives it.

    The states at a place are contexts. Where there are more than `beam`, those of least weight fall back on a shorter context
    and go on from there: no filling is ever lost, and if none falls back every answer is exact. Each filling is one path, so
    `draw`, `best`, `log_prob` and `posteriors` are all of one distribution that sums to 1.

    Parameters
    ----------
    automaton: what knows the language.
    symbols, known: the stretch; hidden symbols are not looked at.
    state: before the first of them.
    beam: how many contexts are kept apart at a place.
    allowed: which symbols a gap may have; all.
    """

    def __init__(
        self,
        automaton: Automaton,
        symbols: Symbols,
        known: Bool[np.ndarray, " place"],
        state: int = ROOT,
        beam: int = 256,
        allowed: Int[np.ndarray, " symbol"] | None = None,
    ) -> None:
        choices = np.arange(automaton.levels) if allowed is None else allowed
        beam = max(8, min(beam, MOST_CELLS // (len(choices) * max(1, int((~known).sum())))))
        ahead = list(look_ahead(automaton, symbols, known, choices))[::-1]
        states: NDArray[Any] = np.array([state])
        weight: NDArray[Any] = np.ones(1)
        self.stages: list[Stage] = []
        self.weights = [weight]
        for place in range(len(symbols)):
            here = symbols[place : place + 1].astype(np.int64) if known[place] else choices
            if len(here) == 1:
                chance, after = (both[:, None] for both in automaton.step(states, here))
            else:
                chance, after = automaton.rows(states)
                if allowed is not None:
                    chance, after = chance[:, here], after[:, here]
            states, leads_to = distinct(automaton, after.ravel())
            weight = np.bincount(leads_to, (weight[:, None] * chance).ravel(), len(states))
            states, weight, leads_to = in_beam(automaton, states, weight, leads_to, ahead[place + 1], beam)
            self.stages.append(Stage(here, chance, leads_to.reshape(chance.shape)))
            weight = weight / max(weight.sum(), 1e-300)
            self.weights.append(weight)
        self._backward()

    def _backward(self) -> None:
        """What every state is worth, seen from the end, on a scale of its own at every place."""
        worth = np.ones(len(self.weights[-1]))
        self.worths = [worth]
        for stage in reversed(self.stages):
            worth = (stage.chance * worth[stage.leads_to]).sum(1)
            worth = worth / max(worth.max(), 1e-300)
            self.worths.append(worth)
        self.worths.reverse()

    def posteriors(self, levels: int) -> Float64[np.ndarray, "place levels"]:
        """The distribution of every place given all that is known, before and behind it."""
        out = np.zeros((len(self.stages), levels))
        for place, stage in enumerate(self.stages):
            mass = self.weights[place] @ (stage.chance * self.worths[place + 1][stage.leads_to])
            out[place, stage.symbols] = mass / mass.sum()
        return out

    def draw(self, rng: np.random.Generator, draws: int) -> Int[np.ndarray, "draw place"]:
        """Fillings drawn together from p(gaps | what is known)."""
        out = np.empty((draws, len(self.stages)), np.int64)
        state = np.zeros(draws, np.int64)
        for place, stage in enumerate(self.stages):
            mass = (stage.chance[state] * self.worths[place + 1][stage.leads_to[state]]).cumsum(1)
            which = (mass < rng.random(draws)[:, None] * mass[:, -1:]).sum(1).clip(max=len(stage.symbols) - 1)
            out[:, place] = stage.symbols[which]
            state = stage.leads_to[state, which]
        return out

    def best(self) -> tuple[Int[np.ndarray, " place"], float]:
        """The likeliest filling, and its log-probability given what is known, in nats."""
        score, came = np.zeros(1), []
        with np.errstate(divide="ignore"):
            for place, stage in enumerate(self.stages):
                paths = (score[:, None] + np.log(stage.chance)).ravel()
                order = paths.argsort(kind="stable")
                target = stage.leads_to.ravel()[order]
                back = np.zeros(len(self.weights[place + 1]), np.int64)
                back[target] = order  # the last one written is the best
                came.append(back)
                score = paths[back]
        state, out = int(score.argmax()), np.empty(len(self.stages), np.int64)
        for place in range(len(self.stages) - 1, -1, -1):
            previous, which = divmod(int(came[place][state]), len(self.stages[place].symbols))
            out[place], state = self.stages[place].symbols[which], previous
        return out, self.log_prob(out)

    def log_prob(self, filling: Shaped[np.ndarray, " place"]) -> float:
        """How likely a filling is, given what is known; in nats."""
        return float(sum(self.terms(filling)))

    def terms(self, filling: Shaped[np.ndarray, " place"]) -> Iterator[float]:
        """What every place adds to it, in order."""
        state = 0
        for place, stage in enumerate(self.stages):
            which = np.flatnonzero(stage.symbols == filling[place])
            if not len(which):
                yield -np.inf
                return
            mass = stage.chance[state] * self.worths[place + 1][stage.leads_to[state]]
            with np.errstate(divide="ignore"):
                yield float(np.log(mass[which[0]] / mass.sum()))
            state = int(stage.leads_to[state, which[0]])


def distinct(automaton: Automaton, numbers: Int[np.ndarray, " number"]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Which numbers there are, and which of them each is."""
    if not automaton.fast or len(numbers) < 64:
        found, inverse = np.unique(numbers, return_inverse=True)
        return found, inverse
    slots = np.full(1 << (2 * len(numbers) - 1).bit_length(), -1, np.int64)
    found, inverse = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
    count = automaton.fast.distinct(numbers.astype(np.int64), slots, found, inverse)
    return found[:count], inverse


def in_beam(
    automaton: Automaton,
    states: NDArray[Any],
    weight: NDArray[Any],
    leads_to: NDArray[Any],
    ahead: "Ahead",
    beam: int,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """No more than `beam` states: those of least weight, given what lies ahead, fall back and are merged."""
    for length in FALLS:
        if len(states) <= beam:
            break
        kept = max(1, int(KEPT * beam))
        score = weight * ahead.of(automaton, states)
        falls = np.ones(len(states), bool)
        falls[score.argpartition(len(states) - kept)[-kept:]] = False
        states = states.copy()
        states[falls] = automaton.shortened(automaton.parent[states[falls]], length)
        states, merged = distinct(automaton, states)
        weight = np.bincount(merged, weight, len(states))
        leads_to = merged[leads_to]
    return states, weight, leads_to


@final
class Ahead:
    """How likely the known symbols further on are, given the last two symbols or fewer: a guide for the beam only."""

    def __init__(self, table: Float[np.ndarray, "last before"], usual: Float[np.ndarray, " symbol"]) -> None:
        self.two = table
        self.one = table @ usual if table.shape[1] > 1 else table[:, 0]
        self.none = float(self.one @ usual)

    def of(self, automaton: Automaton, states: Int[np.ndarray, " state"]) -> Float[np.ndarray, " state"]:
        last, length = automaton.last[states], automaton.length[states]
        before = automaton.last_but_one[states] if self.two.shape[1] > 1 else 0
        return np.where(length >= 2, self.two[last, before], np.where(length == 1, self.one[last], self.none))


def look_ahead(
    automaton: Automaton, symbols: Symbols, known: Bool[np.ndarray, " place"], choices: Int[np.ndarray, " symbol"]
) -> Iterator[Ahead]:
    """From the end to the start, for every place."""
    table = short_contexts(automaton)  # (last, before, next)
    levels, width = automaton.levels, table.shape[1]
    usual = automaton.rows(np.array([ROOT]))[0][0].astype(np.float32)
    value = np.ones((levels, width), np.float32)
    yield Ahead(value, usual)
    outside = np.setdiff1d(np.arange(levels), choices)
    for place in range(len(symbols) - 1, -1, -1):
        following = value.T if width > 1 else np.broadcast_to(value.T, (levels, levels))  # (last, next)
        if known[place]:
            y = symbols[place]
            value = table[:, :, y] * following[:, y, None]
        else:
            following = following.copy()
            following[:, outside] = 0.0
            value = (table @ following[:, :, None])[:, :, 0]
        value = value / max(float(value.max()), 1e-30)
        yield Ahead(value, usual)


def short_contexts(automaton: Automaton) -> Float[np.ndarray, "last before next"]:
    """p(next | the last two symbols), or the last one where two would be too many; computed once for an automaton."""
    if automaton.short is None:
        levels = automaton.levels
        one = automaton.rows(np.array([ROOT]))[1][0]
        if levels > TWO_BACK:
            automaton.short = automaton.rows(automaton.shortened(one, 1))[0][:, None, :].astype(np.float32)
        else:
            two = automaton.step(one[None, :], np.arange(levels)[:, None])[1].ravel()
            found = automaton.rows(automaton.shortened(two, 2))[0].astype(np.float32)
            automaton.short = found.reshape(levels, levels, levels)
    return automaton.short


def stretches(known: Bool[np.ndarray, " place"], order: int) -> Iterator[tuple[int, int]]:
    """Where the gaps are, with the known symbols behind them that a context still reaches over: they know nothing of others."""
    hidden = np.flatnonzero(~known)
    if not len(hidden):
        return
    breaks = np.flatnonzero(np.diff(hidden) > order)
    starts = hidden[np.concatenate([[0], breaks + 1])]
    ends = hidden[np.append(breaks, len(hidden) - 1)] + 1
    for start, end in zip(starts, ends, strict=True):
        yield int(start), int(min(end + order, len(known)))
