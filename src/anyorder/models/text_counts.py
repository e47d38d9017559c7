"""How often every short string of symbols occurs in a long text: counted as a stream, pruned as it grows, stored small."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np
import zstandard
from jaxtyping import Int, UInt, UInt8, UInt64
from numpy.typing import NDArray

from ..errors import InputError

LONGEST = 9  # symbols of the longest strings, as far as 64 bits hold them
BLOCK = 2**22  # symbols that are sorted at once
NEVER_PRUNED = 3  # strings of so many symbols or fewer are always kept
EXACT, PER_OCTAVE = 31, 10  # counts are stored exactly up to 31, then to the nearest of 10 steps an octave: 3.5 % off at most
Keys = UInt64[np.ndarray, " string"]


class Table(NamedTuple):
    """Strings of one length as numbers, the first symbol highest, sorted; and how often each occurs."""

    keys: Keys
    counts: Int[np.ndarray, " string"]

    @classmethod
    def empty(cls) -> "Table":
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def plus(self, other: "Table") -> "Table":
        """Both counted together."""
        place = np.searchsorted(self.keys, other.keys)
        hit = np.zeros(len(other.keys), bool)
        inside = place < len(self.keys)
        hit[inside] = self.keys[place[inside]] == other.keys[inside]
        counts = self.counts.copy()
        counts[place[hit]] += other.counts[hit]
        new = ~hit
        return Table(np.insert(self.keys, place[new], other.keys[new]), np.insert(counts, place[new], other.counts[new]))

    def find(self, keys: Keys) -> Int[np.ndarray, " wanted"]:
        """Where each of these is; -1 where it is not."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, place, -1)

    def counts_of(self, keys: Keys) -> Int[np.ndarray, " wanted"]:
        """How often each of these occurs; 0 where it is not known."""
        place = self.find(keys)
        return np.where(place >= 0, self.counts[place] if len(self.counts) else 0, 0)


def bits_of(levels: int) -> int:
    """How many bits a symbol takes."""
    return max(1, int(levels - 1).bit_length())


