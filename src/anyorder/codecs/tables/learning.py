"""Codecs learned from tables: columns first, then one network for all of them, with whole numbers from the first step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
import pandas as pd
import torch
from torch import Generator

from ...coding import Integers
from ...errors import AnyOrderError, InputError
from ...model import AnyOrderModel
from ...networks import IntegerColumns
from ...schema import Mask
from ...training import Check, Recipe, fit
from ...training.edges import Edges, EdgeSampler
from ..goal import Goal
from .codec import TableCodec, Texts, numbers_of, untrained
from .columns import Column, learn_column, remembers
from .formats import Words, learn_format

STEPS = 1500  # of training, at an effort of 1
SMALLEST = 4096  # bytes that a codec takes at least
MOST_HELD_OUT = 1024
WIDTHS = {100_000: 48, 40_000: 32, 4_000: 24, 0: 8}  # what a network may take, by the rows it is learned from
RARE = 1e-2  # how often a symbol that never came is thought to have come


@final
@dataclass(frozen=True)
class KnownRows(EdgeSampler):
    """All columns of a row that is known, for networks that look only at what comes before each."""

    def sample(self, present: Mask, rng: Generator) -> Edges:
        return Edges(present, present.float())

    def nats(self) -> EdgeSampler:
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
    model = untrained(columns, told, next(width for rows, width in WIDTHS.items() if len(texts[0]) >= rows), seed)
    start_from(model, [each.symbol for each in some])
    x = torch.from_numpy(np.stack([each.symbol for each in some], axis=1)).float()
    previous = [np.concatenate([[-1], some[k].level[:-1]]) for k in told]
    seen = [*previous, *(each.level for each in some if each.column.change)]
    context = torch.from_numpy(np.stack(seen, axis=1)) if seen else None
    recipe = recipe_for(len(x), max(1, round(STEPS * effort)), seed)
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
    if otherwise < 2 * SMALLEST:
        return None
    goal = Goal(otherwise - SMALLEST, len(texts[0]) if texts else 0, progress)
    try:
        return fit_table_codec(names, texts, effort, seed, goal)
    except AnyOrderError:  # nothing to learn from, or too little: it must do without
        return None


class Learned(NamedTuple):
    """A column, and the symbols and levels of its cells."""

    column: Column
    symbol: Integers
    level: Integers


def learned(texts: Texts) -> Learned | None:
    """How a column is coded, unless it is text that hardly repeats."""
    code, different = pd.factorize(texts)
    if not len(different):
        return None
    form = learn_format(list(different), np.bincount(code[code >= 0]))
    if isinstance(form, Words) and 2 * len(form.words) > len(texts) > 2:
        return None
    number, kind = numbers_of(form, texts)
    column = learn_column(form, number, kind)
    if column is None:
        return None
    symbol = column.coded(number, kind, before_of(column, number, kind)).symbol
    return Learned(column, symbol, column.level(number, symbol))


def before_of(column: Column, number: Integers, kind: Integers) -> Integers:
    """For every cell the last number in a row before it."""
    last = np.maximum.accumulate(np.where(kind == 0, np.arange(len(number)), -1))
    last = np.concatenate([[-1], last[:-1]])
    return np.where(last >= 0, number[last.clip(0)], column.start)


def start_from(model: AnyOrderModel, symbols: Sequence[Integers]) -> None:
    """Before it has learned anything, the network says how frequent every symbol is."""
    network = model.network
    assert isinstance(network, IntegerColumns)
    for (start, stop), symbol in zip(pairwise(network.starts), symbols, strict=True):
        counts = np.bincount(symbol, minlength=stop - start) + RARE
        network.start.data[start:stop] = torch.from_numpy(np.log(counts / counts.max())).float()


def recipe_for(rows: int, steps: int, seed: int) -> Recipe:
    return Recipe(
        KnownRows(),
        steps,
        batch_size=min(256, max(rows // 2, 1)),
        learning_rate=4e-3,
        weight_decay=0.0,
        average=0.99,
        held_out=min(0.1, MOST_HELD_OUT / rows),
        check_every=max(min(steps, 20), steps // 10),
        patience=40,
        seed=seed,
        device="cpu",
    )
