"""What is known of one record, in the words of the table: values, ranges and sets, and rows that are drawn within them."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from .data import Between, OneOf, TableEncoder
from .data.columns import NumberColumn
from .data.table import encode_value
from .errors import InputError
from .inference import Allowed, Interval, Members, within
from .model import Model

PARTICLES = 512  # rows in which evidence that leaves a value open is given values


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
        if isinstance(value, Between):
            open_[place] = interval(column, value)
        elif isinstance(value, OneOf):
            open_[place] = Members(tuple(dict.fromkeys(encode_value(column, one) for one in value.values)))
        else:
            x[0, place] = encode_value(column, value)
    return Evidence(x, x.isfinite(), open_)


def known_of(encoder: TableEncoder, row: Mapping[str, Any], target: str) -> dict[str, Any]:
    """What a row of the table says beside the target: no gaps, and nothing of columns that were left out.

    The target's own value is what is asked for; a range or a set of it would be a second question.
    """
    if isinstance(row.get(target), Between | OneOf):
        raise InputError(f"In conditional({row!r}, {target!r}), {target!r} stands 2 times. Name every column once.")
    nothing = lambda value: value is None or (not isinstance(value, Between | OneOf) and value != value)  # noqa: E731
    return {name: value for name, value in row.items() if name not in (target, *encoder.left_out) and not nothing(value)}


def as_given(encoder: TableEncoder, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those values that come back as they are, however fine the model's steps: what a column of numbers could hold."""
    numbers = {column.name: column for column in encoder.columns if isinstance(column, NumberColumn)}
    return {name: value for name, value in given.items() if name in numbers and numbers[name].holds(value)}


def interval(column: Any, value: Between) -> Interval:
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
    particles = within(model, x.repeat(many, 1), known.repeat(many, 1), evidence.open, rng)
    if particles.effective < min(n, 100) / 2:
        warnings.warn(
            f"The ranges and sets given are so unlikely together that {many} tries are worth only "
            f"{particles.effective:.0f} rows: many of the {n} rows will repeat values.",
            stacklevel=3,
        )
    chosen = particles.x if len(evidence.open) == 1 else particles.resampled(n, rng)
    return chosen, particles.given[:n]


def weighted_rows(model: Model, evidence: Evidence, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """(x, known, weight): rows that stand for the evidence."""
    if not evidence.open:
        return evidence.x, evidence.known, torch.ones(1)
    x, known = evidence.x.repeat(PARTICLES, 1), evidence.known.repeat(PARTICLES, 1)
    x, known, weight, _ = within(model, x, known, evidence.open, rng)
    return x, known, weight.float()
