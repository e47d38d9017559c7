"""What is known of one record, in the words of the table: values, ranges and sets, and rows that are drawn within them."""

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from ...distributions import Distribution
from ...errors import InputError
from ...inference import Allowed, Interval, Members, sample_constrained
from ...models.any_order import Model
from ...models.counts import LEAST_MASS, Counted, posterior
from ...models.row_index import FEWEST_RECURRING
from ...schema import Mask, spacing_of
from ...subsets import Question, ask
from .columns import CategoryColumn, Column, NumberColumn
from .dataframes import Frame, as_frame
from .encoder import TableEncoder, encode_value
from .ranges import Between, OneOf

PARTICLES = 512  # rows in which evidence that leaves a value open is given values by the model
MANY_WITNESSES, WITNESSES_OF_ANSWER = (
    64,
    128,
)  # matching training rows whose values are as good as the model's, and how many of them are asked


class Evidence(NamedTuple):
    """One row: values that are known, and cells known only to lie in a range or a set."""

    x: Tensor
    known: Tensor
    open: dict[int, Allowed]


def read_evidence(encoder: TableEncoder, values: Mapping[str, Any]) -> Evidence:
    """One row of known values, the rest unknown."""
    x = torch.full((1, len(encoder.columns)), torch.nan)
    open_: dict[int, Allowed] = {}
    for name, value in values.items():
        place = encoder.schema.index(name)
        column = encoder.columns[place]
        if isinstance(value, Between | OneOf):
            open_[place] = allowed_values(column, value)
        else:
            x[0, place] = encode_value(column, value)
        warn_if_outside(column, value)
    return Evidence(x, x.isfinite(), open_)


def allowed_values(column: Column, what: Any) -> Allowed:
    """What a value, a range or a set means in model space."""
    if isinstance(what, Between) and isinstance(column, CategoryColumn) and column.holds_numbers:
        what = OneOf(levels_within(column, what))
    if isinstance(what, Between):
        return allowed_interval(column, what)
    values = what.values if isinstance(what, OneOf) else (what,)
    return Members(tuple(dict.fromkeys(encode_value(column, one) for one in values)))


def warn_if_outside(column: Column, value: Any) -> None:
    """Say so if a value, or all of a range or a set, lies beyond all that was seen: the model can only guess there."""
    if not isinstance(column, NumberColumn) or len(column.knots) < 2:
        return
    seen = [column.place(end) for end in (column.knots[0], column.knots[-1])]
    if isinstance(value, Between):
        ends = [None if end is None else encode_value(column, end) for end in (value.low, value.high)]
    else:
        values = [encode_value(column, one) for one in (value.values if isinstance(value, OneOf) else (value,))]
        ends = [min(values), max(values)]
    low, high = (math.inf * sign if end is None else end for end, sign in zip(ends, (-1, 1), strict=True))
    step = column.step / 2
    if high < seen[0] - step or low > seen[1] + step:
        first, last = column.decode(np.array(seen))
        text = (
            f"{value.low} to {value.high}" if isinstance(value, Between) else value.values if isinstance(value, OneOf) else value
        )
        warnings.warn(
            f"{column.name} = {text} lies outside what was seen in training, {first} to {last}: the answer is a guess.",
            stacklevel=4,
        )


def known_of(encoder: TableEncoder, row: Mapping[str, Any], target: str) -> dict[str, Any]:
    """What a row of the table says beside the target: no gaps, and nothing of columns that were left out.

    The target's own value is what is asked for; a range or a set of it would be a second question.
    """
    if isinstance(row.get(target), Between | OneOf):
        raise InputError(f"In conditional({row!r}, {target!r}), {target!r} stands 2 times. Name every column once.")
    nothing = lambda name, value: not isinstance(value, Between | OneOf) and encoder.says_nothing(name, value)  # noqa: E731
    return {name: value for name, value in row.items() if name not in (target, *encoder.left_out) and not nothing(name, value)}


def levels_within(column: CategoryColumn, what: Between) -> tuple[Any, ...]:
    """The levels of codes that are numbers in a range."""
    found = column.within(what.low, what.high)
    if not found:
        raise InputError(f"No value of column {column.name!r} lies in {what}: it {column.says()}.")
    return found


