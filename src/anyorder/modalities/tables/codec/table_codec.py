"""Rows of a table coded column after column by one network of whole numbers, many rows at a time.

Where rows tell something about the next ones, a block is cut into lanes of consecutive rows: all lanes go on together, row by
row, and the network is told the row before. Cells are texts, None where there is none.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Generator, Tensor, nn

from ....archives.archive import Goal
from ....archives.codecs import Codec, check_proof, coded, digest_of, proof_answers
from ....coding import Coder, Decoder, Encoder, Integers
from ....distributions import Categorical
from ....errors import AnyOrderError, FormatError, InputError
from ....inference import walk
from ....models.any_order import AnyOrderModel
from ....models.conditionals import NetworkDistributions
from ....models.trained import rebuilt, tensors_of
from ....networks import IntegerColumns, exactly
from ....schema import Category, Mask, Ordinal, Schema, Variable
from ....subsets import CanonicalOrder, Question
from ....training import Check, Edges, Objective, Recipe, fit
from .cell_formats import (
    ELSEWHERE,
    GAP,
    ODD,
    SPECIAL,
    CellFormat,
    Coded,
    CodedColumn,
    DictionaryWords,
    byte_planes,
    from_planes,
    learn_coded_column,
    learn_format,
    remembers,
)

Texts = NDArray[np.object_]  # of str, or None for a gap
LANE = 256  # at most so many rows follow each other; a part of the format, as `lanes` is
ROWS_TOGETHER = 512  # rows at a time where none follows another; a part of the format


@final
@dataclass(frozen=True)
class CodedCells:
    """What a block of rows is to the codec: numbers, and where there are gaps or odd cells, (row, column)."""

    number: Integers
    kind: Integers

    @classmethod
    def none(cls, rows: int, columns: int) -> "CodedCells":
        return cls(np.zeros((rows, columns), dtype=np.int64), np.zeros((rows, columns), dtype=np.int64))


@final
@dataclass(frozen=True)
class TableCodec(Codec):
    """Codes those columns of a table that have a `Column`; what the others hold is not its business."""

    names: tuple[str, ...]
    columns: tuple[CodedColumn | None, ...]
    told: tuple[int, ...]  # columns whose cell in the row before is told, by their place among the coded ones
    model: AnyOrderModel

    kind = "table codec"

    @property
    def most_rows(self) -> int:
        """Of a block."""
        return 2**17

    @property
    def coded(self) -> list[tuple[int, CodedColumn]]:
        """The columns that are coded, and their places in the table."""
        return [(place, column) for place, column in enumerate(self.columns) if column is not None]

    def read(self, texts: Sequence[Texts]) -> CodedCells:
        """Texts of all columns as numbers of the coded ones."""
        read = [numbers_of(column.format, texts[place]) for place, column in self.coded]
        return CodedCells(np.stack([number for number, _ in read], axis=1), np.stack([kind for _, kind in read], axis=1))

    def written(self, cells: CodedCells, odd: Sequence[Sequence[str]]) -> list[Texts]:
        """Numbers as texts, odd cells filled in, column by column."""
        return [texts_of_cells(column, cells.number[:, k], cells.kind[:, k], odd[k]) for k, (_, column) in enumerate(self.coded)]

    def encode(self, cells: CodedCells) -> tuple[bytes, list[float]]:
        """The stream, and how many bits each column takes of it."""
        coder, spent = Encoder(), [0.0] * len(self.coded)
        self._code(coder, cells, spent)
        return coder.content(), spent

    def decode(self, content: bytes, rows: int) -> CodedCells:
        return self._code(Decoder(content), CodedCells.none(rows, len(self.coded)), [0.0] * len(self.coded))

    @property
    def network(self) -> nn.Module:
        return self.model

    def calls(self, rows: int) -> int:
        """How often the network is called for so many rows in one stream."""
        return len(self.coded) * sum(1 for _ in turns(rows, self.uses_previous_row))

    def labels(self) -> list[str]:
        return [self.names[place] for place, _ in self.coded]

    def content(self) -> bytes:
        return table_to_bytes(self)

    @classmethod
    def rebuilt(cls, about: dict[str, Any], tensors: dict[str, Tensor], name: str) -> "TableCodec":
        return table_from_bytes(about, tensors, name)

    def fingerprint(self) -> str:
        return table_fingerprint(self)

    def _code(self, coder: Coder, cells: CodedCells, spent: list[float]) -> CodedCells:
        rows, count = cells.number.shape
        out = CodedCells.none(rows, count)
        before = np.full((lanes(rows, self.uses_previous_row), count), [column.start for _, column in self.coded], dtype=np.int64)
        levels = torch.full((len(before), count), -1)
        with exactly():
            for some in turns(rows, self.uses_previous_row):
                given = CodedCells(cells.number[some], cells.kind[some])
                before, levels = before[: len(some)], levels[: len(some)]
                new = self._row(coder, given, before, levels, spent)
                out.number[some], out.kind[some] = new.number, new.kind
        return out

    def _row(self, coder: Coder, cells: CodedCells, before: Integers, levels: Tensor, spent: list[float]) -> CodedCells:
        """One row of every lane; `before` and `levels` become what the next row is told."""
        rows, count = cells.number.shape
        out, x, now = CodedCells.none(rows, count), torch.zeros(rows, count), torch.full((rows, count), -1)
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
    def uses_previous_row(self) -> bool:
        return bool(self.told) or any(column.change for _, column in self.coded)


def untrained_columns(columns: Sequence[CodedColumn], told: Sequence[int], width: int, seed: int) -> AnyOrderModel:
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


def placed(coder: Coder, column: CodedColumn, wanted: Coded, number: Integers, before: Integers) -> Integers:
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
            assert isinstance(part, NetworkDistributions)
            place = int(at[0, 0])
            return part.params[:, place, : part.levels[place]] if part.levels else part.params[:, place]
    raise IndexError(variable)


def lanes(rows: int, uses_previous_row: bool) -> int:
    return -(-rows // min(LANE, max(16, 3 * math.isqrt(rows) // 2))) if uses_previous_row else min(rows, ROWS_TOGETHER)


def turns(rows: int, uses_previous_row: bool) -> Iterator[Integers]:
    """The rows that are coded together: the next of every lane, or simply the next ones."""
    if not uses_previous_row:
        for start in range(0, rows, ROWS_TOGETHER):
            yield np.arange(start, min(start + ROWS_TOGETHER, rows))
    elif rows:
        length = -(-rows // lanes(rows, uses_previous_row))
        first = np.arange(0, rows, length)
        for turn in range(length):
            yield first[first + turn < rows] + turn


# Texts


def numbers_of(form: CellFormat, texts: Texts) -> tuple[Integers, Integers]:
    """Numbers and kinds of cells."""
    code, different = pd.factorize(texts)  # None is -1
    number, known = form.numbers(list(different))
    number, known = np.append(number, 0), np.append(np.where(known == 1, 0, ODD), GAP)
    return number[code], known[code]


def texts_of_cells(column: CodedColumn, number: Integers, kind: Integers, odd: Sequence[str]) -> Texts:
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


TABLE_CODEC_STEPS = 1500  # of training, at an effort of 1
SMALLEST_TABLE = 4096  # bytes that a codec takes at least
MOST_HELD_OUT_ROWS = 1024
WIDTHS = {100_000: 48, 40_000: 32, 4_000: 24, 0: 8}  # what a network may take, by the rows it is learned from
RARE_WORD = 1e-2  # how often a symbol that never came is thought to have come


@final
@dataclass(frozen=True)
class KnownRows(Objective):
    """All columns of a row that is known, for networks that look only at what comes before each."""

    def sample(self, present: Mask, rng: Generator) -> Edges:
        return Edges(present, present.float())

    def nats(self) -> Objective:
        return self


def fit_table_codec(
    names: Sequence[str],
    texts: Sequence[Texts],
    effort: float = 1.0,
    seed: int = 0,
    progress: Callable[[Check], None] | None = None,
) -> TableCodec:
    """A codec for tables with such columns; columns of texts that hardly repeat are left to zstd."""
    if not texts or not len(texts[0]):
        raise InputError("There are no rows to learn a codec from.")
    found = [learned(cells) for cells in texts]
    some = [each for each in found if each is not None]
    if not some:
        raise InputError("No column of the table can be coded: their cells are texts that hardly repeat.")
    columns = [each.column for each in some]
    told = tuple(k for k, each in enumerate(some) if remembers(each.level))
    model = untrained_columns(columns, told, next(width for rows, width in WIDTHS.items() if len(texts[0]) >= rows), seed)
    start_from(model, [each.symbol for each in some])
    x = torch.from_numpy(np.stack([each.symbol for each in some], axis=1)).float()
    previous = [np.concatenate([[-1], some[k].level[:-1]]) for k in told]
    seen = [*previous, *(each.level for each in some if each.column.change)]
    context = torch.from_numpy(np.stack(seen, axis=1)) if seen else None
    recipe = recipe_for(len(x), max(1, round(TABLE_CODEC_STEPS * effort)), seed)
    fitted = fit(model, x, torch.ones_like(x, dtype=torch.bool), recipe, context, progress)
    if fitted.stopped == "interrupted":
        raise KeyboardInterrupt
    assert isinstance(fitted.model.network, IntegerColumns)
    frozen = AnyOrderModel(model.schema, model.heads, fitted.model.network.freeze()).eval()
    return TableCodec(tuple(names), tuple(None if each is None else each.column for each in found), told, frozen)


def fit_own_table_codec(
    names: Sequence[str],
    texts: Sequence[Texts],
    otherwise: int,
    effort: float = 1.0,
    seed: int = 0,
    progress: Callable[[Check], None] | None = None,
) -> TableCodec | None:
    """A codec for this table alone, if it could pay to keep it with it: without one it takes `otherwise` bytes."""
    if otherwise < 2 * SMALLEST_TABLE:
        return None
    goal = Goal(otherwise - SMALLEST_TABLE, len(texts[0]) if texts else 0, progress)
    try:
        return fit_table_codec(names, texts, effort, seed, goal)
    except AnyOrderError:  # nothing to learn from, or too little: it must do without
        return None


class Learned(NamedTuple):
    """A column, and the symbols and levels of its cells."""

    column: CodedColumn
    symbol: Integers
    level: Integers


def learned(texts: Texts) -> Learned | None:
    """How a column is coded, unless it is text that hardly repeats."""
    code, different = pd.factorize(texts)
    if not len(different):
        return None
    form = learn_format(list(different), np.bincount(code[code >= 0]))
    if isinstance(form, DictionaryWords) and 2 * len(form.words) > len(texts) > 2:
        return None
    number, kind = numbers_of(form, texts)
    column = learn_coded_column(form, number, kind)
    if column is None:
        return None
    symbol = column.coded(number, kind, before_of(column, number, kind)).symbol
    return Learned(column, symbol, column.level(number, symbol))


def before_of(column: CodedColumn, number: Integers, kind: Integers) -> Integers:
    """For every cell the last number in a row before it."""
    last = np.maximum.accumulate(np.where(kind == 0, np.arange(len(number)), -1))
    last = np.concatenate([[-1], last[:-1]])
    return np.where(last >= 0, number[last.clip(0)], column.start)


def start_from(model: AnyOrderModel, symbols: Sequence[Integers]) -> None:
    """Before it has learned anything, the network says how frequent every symbol is."""
    network = model.network
    assert isinstance(network, IntegerColumns)
    for (start, stop), symbol in zip(pairwise(network.starts), symbols, strict=True):
        counts = np.bincount(symbol, minlength=stop - start) + RARE_WORD
        network.start.data[start:stop] = torch.from_numpy(np.log(counts / counts.max())).float()


def recipe_for(rows: int, steps: int, seed: int) -> Recipe:
    return Recipe(
        KnownRows(),
        steps,
        batch_size=min(256, max(rows // 2, 1)),
        learning_rate=4e-3,
        weight_decay=0.0,
        average=0.99,
        held_out=min(0.1, MOST_HELD_OUT_ROWS / rows),
        check_every=max(min(steps, 20), steps // 10),
        patience=40,
        seed=seed,
        device="cpu",
    )


TABLE_CODEC_FORMAT = 1


def table_to_bytes(codec: TableCodec) -> bytes:
    """The same bytes for the same codec. The values of columns are tensors of bytes: their zeros lie together."""
    columns = [None if column is None else column.to_json() for column in codec.columns]
    about = {
        "format": TABLE_CODEC_FORMAT,
        "kind": TableCodec.kind,
        "names": list(codec.names),
        "columns": columns,
        "told": list(codec.told),
        "answers": proof_answers(codec.model),
        "network": {"kind": codec.model.network.kind, **codec.model.network.sizes},
    }
    tensors = {f"model.{name}": tensor for name, tensor in codec.model.state_dict().items()}
    for place, column in enumerate(codec.columns):
        if column is not None and column.values is not None:
            tensors[f"values.{place}"] = torch.frombuffer(bytearray(byte_planes(column.values)), dtype=torch.uint8)
    return save(tensors, {"anyorder": json.dumps(about, separators=(",", ":"))})


def table_from_bytes(about: dict[str, Any], tensors: dict[str, Tensor], name: str) -> TableCodec:
    """What was written, proved to be exact and tried on this machine."""
    if int(about["format"]) > TABLE_CODEC_FORMAT:
        raise FormatError(
            f"{name} has format {about['format']}; this version reads up to {TABLE_CODEC_FORMAT}. Upgrade anyorder."
        )
    columns = [read_column(item, tensors.get(f"values.{place}")) for place, item in enumerate(about["columns"])]
    names = tuple(str(label) for label in about["names"])
    some, told = [column for column in columns if column is not None], tuple(int(k) for k in about["told"])
    if len(names) != len(columns) or not some or sorted(set(told) & set(range(len(some)))) != list(told):
        raise FormatError(f"{name} contradicts itself: it does not describe its columns.")
    codec = TableCodec(
        names, tuple(columns), told, rebuilt_model(name, some, told, about["network"], tensors_of("model", tensors))
    )
    check_proof(name, codec.model, about["answers"])
    return codec


def read_column(item: dict[str, Any] | None, values: Tensor | None) -> CodedColumn | None:
    return None if item is None else CodedColumn.from_json(item, None if values is None else from_planes(bytes(values.numpy())))


def rebuilt_model(
    name: str, columns: list[CodedColumn], told: tuple[int, ...], network: dict[str, Any], tensors: dict[str, Tensor]
) -> AnyOrderModel:
    expected = untrained_columns(columns, told, 1, 0).describe()
    sizes = {**expected["network"], "width": int(network["width"]), "frozen": True}
    if network != sizes:
        raise FormatError(f"{name} contradicts itself: its network is not one of its columns.")
    model = rebuilt(name, {"kind": AnyOrderModel.kind, **expected, "network": sizes}, tensors)
    assert isinstance(model, AnyOrderModel)
    assert isinstance(model.network, IntegerColumns)
    model.network.check_bound()
    return model


def table_fingerprint(codec: TableCodec) -> str:
    """Of all that decoding depends on."""
    columns = [None if c is None else [sorted(c.to_json().items()), written_values(c).hex()] for c in codec.columns]
    sizes = codec.model.network.sizes
    return digest_of([columns, codec.told], [(codec.model, [[sizes[key] for key in ("width", "context", "after")]])])


def written_values(column: CodedColumn) -> bytes:
    return b"" if column.values is None else byte_planes(column.values)
