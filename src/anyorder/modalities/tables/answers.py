"""Answers in the words of the table: the distribution of one cell, and how far orders of asking are apart."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from ...distributions import DiscreteDistribution, Distribution, LatticeDistribution, mean_place
from ...errors import InputError
from ...schema import Recorded
from ...validation import check_share
from ..displays import (
    Bar,
    Histogram,
    bar_rows,
    draw,
    literal,
    plot_bars,
    plot_density,
    shorten,
    span_labels,
    table,
    tag,
    value_text,
)
from .columns import CategoryColumn, Column, NumberColumn
from .encoder import encode_value
from .evidence import Matches, allowed_values
from .ranges import Between, OneOf

MOST_LEVELS_SHOWN = 16  # of a small picture
MOST_TRIED, EDGES_AT_ONCE = 512, 2**12  # values in one search for the likeliest; in one call, times the distributions


class Consistency(NamedTuple):
    """How much log p of the same row varies with the order in which its columns are visited, in nats."""

    log_probs: NDArray[np.float64]  # (order, row)

    @property
    def spread(self) -> float:
        """The standard deviation between orders, averaged over rows: 0 for a perfectly consistent model."""
        return float(self.log_probs.std(axis=0, ddof=1).mean()) if len(self.log_probs) > 1 else 0.0

    def __repr__(self) -> str:
        orders, rows = self.log_probs.shape
        return f"Consistency of {orders} orders on {rows} rows: log p of a row varies by {self.spread:.3g} nats"


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
    """The distribution of one cell, in the column's own unit: one distribution, or several that count as much as their
    weights say.
    """

    distribution: Distribution
    weight: Float[Tensor, " distributions"]
    matches: Matches | None  # the training rows it rests on; None if no rows were kept
    column: Column
    given: Mapping[str, Any] = field(default_factory=dict)
    again: Callable[[Mapping[str, Any]], "Answer"] | None = None  # the same question, given something else

    @property
    def is_category(self) -> bool:
        return isinstance(self.distribution, DiscreteDistribution)

    def mean(self) -> Any:
        """Not rounded to the values of the column; of dates it is. Of categories, if they are numbers."""
        if isinstance(self.column, CategoryColumn) and self.column.holds_numbers:
            return sum(level * p for level, p in self.pmf().items())
        column = self._number("mean() needs a number. Use mode() or pmf()")
        assert isinstance(self.distribution, LatticeDistribution)
        assert isinstance(column.domain, Recorded)
        return column.means(np.array([float(mean_place(self.distribution, column.domain, self.weight))])).tolist()[0]

    def mode(self) -> Any:
        """The likeliest value: a category, or a number as it would be written down."""
        if isinstance(self.distribution, DiscreteDistribution):
            return max(self.pmf().items(), key=lambda item: item[1])[0]
        return self._own(self._likeliest(self._number("")))

    def _likeliest(self, column: NumberColumn) -> float:
        """By trying values that stand out or were seen, and places evenly apart, ever nearer around the best of them."""
        step, distribution = column.step, self.distribution.map_tensors(lambda t: t.double())
        most = max(64, min(MOST_TRIED, EDGES_AT_ONCE // len(self.weight)))
        seen = self.matches.values.unique()[:most].tolist() if self.matches is not None else []
        tried = np.array([*(column.place(atom) for atom in column.atoms), *seen])
        low, high = (round(self._place(q) / step) for q in (0.005, 0.995))
        while True:
            stride = max(1, -(-(high - low) // most))
            tried = np.concatenate([tried, np.arange(low, high + 1, stride) * step])
            best = float(tried[int(self._masses(distribution, tried, step).argmax())])
            if stride == 1:
                return best
            tried, low, high = np.array([best]), round(best / step) - stride, round(best / step) + stride

    def _masses(self, distribution: Distribution, places: NDArray[np.float64], step: float) -> Float[Tensor, " place"]:
        """How likely values are, at places in model space."""
        found = []
        for some in torch.from_numpy(places).split(max(1, EDGES_AT_ONCE // len(self.weight))):
            upto, below = (distribution.cdfs(at.expand(len(self.weight), -1).contiguous()) for at in (some, some - step))
            found.append(self.weight.double() @ (upto - below))
        return torch.cat(found)

    def pmf(self) -> dict[Any, float]:
        """The probability of every category."""
        if not isinstance(self.distribution, DiscreteDistribution) or not isinstance(self.column, CategoryColumn):
            raise InputError(f"Column {self.column.name!r} is a number: use quantile(q), interval(0.9) or prob(value).")
        table = (self.weight[:, None] * self.distribution.pmf()).sum(0).double().numpy()
        return dict(zip(self.column.levels, self.column.spread(table).tolist(), strict=False))

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
        if isinstance(self.column, CategoryColumn):
            size = self.distribution.pmf().shape[-1] if isinstance(self.distribution, DiscreteDistribution) else 0
            counts = torch.bincount(self.matches.values.long(), minlength=size).double().numpy()
            found = dict(zip(self.column.levels, self.column.spread(counts / counts.sum()), strict=False))
            return float(sum(found[level] for level in self._levels(what)))
        step = self.column.step if isinstance(self.column, NumberColumn) else 1.0
        return float(allowed_values(self.column, what).holds(self.matches.values, step).float().mean())

    def explain(self) -> list["Influence"]:
        """What every condition did: how far the answer would be from this one without it. The strongest comes first."""
        if self.again is None:
            raise InputError("This answer does not know its question. Ask by model.conditional(row, target).")
        found = []
        for name, value in self.given.items():
            other = self.again({k: v for k, v in self.given.items() if k != name})
            found.append(Influence(name, value, self._apart(other), other._middle(), self._middle()))
        return sorted(found, key=lambda one: -one.moved)

    def _middle(self) -> Any:
        return self.mode() if self.is_category else self.quantile(0.5)

    def _apart(self, other: "Answer") -> float:
        """The largest difference between the two probabilities of anything: half the sum over levels, or over twentieths."""
        if self.is_category:
            return sum(abs(p - other.pmf()[level]) for level, p in self.pmf().items()) / 2
        places = sorted({answer._place(q / 20) for answer in (self, other) for q in range(1, 20)})
        mine, theirs = ([0.0, *(answer._cdf(place) for place in places), 1.0] for answer in (self, other))
        return float(np.abs(np.diff(mine) - np.diff(theirs)).sum() / 2)

    def prob(self, value: Any) -> float:
        """The probability of one value, of a number as it would be written down; or of a range or a set."""
        if isinstance(self.column, CategoryColumn):
            probabilities = self.pmf()
            return min(1.0, sum(probabilities[level] for level in self._levels(value)))
        if isinstance(value, Between | OneOf):
            allowed = allowed_values(self.column, value)
            return float((self.weight * allowed.mass(self.distribution)).sum().clamp(0.0, 1.0))
        return float((self.weight * self.distribution.log_prob(self._all(encode_value(self.column, value))).exp()).sum())

    def _levels(self, what: Any) -> set[Any]:
        """The levels of a category that a value, a range or a set means."""
        assert isinstance(self.column, CategoryColumn)
        if isinstance(what, Between):
            allowed_values(self.column, what)
            return set(self.column.within(what.low, what.high))
        values = what.values if isinstance(what, OneOf) else (what,)
        codes = {encode_value(self.column, value) for value in values}
        return {level for level in self.column.levels if level in values} or {self.column.levels[int(code)] for code in codes}

    def cdf(self, value: Any) -> float:
        """P(X <= value)."""
        if isinstance(self.column, CategoryColumn) and self.column.holds_numbers:
            return min(1.0, sum(p for level, p in self.pmf().items() if level <= value))
        self._number("cdf() needs a number. Use pmf()")
        return self._cdf(encode_value(self.column, value, np.floor))

    def quantile(self, q: float) -> Any:
        check_share("q", q)
        if isinstance(self.column, CategoryColumn) and self.column.holds_numbers:
            levels, at_most = zip(*sorted(self.pmf().items()), strict=True)
            return levels[min(int(np.searchsorted(np.cumsum(at_most), q)), len(levels) - 1)]
        self._number("quantile() needs a number. Use mode() or pmf()")
        return self._own(self._place(q))

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """The middle `level` of the probability."""
        check_share("level", level)
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def bins(self, count: int = 16) -> list[tuple[Any, Any, float]]:
        """About `count` neighbouring ranges with round ends, and how likely each is; the upper end belongs to the next."""
        edges, mass = self._histogram(count)
        return list(zip(edges[:-1], edges[1:], mass, strict=True))

    def _histogram(self, count: int, tail: float = 0.01) -> Histogram:
        """Round edges from one tail to the other; the first and the last range hold what is beyond."""
        column = self._number("bins() needs a number. Use pmf()")
        low, high = (float(column.number(np.array([self._place(q)]))[0]) for q in (tail, 1 - tail))
        step = round_step((high - low) / max(count, 1), column.spacing)
        first, last = (math.floor(end / step + 1e-4 * column.spacing / step) for end in (low, high))  # float32 may fall short
        edges = [k * step for k in range(first, last + 2)]
        below = [0.0, *(self._cdf(column.place(e - column.spacing / 2, np.floor)) for e in edges[1:-1]), 1.0]
        own = column.decode(np.array([column.place(e, np.round) for e in edges]))
        return Histogram([edge + 0.0 if isinstance(edge, float) else edge for edge in own], np.diff(below).tolist())

    @property
    def question(self) -> str:
        """What was asked, in a line."""
        known = ", ".join(f"{name}={condition_text(value)}" for name, value in self.given.items())
        return f"{self.column.name} given {known}" if known else f"{self.column.name}, nothing known"

    def bars(self, most: int = 12) -> list[Bar]:
        """The likeliest categories, the others together; or the ranges of a number."""
        if self.is_category:
            found = sorted((Bar(value_text(v), p) for v, p in self.pmf().items()), key=lambda bar: -bar.probability)
            rest = found[most:] if len(found) > most + 1 else []
            others = [Bar(f"{len(rest)} others", sum(bar.probability for bar in rest))] if rest else []
            return found[: len(found) - len(rest)] + others
        edges, mass = self._histogram(most)
        texts = [value_text(edge) for edge in edges]
        return [Bar(*one) for one in zip(span_labels(texts[:-1], texts[1:]), mass, strict=True)]

    def facts(self) -> list[tuple[str, str]]:
        """What else is to be said in a line each: median, mean and interval of a number, and what the answer rests on."""
        said = [("training rows that match", f"{self.rows:,}")] if self.rows is not None else []
        if self.is_category:
            return said
        low, high = self.interval(0.9)
        mean = self.mean()
        if isinstance(mean, float) and isinstance(low, int | float) and high > low:
            mean = round(mean, 2 - math.floor(math.log10(high - low)))
        texts = [("median", value_text(self.quantile(0.5))), ("mean", value_text(mean))]
        return [*texts, ("90 %", f"{value_text(low)} to {value_text(high)}"), *said]

    def __repr__(self) -> str:
        facts = "   ".join(f"{name} {text}" for name, text in self.facts())
        return "\n".join([self.question, *(f"  {line}" for line in draw(self.bars(), 78)), *([f"  {facts}"] if facts else [])])

    def _repr_html_(self) -> str:
        bars = self.bars()
        grey = self._grey(bars)
        facts = tag("p", " · ".join(f"{name} {text}" for name, text in self.facts()))
        note = [tag("p", "thin and grey: with nothing known", style="opacity: .7; font-size: 85%")] if grey else []
        rows = bar_rows(bars, grey)
        return tag("div", tag("p", tag("b", self.question)), table([self.column.name, "", "probability"], rows), facts, *note)

    def _grey(self, bars: list[Bar]) -> list[float] | None:
        """How likely the categories of these bars are with nothing known."""
        marginal = self.marginal()
        if marginal is None or not self.is_category:
            return None
        shares = {value_text(value): share for value, share in marginal.pmf().items()}
        named = [shares.get(bar.label) for bar in bars]
        rest = max(0.0, 1 - sum(share or 0.0 for share in named))
        return [rest if share is None else share for share in named]

    def outline(self) -> tuple[str, list[float], str]:
        """The kind of the column in a word, a small histogram, and its values in a line."""
        if isinstance(self.column, CategoryColumn):
            levels = ", ".join(shorten(value_text(level), 20) for level in self.column.levels[:8])
            heights = list(self.pmf().values())[:MOST_LEVELS_SHOWN]
            return "category", heights, f"{len(self.column.levels)}: {shorten(levels, 60)}"
        low, high = self.interval(0.9)
        unit = self._number("").unit
        kind = {"day": "date", "instant": "date", "whole": "whole number"}.get(unit, "number")
        return kind, self._histogram(MOST_LEVELS_SHOWN, 0.005).probabilities, f"90 % in {value_text(low)} to {value_text(high)}"

    def marginal(self) -> "Answer | None":
        """The same question with nothing known; None if that is what was asked, or the question is not known."""
        return self.again({}) if self.again is not None and self.given else None

    def plot(self, ax: Any = None) -> Any:
        """The distribution as a picture, beside what it is with nothing known in grey; the axes of matplotlib."""
        marginal = self.marginal()
        if not self.is_category:
            beside = None if marginal is None else marginal._histogram(40, 0.002)
            ends = self.interval(0.9), self.quantile(0.5)
            ax = plot_density(self._histogram(40, 0.002), self.column.name, *ends, ax, beside)
        else:
            bars = self.bars()
            ax = plot_bars(bars, "probability", ax, self._grey(bars))
        ax.set_title(literal(shorten(self.question, 70)), fontsize="medium", loc="left")
        return ax

    def _place(self, q: float) -> float:
        each = self.distribution.quantile(torch.full_like(self.weight, q))
        return float(each[0]) if len(each) == 1 else self._between(float(each.min()), float(each.max()), q)

    def _between(self, low: float, high: float, q: float) -> float:
        """The quantile of the mixture lies between those of its parts: bisection down to half a step of the lattice."""
        assert isinstance(self.column, NumberColumn)
        step = self.column.step
        first, last = round(low / step) - 1, round(high / step)
        while last - first > 1:
            middle = (first + last) // 2
            first, last = (first, middle) if self._cdf(middle * step) >= q else (middle, last)
        return last * step

    def _cdf(self, place: float) -> float:
        return float((self.weight * self.distribution.cdf(self._all(place))).sum())

    def _all(self, place: float) -> Tensor:
        return torch.full_like(self.weight, place)

    def _own(self, place: float) -> Any:
        return self.column.decode(np.array([place]))[0]

    def _number(self, remedy: str) -> NumberColumn:
        if not isinstance(self.column, NumberColumn):
            raise InputError(f"Column {self.column.name!r} is a category: {remedy}.")
        return self.column


def condition_text(value: Any) -> str:
    """A value, a range or a set, as a person writes it."""
    if isinstance(value, Between):
        low, high = ("" if end is None else value_text(end) for end in (value.low, value.high))
        return f"{low}..{high}"
    return f"({', '.join(map(value_text, value.values))})" if isinstance(value, OneOf) else value_text(value)


def round_step(width: float, spacing: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is no less than the width; never finer than the values are written."""
    width = max(width, spacing, 1e-300)
    power = 10.0 ** math.floor(math.log10(width))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= width * (1 - 1e-9))
    return max(step, spacing)
