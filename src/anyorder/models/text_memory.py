"""A model of text without a network: counts of contexts in both directions, and forward-backward over what is hidden."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from numpy.typing import NDArray
from torch import Tensor

from ..distributions import IMPOSSIBLE, CategoricalDistribution
from ..errors import InputError
from ..schema import Category, Mask, Schema, Values
from .conditionals import CellIndex, Conditionals, Distributions
from .text_automaton import ROOT, Automaton, Symbols
from .text_counts import LONGEST, StringCounts, Table, pack, reversed_tables, unpack
from .text_lattice import Lattice, stretches
from .trained import Description, Trained

MOST_LENGTH = 2**20  # variables of a schema of text
LEAST = 1e-30  # no probability is smaller
Known = Bool[np.ndarray, " place"]


@final
class TextMemory(Trained):
    """What follows, and what precedes, every short string of a text that was read; any symbols given any others from that.

    A row is a passage of `length` symbols, of whose surroundings nothing is known; the last ones may be left unknown. The
    distributions of single symbols are the geometric mean of what reading forwards and reading backwards say; `lattice`
    is of the forward reading alone, and consistent: fillings of all gaps drawn together, the best one, and their probability.

    Parameters
    ----------
    tables: how often every string of 1, 2, ... symbols occurs, as `StringCounts.finish` returns them.
    levels: how many symbols there are.
    length: of a row.
    fewest: how often a string must occur to be a context.
    beam: how many contexts are kept apart at every hidden place; answers are exact if there are no more.
    both: whether to read backwards, too.
    end: the symbol that ends documents, if there is one.
    """

    kind, words, all_at_once = "text-memory", "a memory of text", True
    packed: Tensor

    def __init__(
        self,
        tables: Sequence[Table],
        levels: int,
        length: int = 250,
        fewest: int = 4,
        beam: int = 256,
        both: bool = True,
        end: int | None = None,
    ) -> None:
        packed = pack(tables, levels)
        self._hold(packed, [len(table.keys) for table in tables], levels, fewest, length, beam, both, end)

    def _hold(
        self,
        packed: bytes,
        sizes: list[int],
        levels: int,
        fewest: int,
        length: int,
        beam: int,
        both: bool,
        end: int | None,
    ) -> None:
        super().__init__()
        self.sizes, self.levels, self.fewest, self.beam, self.both, self.end = sizes, levels, fewest, beam, both, end
        self.allowed: NDArray[np.int64] | None = None
        self.schema = Schema.repeat(Category(levels), length)
        self.register_buffer("packed", torch.frombuffer(bytearray(packed), dtype=torch.uint8))
        tables = unpack(packed, sizes, levels)  # rounded: a model and its file answer alike
        self._readings = Readings(tables, levels, fewest, end)

    @classmethod
    def of(
        cls,
        texts: Iterable[Symbols],
        levels: int,
        length: int = 250,
        fewest: int = 4,
        beam: int = 256,
        both: bool = True,
        most: int = 12_000_000,
        longest: int = LONGEST,
        end: int | None = None,
    ) -> "TextMemory":
        """From texts, one following the other, as codes; `most` strings of up to `longest` symbols are kept."""
        counts = StringCounts(levels, most, longest)
        for text in texts:
            counts.add(text)
        return cls(counts.finish(fewest), levels, length, fewest, beam, both, end)

    def resized(
        self, length: int | None = None, beam: int | None = None, allowed: Int[np.ndarray, " symbol"] | None = None
    ) -> "TextMemory":
        """The same memory for rows of another length, with another beam, or with gaps that hold only some symbols.

        Nothing is copied.
        """
        if length is not None and not 1 <= length <= MOST_LENGTH:
            raise InputError(f"Got length={length}; expected from 1 to {MOST_LENGTH} symbols. Ask for a part of the text.")
        other = TextMemory.__new__(TextMemory)
        super(TextMemory, other).__init__()
        other.__dict__.update({k: v for k, v in self.__dict__.items() if not k.startswith("_") or k == "_readings"})
        other.register_buffer("packed", self.packed)
        other.schema = self.schema if length is None else Schema.repeat(Category(self.levels), length)
        other.beam = self.beam if beam is None else beam
        other.allowed = allowed
        return other.train(self.training)

    @property
    def forwards(self) -> Automaton:
        """Reads from left to right."""
        return self._readings.forwards

    @property
    def backwards(self) -> Automaton:
        """Reads from right to left."""
        return self._readings.backwards

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def forward(self, x: Values, given: Mask, context: Tensor | None = None) -> Conditionals:
        index = torch.arange(x.shape[1], device=x.device)
        return Conditionals([TextDistributions(index, self, x, given)])

    # One text at a time

    def posteriors(
        self, symbols: Symbols, known: Known, state: int = ROOT, allowed: NDArray[np.int64] | None = None
    ) -> Float64[np.ndarray, "place levels"]:
        """The distribution of every hidden symbol given all known ones; a known one is certain.

        `state` is of the forward reading, before the first symbol.
        """
        out = np.zeros((len(symbols), self.levels))
        out[np.flatnonzero(known), symbols[known]] = 1.0
        forwards = self._posteriors(self.forwards, symbols, known, state, allowed)
        if not self.both:
            out[~known] = forwards[~known]
            return out
        backwards = self._posteriors(self.backwards, symbols[::-1], known[::-1], ROOT, allowed)[::-1]
        both = np.sqrt(np.maximum(forwards[~known], LEAST) * np.maximum(backwards[~known], LEAST))
        if allowed is not None:
            both *= np.isin(np.arange(self.levels), allowed)
        out[~known] = both / both.sum(1, keepdims=True)
        return out

    def _posteriors(
        self, automaton: Automaton, symbols: Symbols, known: Known, state: int, allowed: NDArray[np.int64] | None
    ) -> Float64[np.ndarray, "place levels"]:
        out = np.zeros((len(symbols), self.levels))
        for start, lattice in self._lattices(automaton, symbols, known, state, allowed):
            out[start : start + len(lattice.stages)] = lattice.posteriors(self.levels)
        return out

    def lattices(
        self, symbols: Symbols, known: Known, state: int = ROOT, allowed: NDArray[np.int64] | None = None
    ) -> list[tuple[int, Lattice]]:
        """The fillings of every stretch with gaps, and where it begins; stretches are independent of each other."""
        return list(self._lattices(self.forwards, symbols, known, state, allowed))

    def _lattices(
        self, automaton: Automaton, symbols: Symbols, known: Known, state: int, allowed: NDArray[np.int64] | None
    ) -> Iterable[tuple[int, Lattice]]:
        for start, stop in stretches(known, automaton.order):
            before = max(0, start - automaton.order)
            first = automaton.after(symbols[before:start], state if before == 0 else ROOT)
            yield start, Lattice(automaton, symbols[start:stop], known[start:stop], first, self.beam, allowed)

    def log_probs(self, symbols: Symbols, state: int = ROOT) -> Float64[np.ndarray, " place"]:
        """How likely every symbol is, given those before it; nats, their sum is the log-probability of the text."""
        return self.forwards.log_probs(symbols, state)

    def one_by_one(self, symbols: Symbols, state: int = ROOT) -> Float64[np.ndarray, "place levels"]:
        """The distribution of every symbol given all others of a known text: `posteriors` with one gap, for every place."""
        forwards = one_gap(self.forwards, symbols, state)
        if not self.both:
            return forwards
        backwards = one_gap(self.backwards, symbols[::-1], ROOT)[::-1]
        both = np.sqrt(np.maximum(forwards, LEAST) * np.maximum(backwards, LEAST))
        return both / both.sum(1, keepdims=True)

    def draws(
        self, symbols: Symbols, known: Known, count: int, rng: np.random.Generator, allowed: NDArray[np.int64] | None = None
    ) -> Int[np.ndarray, "draw place"]:
        """All gaps drawn together given what is known; those behind the last known symbol one after the other, exactly."""
        out = np.repeat(symbols[None].astype(np.int64), count, 0)
        end = int(known.nonzero()[0].max(initial=-1)) + 1
        for start, lattice in self.lattices(symbols[:end], known[:end], ROOT, allowed):
            out[:, start : start + len(lattice.stages)] = lattice.draw(rng, count)
        if end < len(symbols):
            states = np.full(count, ROOT)
            for place in range(max(0, end - self.forwards.order), end):
                states = self.forwards.step(states, out[:, place])[1]
            out[:, end:] = self.continued(states, len(symbols) - end, rng, allowed)
        return out

    def continued(
        self, states: Int[np.ndarray, " draw"], count: int, rng: np.random.Generator, allowed: NDArray[np.int64] | None = None
    ) -> Int[np.ndarray, "draw place"]:
        """Symbols drawn after these states, exactly: nothing is known of what follows."""
        out = np.empty((len(states), count), np.int64)
        for place in range(count):
            mass, after = self.forwards.rows(states)
            if allowed is not None:
                mass = mass * np.isin(np.arange(self.levels), allowed)
            mass = mass.cumsum(1)
            out[:, place] = (mass < rng.random(len(states))[:, None] * mass[:, -1:]).sum(1).clip(max=self.levels - 1)
            states = after[np.arange(len(states)), out[:, place]]
        return out

    # In files

    def knows_probabilities(self) -> bool:
        """Counts that could be unpacked always give some; to try it would build what the first question may not need."""
        return all((table.counts > 0).all() for table in self._readings.tables)

    def describe(self) -> Description:
        about = {"levels": self.levels, "fewest": self.fewest, "length": len(self.schema), "sizes": self.sizes}
        return {**about, "beam": self.beam, "both": self.both, "end": self.end}

    @classmethod
    def rebuild(cls, name: str, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "TextMemory":
        sizes = [int(size) for size in about["sizes"]]
        levels, fewest, length, beam = (int(about[one]) for one in ("levels", "fewest", "length", "beam"))
        packed, end = tensors["packed"], about.get("end")
        sane = end is None or (isinstance(end, int) and 0 <= end < levels)
        sane &= 2 <= levels <= 256 and fewest >= 1 and 1 <= length <= MOST_LENGTH and 1 <= beam <= 2**16
        if not sane or not 1 <= len(sizes) <= LONGEST or min(sizes) < 1 or packed.dtype != torch.uint8 or packed.ndim != 1:
            raise ValueError("sizes that cannot be")
        if sum(sizes) > 1000 * len(packed):
            raise ValueError(f"{sum(sizes)} strings in {len(packed)} bytes")
        memory = cls.__new__(cls)
        memory._hold(packed.numpy().tobytes(), sizes, levels, fewest, length, beam, bool(about["both"]), end)
        return memory


@final
class Readings:
    """The automata of both directions, each built when it is first asked for: most questions need one of them."""

    def __init__(self, tables: Sequence[Table], levels: int, fewest: int, end: int | None = None) -> None:
        self.tables, self.levels, self.fewest, self.end = tables, levels, fewest, end

    @cached_property
    def forwards(self) -> Automaton:
        return Automaton(self.tables, self.levels, self.fewest, self.end)

    @cached_property
    def backwards(self) -> Automaton:
        return Automaton(reversed_tables(self.tables, self.levels), self.levels, self.fewest, self.end)


def one_gap(automaton: Automaton, symbols: Symbols, state: int, at_once: int = 4096) -> Float64[np.ndarray, "place levels"]:
    """Forward-backward where a single symbol is hidden, for each of them: every symbol is tried, and read on from there."""
    before = automaton.states_along(symbols, state)[:-1]
    out = np.empty((len(symbols), automaton.levels))
    for start in range(0, len(symbols), at_once):
        place = np.arange(start, min(start + at_once, len(symbols)))
        chance, states = automaton.rows(before[place])
        mass = np.log(chance)
        for _ in range(automaton.order):
            place = place + 1
            inside = np.flatnonzero(place < len(symbols))
            if not len(inside):
                break
            chance, after = automaton.step(states[inside], symbols[place[inside], None])
            mass[inside] += np.log(chance)
            states[inside] = after
        mass = np.exp(mass - mass.max(1, keepdims=True))
        out[start : start + len(mass)] = mass / mass.sum(1, keepdims=True)
    return out


@final
@dataclass(frozen=True)
class TextDistributions(Distributions):
    """The symbols of some rows; computed for the rows that are asked about, and once."""

    memory: TextMemory
    x: Values
    given: Mask

    def at(self, cells: CellIndex) -> CategoricalDistribution:
        row, place = self.cells_at(cells, len(self.x))
        wanted, inverse = row.unique(return_inverse=True)
        tables = [self._of_row(int(one)) for one in wanted]
        found = torch.stack(tables) if tables else torch.zeros(0, len(self.index), self.memory.levels)
        return CategoricalDistribution(found.to(self.x.device)[inverse, place])

    def _of_row(self, row: int) -> Float[Tensor, "place levels"]:
        given = self.given[row].cpu().numpy()
        symbols = np.where(given, self.x[row].cpu().numpy(), 0).astype(np.uint8)  # hidden values cannot leak
        key = given.tobytes() + symbols.tobytes()
        if key not in self._answers:
            table = torch.from_numpy(self.memory.posteriors(symbols, given, ROOT, self.memory.allowed))
            self._answers[key] = torch.where(table > 0, table.clamp(min=LEAST).log(), IMPOSSIBLE).float()
        return self._answers[key]

    @cached_property
    def _answers(self) -> dict[bytes, Tensor]:
        """By what is known: rows that know the same share theirs."""
        return {}
