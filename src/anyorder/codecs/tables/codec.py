"""Rows of a table coded column after column by one network of whole numbers, many rows at a time.

Where rows tell something about the next ones, a block is cut into lanes of consecutive rows: all lanes go on together, row by
row, and the network is told the row before. Cells are texts, None where there is none.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...coding import Coder, Decoder, Encoder, Integers
from ...conditionals import Part
from ...errors import FormatError
from ...heads import Categorical
from ...inference import walk
from ...model import AnyOrderModel
from ...networks import IntegerColumns, exactly
from ...schema import Category, Ordinal, Schema, Variable
from ...subsets import CanonicalOrder, Question
from ..laws import coded
from .columns import ELSEWHERE, GAP, ODD, SPECIAL, Coded, Column
from .formats import Format

Texts = NDArray[np.object_]  # of str, or None for a gap
LANE = 256  # at most so many rows follow each other; a part of the format, as `lanes` is
TOGETHER = 512  # rows at a time where none follows another; a part of the format


@final
@dataclass(frozen=True)
class Cells:
    """What a block of rows is to the codec: numbers, and where there are gaps or odd cells, (row, column)."""

    number: Integers
    kind: Integers

    @classmethod
    def none(cls, rows: int, columns: int) -> "Cells":
        return cls(np.zeros((rows, columns), dtype=np.int64), np.zeros((rows, columns), dtype=np.int64))


@final
@dataclass(frozen=True)
class TableCodec:
    """Codes those columns of a table that have a `Column`; what the others hold is not its business."""

    names: tuple[str, ...]
    columns: tuple[Column | None, ...]
    told: tuple[int, ...]  # columns whose cell in the row before is told, by their place among the coded ones
    model: AnyOrderModel

    @property
    def most_rows(self) -> int:
        """Of a block."""
        return 2**17

    @property
    def coded(self) -> list[tuple[int, Column]]:
        """The columns that are coded, and their places in the table."""
        return [(place, column) for place, column in enumerate(self.columns) if column is not None]

    def read(self, texts: Sequence[Texts]) -> Cells:
        """Texts of all columns as numbers of the coded ones."""
        read = [numbers_of(column.format, texts[place]) for place, column in self.coded]
        return Cells(np.stack([number for number, _ in read], axis=1), np.stack([kind for _, kind in read], axis=1))

    def written(self, cells: Cells, odd: Sequence[Sequence[str]]) -> list[Texts]:
        """Numbers as texts, odd cells filled in, column by column."""
        return [texts_of(column, cells.number[:, k], cells.kind[:, k], odd[k]) for k, (_, column) in enumerate(self.coded)]

    def encode(self, cells: Cells) -> tuple[bytes, list[float]]:
        """The stream, and how many bits each column takes of it."""
        coder, spent = Encoder(), [0.0] * len(self.coded)
        self._code(coder, cells, spent)
        return coder.content(), spent

    def decode(self, content: bytes, rows: int) -> Cells:
        return self._code(Decoder(content), Cells.none(rows, len(self.coded)), [0.0] * len(self.coded))

    def calls(self, rows: int) -> int:
        """How often the network is called for so many rows in one stream."""
        return len(self.coded) * sum(1 for _ in turns(rows, self.follows))

    def _code(self, coder: Coder, cells: Cells, spent: list[float]) -> Cells:
        rows, count = cells.number.shape
        out = Cells.none(rows, count)
        before = np.full((lanes(rows, self.follows), count), [column.start for _, column in self.coded], dtype=np.int64)
        levels = torch.full((len(before), count), -1)
        with exactly():
            for some in turns(rows, self.follows):
                given = Cells(cells.number[some], cells.kind[some])
                before, levels = before[: len(some)], levels[: len(some)]
                new = self._row(coder, given, before, levels, spent)
                out.number[some], out.kind[some] = new.number, new.kind
        return out

    def _row(self, coder: Coder, cells: Cells, before: Integers, levels: Tensor, spent: list[float]) -> Cells:
        """One row of every lane; `before` and `levels` become what the next row is told."""
        rows, count = cells.number.shape
        out, x, now = Cells.none(rows, count), torch.zeros(rows, count), torch.full((rows, count), -1)
        previous = levels[:, list(self.told)].clone()
        changing = [k for k, (_, column) in enumerate(self.coded) if column.change]
        steps = walk(
            self.model,
            x,
            Question(torch.zeros(rows, count, dtype=torch.bool), torch.ones(rows, count, dtype=torch.bool)),
            order=CanonicalOrder(tuple(range(count))),
            context=lambda given, _: torch.cat([previous, now[:, changing]], dim=-1),
        )
        for k, (step, (_, column)) in enumerate(zip(steps, self.coded, strict=True)):
            wanted, start = column.coded(cells.number[:, k], cells.kind[:, k], before[:, k]), coder.written
            symbol = coded(coder, self.model.heads[k], numbers_said(step.conditionals.parts, k), wanted.symbol)
            found = placed(coder, column, Coded(symbol, wanted.place), cells.number[:, k], before[:, k])
            spent[k] += coder.written - start
            x[:, k] = torch.from_numpy(symbol)
            now[:, k] = torch.from_numpy(column.level(found, symbol))
            out.number[:, k], out.kind[:, k] = found, np.where((symbol == GAP) | (symbol == ODD), symbol, 0)
            valued = out.kind[:, k] == 0
            before[valued, k] = found[valued]
        levels.copy_(now)
        return out

    @property
    def follows(self) -> bool:
        return bool(self.told) or any(column.change for _, column in self.coded)


def untrained(columns: Sequence[Column], told: Sequence[int], width: int, seed: int) -> AnyOrderModel:
    """A model of such columns; the context is the row before, where it is told, and the numbers that changes lead to."""
    domains = [Ordinal(c.symbols) if c.ordered else Category(c.symbols) for c in columns]
    schema = Schema(tuple(Variable(str(k), domain) for k, domain in enumerate(domains)))
    changing = [k for k, column in enumerate(columns) if column.change]
    context = [columns[k].level_count for k in (*told, *changing)]
    after = [0] * len(told) + [k + 1 for k in changing]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = IntegerColumns(schema, sum(c.symbols for c in columns), width, context, after)
    return AnyOrderModel(schema, [Categorical(c.symbols) for c in columns], network)


def objects(values: Iterable[Any]) -> NDArray[np.object_]:
    """An array of what it is given, one cell for each, whatever that is."""
    cells = list(values)
    out = np.empty(len(cells), dtype=object)
    for k, cell in enumerate(cells):
        out[k] = cell
    return out


def placed(coder: Coder, column: Column, wanted: Coded, number: Integers, before: Integers) -> Integers:
    """The number of every cell: its place in its bin, or all of it if it is elsewhere; 0 where there is none."""
    out = np.zeros_like(number)
    inside, elsewhere = wanted.symbol >= SPECIAL, wanted.symbol == ELSEWHERE
    symbol = wanted.symbol[inside]
    widths = column.widths(symbol)
    place, wide = np.zeros_like(symbol), widths > 1
    place[wide] = coder.evenly(wanted.place[inside][wide], widths[wide])
    out[inside] = column.number(Coded(symbol, place), before[inside])
    if elsewhere.any():
        out[elsewhere] = coder.signed(number[elsewhere] - column.start) + column.start
    return out


def numbers_said(parts: Sequence[Any], variable: int) -> Tensor:
    """What the network said about one column."""
    for part in parts:
        at = (part.index == variable).nonzero()
        if len(at):
            assert isinstance(part, Part)
            place = int(at[0, 0])
            return part.params[:, place, : part.levels[place]] if part.levels else part.params[:, place]
    raise IndexError(variable)


def lanes(rows: int, follows: bool) -> int:
    return -(-rows // min(LANE, max(16, 3 * math.isqrt(rows) // 2))) if follows else min(rows, TOGETHER)


def turns(rows: int, follows: bool) -> Iterator[Integers]:
    """The rows that are coded together: the next of every lane, or simply the next ones."""
    if not follows:
        for start in range(0, rows, TOGETHER):
            yield np.arange(start, min(start + TOGETHER, rows))
    elif rows:
        length = -(-rows // lanes(rows, follows))
        first = np.arange(0, rows, length)
        for turn in range(length):
            yield first[first + turn < rows] + turn


# Texts


def numbers_of(form: Format, texts: Texts) -> tuple[Integers, Integers]:
    """Numbers and kinds of cells."""
    code, different = pd.factorize(texts)  # None is -1
    number, known = form.numbers(list(different))
    number, known = np.append(number, 0), np.append(np.where(known == 1, 0, ODD), GAP)
    return number[code], known[code]


def texts_of(column: Column, number: Integers, kind: Integers, odd: Sequence[str]) -> Texts:
    """Numbers written out, gaps left, odd cells filled in."""
    different, code = np.unique(number, return_inverse=True)
    out: Texts = objects(column.format.text(int(n)) for n in different)[code]
    if any(text is None for text in out[kind == 0]):
        raise FormatError("A block holds a number that its column cannot write.")
    out[kind == GAP] = None
    if int((kind == ODD).sum()) != len(odd):
        raise FormatError(f"A block has {int((kind == ODD).sum())} odd cells in a column, but texts for {len(odd)}.")
    out[kind == ODD] = objects(odd)
    return out