def longest_of(levels: int) -> int:
    """How many symbols fit into 64 bits, up to `LONGEST`."""
    return min(LONGEST, 64 // bits_of(levels))


def counted(keys: Keys) -> Table:
    """Equal keys as one, with their number; the keys are sorted."""
    if not len(keys):
        return Table.empty()
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return Table(keys[first], np.diff(np.append(first, len(keys))))


def shorter(table: Table, bits: int) -> Table:
    """The same places, counted as strings without their last symbol."""
    keys = table.keys >> np.uint64(bits)
    if not len(keys):
        return Table.empty()
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return Table(keys[first], np.add.reduceat(table.counts, first))


def keys_of(symbols: UInt8[np.ndarray, " place"], length: int, bits: int) -> Keys:
    """The string that begins at every place where a whole one does."""
    count = max(0, len(symbols) - length + 1)
    keys = np.zeros(count, np.uint64)
    for offset in range(length):
        keys <<= np.uint64(bits)
        keys |= symbols[offset : offset + count]
    return keys


def without_first(keys: Keys, length: int, bits: int) -> Keys:
    """Strings of `length` symbols without their first one."""
    return keys & np.uint64((1 << bits * (length - 1)) - 1)


@final
@dataclass
class StringCounts:
    """Counts of all strings of 1 to `longest` symbols of what is added, as far as there is room.

    >>> counts = StringCounts(levels=4)
    >>> counts.add(np.array([1, 2, 1, 2, 3], np.uint8))
    >>> [table.counts.tolist() for table in counts.finish(fewest=1)[:2]]
    [[2, 2, 1], [2, 1, 1]]

    Parameters
    ----------
    levels: how many symbols there are.
    most: how many strings are kept at the end; about twice as many may be held on the way.
    longest: of how many symbols the longest strings are, or as many as fit.
    """

    levels: int
    most: int = 12_000_000
    longest: int = 0
    tables: list[Table] = field(init=False)
    _waiting: list[NDArray[np.uint8]] = field(init=False, default_factory=list)
    _waits: int = field(init=False, default=0)
    _spared: int = field(init=False, default=2)  # strings that rest on fewer than so many are dropped when room is short

    def __post_init__(self) -> None:
        if not 2 <= self.levels <= 256:
            raise InputError(f"StringCounts got levels={self.levels}; expected between 2 and 256.")
        self.bits = bits_of(self.levels)
        self.longest = min(self.longest or LONGEST, longest_of(self.levels))
        self.tables = [Table.empty() for _ in range(self.longest)]

    def add(self, symbols: UInt8[np.ndarray, " place"]) -> None:
        """Count what follows on everything added before: strings that lie across the border are counted, too."""
        for start in range(0, len(symbols), BLOCK):
            part = symbols[start : start + BLOCK]
            self._waiting.append(part)
            self._waits += len(part)
            if self._waits >= BLOCK:
                self._count(last=False)

    def finish(self, fewest: int = 4) -> list[Table]:
        """The tables of strings of 1, 2, ... symbols: those that lengthen, on either side, one that occurs `fewest` times."""
        self._count(last=True)
        tables = closed(self.tables, fewest, self.bits)
        while sum(len(table.keys) for table in tables) > self.most:
            fewest += max(1, fewest // 2)
            tables = closed(tables, fewest, self.bits)
        return tables

    def _count(self, last: bool) -> None:
        symbols = np.concatenate(self._waiting) if self._waiting else np.zeros(0, np.uint8)
        table = counted(np.sort(keys_of(symbols, self.longest, self.bits)))
        rest = symbols[max(0, len(symbols) - self.longest + 1) :]  # where no longest string begins any more
        for length in range(self.longest, 0, -1):
            whole = table if not last else table.plus(counted(np.sort(keys_of(rest, length, self.bits))))
            self.tables[length - 1] = self.tables[length - 1].plus(whole)
            table = shorter(table, self.bits)
        self._waiting, self._waits = [] if last else [rest], 0 if last else len(rest)
        while sum(len(table.keys) for table in self.tables) > 2 * self.most:
            self.tables = closed(self.tables, self._spared, self.bits)
            self._spared += max(1, self._spared // 2)


def closed(tables: Sequence[Table], fewest: int, bits: int) -> list[Table]:
    """The strings whose parts without the last, or without the first symbol, occur `fewest` times, and both are kept."""
    kept = list(tables[:1])
    for length, table in enumerate(tables[1:], 2):
        before = kept[-1].find(table.keys >> np.uint64(bits))
        after = kept[-1].find(without_first(table.keys, length, bits))
        if not len(kept[-1].counts):
            kept.append(Table.empty())
            continue
        often = kept[-1].counts
        stays = (before >= 0) & (after >= 0)
        if length > NEVER_PRUNED:
            stays &= (often[before] >= fewest) | (often[after] >= fewest)
        kept.append(Table(table.keys[stays], table.counts[stays]))
    return kept


def rounded(counts: Int[np.ndarray, " string"]) -> UInt8[np.ndarray, " string"]:
    """Counts as one byte each."""
    steps = np.log2(np.maximum(counts, EXACT) / EXACT) * PER_OCTAVE
    return np.where(counts <= EXACT, counts, np.minimum(EXACT + np.rint(steps), 255)).astype(np.uint8)


def unrounded(codes: UInt8[np.ndarray, " string"]) -> Int[np.ndarray, " string"]:
    """The counts that bytes stand for."""
    codes = codes.astype(np.int64)
    return np.where(codes <= EXACT, codes, np.rint(EXACT * 2.0 ** ((codes - EXACT) / PER_OCTAVE))).astype(np.int64)


def pack(tables: Sequence[Table], levels: int) -> bytes:
    """Rounded tables as a trie: how many strings lengthen each shorter one, by which symbols, and how often."""
    bits, parts = bits_of(levels), []
    before = np.zeros(1, np.uint64)
    for table in tables:
        parent = np.searchsorted(before, table.keys >> np.uint64(bits))
        branches = np.bincount(parent, minlength=len(before)).astype("<u2")
        symbols = (table.keys & np.uint64((1 << bits) - 1)).astype(np.uint8)
        parts += [branches.tobytes(), symbols.tobytes(), rounded(table.counts).tobytes()]
        before = table.keys
    return zstandard.ZstdCompressor(level=9).compress(b"".join(parts))


def unpack(packed: bytes, sizes: Sequence[int], levels: int) -> list[Table]:
    """What `pack` packed, with rounded counts; `sizes` says how many strings every table has. Nonsense is a ValueError."""
    total = sum(2 * before + 2 * own for before, own in zip([1, *sizes], sizes, strict=False))
    try:
        raw = zstandard.ZstdDecompressor().decompress(packed, max_output_size=total)
    except zstandard.ZstdError as error:
        raise ValueError(f"counts that cannot be unpacked: {error}") from error
    if len(raw) != total:
        raise ValueError(f"counts of {len(raw)} bytes where {total} were announced")
    bits, place, before = bits_of(levels), 0, np.zeros(1, np.uint64)
    tables: list[Table] = []
    for size in sizes:
        branches: UInt[np.ndarray, " string"] = np.frombuffer(raw, "<u2", len(before), place)
        symbols = np.frombuffer(raw, np.uint8, size, place + 2 * len(before))
        counts = np.frombuffer(raw, np.uint8, size, place + 2 * len(before) + size)
        place += 2 * len(before) + 2 * size
        if int(branches.sum()) != size or (size and (symbols.max() >= levels or counts.min() < 1)):
            raise ValueError("counts whose parts contradict each other")
        keys = (np.repeat(before, branches) << np.uint64(bits)) | symbols
        if not (keys[1:] > keys[:-1]).all():
            raise ValueError("strings that are not in order")
        tables.append(Table(keys, unrounded(counts)))
        before = keys
    return tables


def reversed_tables(tables: Sequence[Table], levels: int) -> list[Table]:
    """The same counts for text that is read backwards."""
    bits, mask = bits_of(levels), np.uint64((1 << bits_of(levels)) - 1)
    turned: list[Table] = []
    for length, (keys, counts) in enumerate(tables, 1):
        back = np.zeros_like(keys)
        for place in range(length):
            back |= ((keys >> np.uint64(bits * place)) & mask) << np.uint64(bits * (length - 1 - place))
        order = back.argsort(kind="stable")
        turned.append(Table(back[order], counts[order]))
    return turned
