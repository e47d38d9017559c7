"""Answers in the words of the table: the law of one cell, surprises, spread between orders."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from .arguments import check_share
from .data import Between, OneOf
from .data.columns import CategoryColumn, Column, NumberColumn
from .data.table import encode_value
from .errors import InputError
from .evidence import Matches, allowed_values
from .heads import DiscreteLaw, Law


class Anomalies(NamedTuple):
    """Nats of surprise: per row, and per cell given the rest of its row (NaN for gaps)."""

    rows: NDArray[np.float64]
    cells: NDArray[np.float64]
    columns: list[str]


class Consistency(NamedTuple):
    """How much log p of the same row varies with the order in which its columns are visited, in nats."""

    log_probs: NDArray[np.float64]  # (order, row)

    @property
    def spread(self) -> float:
        """The standard deviation between orders, averaged over rows: 0 for a perfectly consistent model."""
        return float(self.log_probs.std(axis=0, ddof=1).mean()) if len(self.log_probs) > 1 else 0.0


class Influence(NamedTuple):
    """What one condition did to an answer."""

    condition: str
    value: Any
    moved: float  # by how much probability the answer without it differs, 0 to 1
    without: Any  # the likeliest category, or the median of a number, without it
    answer: Any  # and with it


@final
@dataclass(frozen=True)
class Answer:
    """The law of one cell, in the column's own unit: one law, or several that count as much as their weights say."""

    law: Law
    weight: Float[Tensor, " laws"]
    matches: Matches | None  # the training rows it rests on; None if no rows were kept
    column: Column
    given: Mapping[str, Any] = field(default_factory=dict)
    again: Callable[[Mapping[str, Any]], "Answer"] | None = None  # the same question, given something else

    @property
    def is_category(self) -> bool:
        return isinstance(self.law, DiscreteLaw)

    def mean(self) -> Any:
        """Not rounded to the values of the column; of dates it is."""
        column = self._number("mean() needs a number. Use mode() or pmf()")
        return column.best_guess(np.array([float((self.weight * self.law.mean()).sum())])).tolist()[0]

    def mode(self) -> Any:
        """The likeliest category, the median of a number."""
        if isinstance(self.law, DiscreteLaw):
            return max(self.pmf().items(), key=lambda item: item[1])[0]
        return self.quantile(0.5)

    def pmf(self) -> dict[Any, float]:
        """The probability of every category."""
        if not isinstance(self.law, DiscreteLaw) or not isinstance(self.column, CategoryColumn):
            raise InputError(f"Column {self.column.name!r} is a number: use quantile(q), interval(0.9) or prob(value).")
        table = (self.weight[:, None] * self.law.pmf()).sum(0).tolist()
        return dict(zip(self.column.levels, table, strict=False))

    @property
    def rows(self) -> int | None:
        """How many training rows match what is given; None if the model keeps no rows.

        Numbers match if they are the same; where fewer than ten rows have the same, if they are about the same.
        """
        return None if self.matches is None else len(self.matches.values)

    def share(self, what: Any) -> float | None:
        """In which share of the matching training rows the column has this value, or lies in this range or set."""
        if self.matches is None or not len(self.matches.values):
            return None
        step = self.column.spacing / self.column.scale if isinstance(self.column, NumberColumn) else 1.0
        return float(allowed_values(self.column, what).holds(self.matches.values, step).float().mean())

    def explain(self) -> list["Influence"]:
        """What every condition did: how far the answer would be from this one without it. The strongest comes first."""
        if self.again is None:
            raise InputError("This answer does not know its question. Ask by model.conditional(row, target).")
        found = []
        for name, value in self.given.items():
            other = self.again({k: v for k, v in self.given.items() if k != name})
            found.append(Influence(name, value, self._apart(other), other.mode(), self.mode()))
        return sorted(found, key=lambda one: -one.moved)

    def _apart(self, other: "Answer") -> float:
        """The largest difference between the two probabilities of anything: half the sum over levels, or over twentieths."""
        if self.is_category:
            return sum(abs(p - other.pmf()[level]) for level, p in self.pmf().items()) / 2
        places = sorted({answer._place(q / 20) for answer in (self, other) for q in range(1, 20)})
        mine, theirs = ([0.0, *(answer._cdf(place) for place in places), 1.0] for answer in (self, other))
        return float(np.abs(np.diff(mine) - np.diff(theirs)).sum() / 2)

    def prob(self, value: Any) -> float:
        """The probability of one value, of a number as it would be written down; or of a range or a set."""
        if isinstance(value, Between | OneOf):
            allowed = allowed_values(self.column, value)
            return float((self.weight * allowed.mass(self.law)).sum().clamp(0.0, 1.0))
        return float((self.weight * self.law.log_prob(self._all(encode_value(self.column, value))).exp()).sum())

    def cdf(self, value: Any) -> float:
        """P(X <= value)."""
        self._number("cdf() needs a number. Use pmf()")
        return self._cdf(encode_value(self.column, value, np.floor))

    def quantile(self, q: float) -> Any:
        self._number("quantile() needs a number. Use mode() or pmf()")
        check_share("q", q)
        return self._own(self._place(q))

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """The middle `level` of the probability."""
        check_share("level", level)
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def bins(self, count: int = 16) -> list[tuple[Any, Any, float]]:
        """About `count` neighbouring ranges with round ends, and how likely each is; the upper end belongs to the next."""
        column = self._number("bins() needs a number. Use pmf()")
        low, high = (float(column.number(np.array([self._place(q)]))[0]) for q in (0.01, 0.99))
        step = round_step((high - low) / max(count, 1), column.spacing)
        first, last = (math.floor(end / step + 1e-4 * column.spacing / step) for end in (low, high))  # float32 may fall short
        edges = [k * step for k in range(first, last + 2)]
        below = [0.0, *(self._cdf(column.place(e - column.spacing / 2, np.floor)) for e in edges[1:-1]), 1.0]
        own = column.decode(np.array([column.place(e, np.round) for e in edges]))
        return [(own[k], own[k + 1], below[k + 1] - below[k]) for k in range(len(edges) - 1)]

    def _place(self, q: float) -> float:
        each = self.law.quantile(torch.full_like(self.weight, q))
        return float(each[0]) if len(each) == 1 else self._between(float(each.min()), float(each.max()), q)

    def _between(self, low: float, high: float, q: float) -> float:
        """The quantile of the mixture lies between those of its parts: bisection down to half a step of the lattice."""
        assert isinstance(self.column, NumberColumn)
        step = self.column.spacing / self.column.scale
        first, last = round(low / step) - 1, round(high / step)
        while last - first > 1:
            middle = (first + last) // 2
            first, last = (first, middle) if self._cdf(middle * step) >= q else (middle, last)
        return last * step

    def _cdf(self, place: float) -> float:
        return float((self.weight * self.law.cdf(self._all(place))).sum())

    def _all(self, place: float) -> Tensor:
        return torch.full_like(self.weight, place)

    def _own(self, place: float) -> Any:
        return self.column.decode(np.array([place]))[0]

    def _number(self, remedy: str) -> NumberColumn:
        if not isinstance(self.column, NumberColumn):
            raise InputError(f"Column {self.column.name!r} is a category: {remedy}.")
        return self.column


def round_step(width: float, spacing: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is no less than the width; never finer than the values are written."""
    width = max(width, spacing, 1e-300)
    power = 10.0 ** math.floor(math.log10(width))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= width * (1 - 1e-9))
    return max(step, spacing)