def narrowed(encoder: TableEncoder, given: Mapping[str, Any]) -> TableEncoder:
    """The encoder whose columns take no values but those given, where model space does not tell them apart."""
    return replace(encoder, columns=tuple(narrowed_column(c, given[c.name]) if c.name in given else c for c in encoder.columns))


def narrowed_column(column: Column, what: Any) -> Column:
    if isinstance(column, CategoryColumn):
        values = levels_within(column, what) if isinstance(what, Between) else what.values if isinstance(what, OneOf) else [what]
        pairs = [pair for pair in zip(column.rare, column.shares, strict=True) if pair[0] in values]
        return replace(column, rare=tuple(v for v, _ in pairs), shares=tuple(s for _, s in pairs))
    if isinstance(column, NumberColumn) and column.only and isinstance(what, Between):
        low, high = (math.inf * sign if end is None else end for end, sign in zip((what.low, what.high), (-1, 1), strict=True))
        return replace(column, only=tuple(v for v in column.only if low <= v <= high))
    return replace(column, only=()) if isinstance(column, NumberColumn) else column


def as_given(encoder: TableEncoder, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those values that come back as they are, however fine the model's steps: what a column of numbers could hold."""
    numbers = {column.name: column for column in encoder.columns if isinstance(column, NumberColumn)}
    return {name: value for name, value in given.items() if name in numbers and numbers[name].holds(value)}


def allowed_interval(column: Any, value: Between) -> Interval:
    if not isinstance(column, NumberColumn):
        raise InputError(f"Column {column.name!r} is a category and has no ranges. Use OneOf((...)).")
    low = -math.inf if value.low is None else encode_value(column, value.low, np.ceil)
    high = math.inf if value.high is None else encode_value(column, value.high, np.floor)
    if low > high:
        raise InputError(
            f"No value of column {column.name!r} lies in {value}: the model tells values apart in steps of {column.spacing:g}."
        )
    return Interval(low, high)


def only_values(encoder: TableEncoder, values: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """One record of known values; ranges and sets are refused."""
    evidence = read_evidence(encoder, values)
    if evidence.open:
        name = encoder.columns[next(iter(evidence.open))].name
        raise InputError(f"{name!r} is known to be in a range or a set; here a value is needed. Give it, or leave it out.")
    return evidence.x, evidence.known


def rows_within(model: Model, evidence: Evidence, n: int, rng: Generator) -> tuple[Tensor, Tensor]:
    """`n` rows in which what is open has values; weighed, and drawn by weight, if several are open."""
    x, known = evidence.x, evidence.known
    if not evidence.open or not n:
        return x.repeat(n, 1), known.repeat(n, 1)
    many = n if len(evidence.open) == 1 else max(8 * n, PARTICLES)
    particles = sample_constrained(model, x.repeat(many, 1), known.repeat(many, 1), evidence.open, rng)
    if particles.effective < min(n, 100) / 2:
        warnings.warn(
            f"The ranges and sets given are so unlikely together that {many} tries are worth only "
            f"{particles.effective:.0f} rows: many of the {n} rows will repeat values.",
            stacklevel=3,
        )
    chosen = particles.x if len(evidence.open) == 1 else particles.resampled(n, rng)
    return chosen, particles.given[:n]


class Matches(NamedTuple):
    """What training rows that match the evidence hold in the place of what is asked for."""

    values: Float[Tensor, " row"]  # in model space, without gaps
    exactly: bool  # whether numbers match only if they are the same, or already in the same bin


class Grounded(NamedTuple):
    """The distribution of one cell: one, or several that count as much as their weights say; and the training rows
    that it rests on.
    """

    distribution: Distribution
    weight: Float[Tensor, " distributions"]
    matches: Matches | None  # None if no rows were kept


@torch.no_grad()
def distribution_given(model: Model, evidence: Evidence, place: int, rng: Generator) -> Grounded:
    """The distribution of one variable given the evidence, and the training rows that match it."""
    if not isinstance(model, Counted):
        x, known, weight = weighted_rows(model, evidence, rng)
        return Grounded(model(x, known).distribution(place), weight, None)
    same, alike = (rows_like(model, evidence, place, exactly) for exactly in (True, False))
    exactly = len(same) >= FEWEST_RECURRING or len(same) == len(alike)
    matches = Matches(model.rows[same if exactly else alike, place], exactly)
    if not evidence.open:
        return Grounded(model(evidence.x, evidence.known).distribution(place), torch.ones(1), matches)
    return Grounded(*distribution_of_open(model, evidence, place, alike, rng), matches)


def rows_like(model: Counted, evidence: Evidence, place: int, exactly: bool) -> Int[Tensor, " row"]:
    """The training rows that match the evidence and hold what is asked for."""
    spacing = [spacing_of(variable.domain) for variable in model.schema]
    allowed = {i: rule.holds(model.rows[:, i], spacing[i]) for i, rule in evidence.open.items()}
    rows = model.matching(evidence.x, evidence.known, allowed, exactly)
    return rows[model.held[rows, place].bool()]


def distribution_of_open(
    model: Counted, evidence: Evidence, place: int, alike: Int[Tensor, " row"], rng: Generator
) -> tuple[Distribution, Float[Tensor, " distributions"]]:
    """The distribution of a variable where some of the evidence is open, as a mixture over rows in which it has values.

    Those are the values of training rows that match, if there are many, else values that the model draws. What it says to them
    on average is then corrected by the counts among all rows that match, as in `Counted`.
    """
    if len(alike) < MANY_WITNESSES:
        x, known, weight = weighted_rows(model.model, evidence, rng)
        theirs = x
    else:
        some = alike[torch.linspace(0, len(alike) - 1, min(len(alike), WITNESSES_OF_ANSWER)).round().long()]
        is_open = torch.zeros(len(model.schema), dtype=torch.bool)
        is_open[list(evidence.open)] = True
        x, known = torch.where(is_open, model.rows[some], evidence.x), (is_open | evidence.known).expand(len(some), -1)
        weight = torch.full((len(some),), 1 / len(some))
        theirs = torch.where(known, model.rows[some], x)  # known numbers are only near to those of matching rows
    distribution = model.model(x, known).distribution(place)
    if len(alike) < FEWEST_RECURRING:
        return distribution, weight
    mass = model.index.masses(distribution, place)
    other = (theirs != x).logical_and(known).any()
    expected = weight @ (model.index.masses(model.model(theirs, known).distribution(place), place) if other else mass)
    expected = expected.clamp(min=LEAST_MASS)[None]
    ratio = (posterior(model.count(alike, place), expected, model.worth[place]) / expected).expand(len(mass), -1)
    weight = weight * (mass * ratio).sum(-1)
    return model.index.reweighted(distribution, ratio, place), weight / weight.sum()


def weighted_rows(model: Model, evidence: Evidence, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """(x, known, weight): rows that stand for the evidence."""
    if not evidence.open:
        return evidence.x, evidence.known, torch.ones(1)
    x, known = evidence.x.repeat(PARTICLES, 1), evidence.known.repeat(PARTICLES, 1)
    x, known, weight, _ = sample_constrained(model, x, known, evidence.open, rng)
    return x, known, weight.float()


def ask_table(encoder: TableEncoder, table: Frame, present: Mask, target: Any, given: Iterable[Any]) -> Question:
    """The question about every row. The table must have the targets; rows in which all of them are gaps are told of."""
    if target is None:
        return ask(encoder.schema, present, None, given)
    if not isinstance(target, Iterable):
        raise InputError(f"Got target={target!r}; expected a list of names of columns. Write [{target!r}].")
    names = target if isinstance(target, str) else tuple(target)
    question = ask(encoder.schema, present, names, given)
    columns = as_frame(table, names=encoder.names).columns
    absent = [name for name in names if str(name) not in columns]
    if absent:
        raise InputError(f"The table has no column {absent[0]!r}, which is a target: there is nothing to score. Add its values.")
    empty = int((~question.target.any(-1)).sum())
    if empty:
        warnings.warn(f"In {empty} of {len(question)} rows every target is a gap: nothing to score, log p = 0.", stacklevel=3)
    return question
