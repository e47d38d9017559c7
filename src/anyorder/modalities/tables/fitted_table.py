"""A trained model of a table, and the questions it answers: rows of any dataframe library in, answers in their words out."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...distributions import DiscreteDistribution
from ...errors import InputError
from ...inference import (
    best_guess,
    drawn_together,
    fixed_orders,
    interval,
    mixture_log_prob,
    path_terms,
    plan,
    sample,
    seeded,
    step_losses,
)
from ...models.trained import Trained
from ...subsets import CanonicalOrder, Even, MixtureOfOrders, Order, Planned, Question, Schedule
from ...training import Check
from ...validation import by_name, check_share, whole_number
from ..base import Document, Fitted, chosen_schedule
from ..displays import columns, shorten, sparkline, table, tag, text_grid
from .acquisition import Acquired, Asked, Request, acquired, frame_like, next_best, policy_of, told_by
from .anomalies import Anomalies, find_anomalies
from .answers import Answer, Consistency
from .columns import CategoryColumn, Column, NumberColumn, kind_of_column, plain
from .dataframes import Frame
from .encoder import TableEncoder, tell_of_gaps
from .evidence import as_given, ask_table, distribution_given, known_of, narrowed, only_values, read_evidence, rows_within
from .log_columns import LogNumberColumn
from .report import Report, report_of

ColumnLabel = object  # the name of a column; those of pandas need not be text
Row = Any  # a mapping of labels to values, such as a row of a pandas table
BEST_GUESS_ROWS_PER_CALL = 512
MOST_SHOWN = 30  # columns of a model that is displayed


@final
@dataclass
class FittedTable(Fitted):
    """A model of a table, and how its columns were written."""

    encoder: TableEncoder
    model: Trained
    history: list[Check]
    template: Frame  # a table without rows: new rows come as one like it
    fit_info: dict[str, Any]  # of the training: rows, effort

    what = "a table"

    def about(self) -> Document:
        return {"table": self.encoder.to_json(), "fit": self.fit_info}

    def describe(self) -> Document:
        return {
            "what": self.what,
            **describe_columns(self.encoder),
            "rows": self.fit_info.get("rows"),
            "effort": self.fit_info.get("effort"),
            "held_out_nats": min((check.held_out_nats for check in self.history), default=None),
            "models": self.model.parts,
            "parameters": sum(weights.numel() for weights in self.model.parameters()),
            "keeps_rows": self.model.rows_held,
        }

    def feature_names(self) -> tuple[str, ...]:
        return tuple(self.encoder.names)

    def outline(self) -> list[str]:
        body = [[name, kind, sparkline(heights), values] for name, kind, heights, values in self._described()]
        return [self._learned(), *text_grid(["column", "kind", "shape", "values"], body)]

    def outline_html(self) -> str:
        rows: list[list[object]] = [[name, kind, columns(heights), values] for name, kind, heights, values in self._described()]
        return tag("div", tag("p", self._learned()), table(["column", "kind", "", "values"], rows))

    def score_samples(
        self,
        X: Frame,
        target: Any = None,
        given: Iterable[Any] = (),
        *,
        steps: int | None = None,
        schedule: Schedule | None = None,
        order: Order | None = None,
        orders: int = 4,
    ) -> NDArray[np.float64]:
        """log p(target | given) of each row, as the mass of the recorded values."""
        x, present = self.encoder.encode(X)
        question = ask_table(self.encoder, X, present, target, given)
        shares = (self.encoder.log_shares(X) * question.target.numpy()).sum(-1)
        several, cut = self._orders(orders, order), chosen_schedule(steps, schedule, Even)
        log_p = mixture_log_prob(self.model, x, question, several, schedule=cut)
        return log_p.double().numpy() + shares

    def plan(self, X: Frame, steps: int, *, seed: int = 0) -> Planned:
        """The schedule of so many steps that costs rows like these the fewest nats."""
        x, present = self.encoder.encode(X)
        return plan(step_losses(self.model, x, present, seeded(seed)), whole_number("steps", steps, 1))

    def transform(self, X: Frame) -> Frame:
        """X with its gaps filled with best guesses."""
        x, present = self.encoder.encode(X)
        filled = self.encoder.fill(X, self._best(x, present), ~present)
        tell_of_gaps(self.encoder, filled)
        return filled

    def impute(self, X: Frame, draws: int = 20, *, seed: int = 0, orders: int = 4) -> list[Frame]:
        """`draws` tables with the gaps drawn together."""
        draws = whole_number("draws", draws, 1)
        x, present = self.encoder.encode(X)
        filled = drawn_together(self.model, x, present, draws, seeded(seed), MixtureOfOrders(self._orders(orders)))
        tables = [self.encoder.fill(X, one, ~present, below_levels(seed, draw)) for draw, one in enumerate(filled)]
        tell_of_gaps(self.encoder, tables[0])
        return tables

    def intervals(self, X: Frame, level: float = 0.9) -> tuple[Frame, Frame]:
        """Two tables with the ends of an interval in the gaps of number columns."""
        check_share("level", level)
        x, present = self.encoder.encode(X)
        numbers = torch.tensor([isinstance(column, NumberColumn) for column in self.encoder.columns])
        ends = interval(self.model, x, present, level, numbers)
        low, high = (self.encoder.fill(X, end, ~present & numbers) for end in ends)
        return low, high

    def sample(
        self,
        n: int = 1,
        given: Mapping[Any, Any] | None = None,
        *,
        steps: int | None = None,
        schedule: Schedule | None = None,
        order: Order | None = None,
        temperature: float = 1.0,
        seed: int = 0,
        orders: int = 4,
    ) -> Frame:
        """New rows, along the mixture of orders that is scored."""
        n, values, rng = whole_number("n", n, 0), by_name("given", given), seeded(seed)
        x, known = rows_within(self.model, read_evidence(self.encoder, values), n, rng)
        drawn = sample(
            self.model,
            x,
            Question(known, ~known),
            rng,
            order=order or MixtureOfOrders(self._orders(orders)),
            schedule=chosen_schedule(steps, schedule, Even),
            temperature=temperature,
        )
        exactly = as_given(self.encoder, values)
        return narrowed(self.encoder, values).frame(drawn, self.template, exactly, below_levels(seed))

    def conditional(self, row: Row, target: ColumnLabel, *, seed: int = 0) -> Answer:
        """The distribution of one column given values, ranges or sets of others."""
        place = self.encoder.schema.index(target)
        given = known_of(self.encoder, by_name("row", row), str(target))
        found = distribution_given(self.model, read_evidence(self.encoder, given), place, seeded(seed))
        return Answer(*found, self.encoder.columns[place], given, lambda other: self.conditional(other, target, seed=seed))

    def probability(self, event: Row, given: Row | None = None, *, seed: int = 0) -> float:
        """How likely it is that all of several columns have these values, or lie in these ranges or sets."""
        known, result = dict(by_name("given", given or {})), 1.0
        for name, what in by_name("event", event).items():
            if name in known:
                raise InputError(f"{name!r} is both asked for and given. Name every column once.")
            result *= self.conditional(known, name, seed=seed).prob(what)
            known[name] = what
        return result

    def predict(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[Any]:
        """The best guess of one column given all others."""
        place, x, known = self._all_but(X, target)
        return self.encoder.columns[place].best_guess(self._best(x, known)[:, place].double().numpy())

    def predict_mean(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[np.float64]:
        """The mean of one column given all others."""
        place, x, known = self._all_but(X, target)
        column = self.encoder.columns[place]
        if isinstance(column, NumberColumn) and not column.is_moment:
            return column.number(best_guess(self.model, x, known)[:, place].double().numpy())
        if not isinstance(column, CategoryColumn) or not column.holds_numbers:
            raise InputError(f"Column {column.name!r} {column.says()}: no numbers, so it has no mean. Use predict.")
        return self.predict_proba(X, column.name) @ np.array(column.levels, dtype=np.float64)

    def predict_proba(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[np.float64]:
        """The probability of every level of a category given all others."""
        place, x, known = self._all_but(X, target)
        column = self._category(self.encoder.schema.names[place])
        parts = [np.zeros((0, len(column.common) + bool(column.rare)))] if not len(x) else []
        with torch.no_grad():
            for rows in torch.arange(len(x)).split(BEST_GUESS_ROWS_PER_CALL) if len(x) else ():
                distribution = self.model(x[rows], known[rows]).distribution(place)
                assert isinstance(distribution, DiscreteDistribution)
                parts.append(distribution.pmf().double().numpy())
        return column.spread(np.concatenate(parts))

    def levels(self, target: ColumnLabel) -> tuple[Any, ...]:
        """The values of a category, in the order of `predict_proba`."""
        return self._category(target).levels

    def anomalies(self, X: Frame, *, orders: int = 4) -> Anomalies:
        """How odd every cell is given the rest of its row, and every row."""
        x, present = self.encoder.encode(X)
        question, several = Question.joint(present), self._orders(orders)

        def surprise(own: Tensor) -> Tensor:
            context = own[:, None] if (own >= 0).any() else None  # which training row every row is, if any is one
            return -mixture_log_prob(self.model, x, question, several, context=context)

        return find_anomalies(self.model, self.encoder, X, x, present, surprise)

    def report(self, X: Frame) -> Report:
        """How good the model is on rows that were held out, column by column."""
        x, present = self.encoder.encode(X)
        return report_of(self.model, self.encoder, x, present)

    def consistency(self, X: Frame, *, orders: int = 4) -> Consistency:
        """How much the log-probability of every row varies with the order."""
        x, present = self.encoder.encode(X)
        terms = path_terms(self.model, x, Question.joint(present), self._orders(orders))
        return Consistency(terms.sum(-1).double().numpy() + self.encoder.log_shares(X).sum(-1))

    def next_best(
        self,
        X: Frame | Mapping[str, Any],
        target: str | Sequence[str],
        costs: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        budget: float = math.inf,
        worth: float = math.inf,
        ahead: int = 1,
        draws: int = 32,
        seed: int = 0,
    ) -> Frame:
        """What to measure next in every row, ranked."""
        records = self._records(X)
        request = Request.of(self.encoder.schema, target, costs, groups, budget, policy_of(worth, ahead, draws))
        return frame_like(next_best(self.model, *records, request, seeded(seed)), self.template, self.encoder.names)

    def acquire(
        self,
        X: Frame | Mapping[str, Any],
        target: str | Sequence[str],
        oracle: Frame | Asked,
        costs: Mapping[str, Any] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        budget: float = math.inf,
        worth: float = math.inf,
        certain: float = -math.inf,
        steps: int | None = None,
        ahead: int = 1,
        draws: int = 8,
        seed: int = 0,
    ) -> Acquired:
        """Measure, look, choose again, every row on its own path."""
        records = self._records(X)
        request = Request.of(self.encoder.schema, target, costs, groups, budget, policy_of(worth, ahead, draws, certain, steps))
        truth = told_by(oracle, self.encoder) if callable(oracle) else self.encoder.encode(oracle)[0]
        path = request.path(self.model, *records, truth, seeded(seed))
        return acquired(self.model, path, request, X, self.encoder, self.template)

    def _records(self, X: Frame | Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """The rows of a table, or one record of known values."""
        return only_values(self.encoder, X) if isinstance(X, Mapping) else self.encoder.encode(X)

    def _category(self, target: ColumnLabel) -> CategoryColumn:
        column = self.encoder.columns[self.encoder.schema.index(target)]
        if not isinstance(column, CategoryColumn):
            raise InputError(f"Column {target!r} is a number and has no levels. Use predict, or conditional(row, {target!r}).")
        return column

    def _orders(self, orders: int, order: Order | None = None) -> list[Order]:
        return [order] if order is not None else list[Order](canonical_orders(len(self.encoder.schema), orders))

    def _all_but(self, X: Frame, target: ColumnLabel | None) -> tuple[int, Tensor, Tensor]:
        x, present = self.encoder.encode(X)
        place = len(self.encoder.schema) - 1 if target is None else self.encoder.schema.index(target)
        known = present.clone()
        known[:, place] = False
        return place, x, known

    def _best(self, x: Tensor, known: Tensor) -> Tensor:
        """Best guesses; where all rare levels of a category together are the likeliest code, the likeliest level."""
        guess = best_guess(self.model, x, known)
        for place, column in enumerate(self.encoder.columns):
            own = len(column.common) if isinstance(column, CategoryColumn) and column.rare else None
            rows = (~known[:, place] & (guess[:, place] == own)).nonzero().squeeze(-1) if own else x.new_empty(0)
            for some in rows.long().split(BEST_GUESS_ROWS_PER_CALL) if len(rows) else ():
                with torch.no_grad():
                    distribution = self.model(x[some], known[some]).distribution(place)
                assert isinstance(distribution, DiscreteDistribution)
                assert isinstance(column, CategoryColumn)
                levels = column.spread(distribution.pmf().double().numpy())
                guess[some, place] = torch.tensor(levels.argmax(-1).clip(max=own)).to(guess.dtype)
        return guess

    def _learned(self) -> str:
        """What it was learned from, in a line."""
        left_out = self.encoder.left_out
        rows = f"learned from {self.fit_info['rows']:,} rows: " if self.fit_info.get("rows") else ""
        without = f", left out: {shorten(', '.join(left_out), 60)}" if left_out else ""
        return f"{rows}{len(self.encoder.columns)} columns{without}"

    def _described(self) -> list[tuple[str, str, list[float], str]]:
        """Of the first columns name, kind, the shape of the values with nothing known, and which they are."""
        with torch.no_grad():
            nothing = torch.zeros(1, len(self.encoder.schema))
            distributions = self.model(nothing, nothing.bool())
            made = [
                Answer(distributions.distribution(i), torch.ones(1), None, c)
                for i, c in enumerate(self.encoder.columns[:MOST_SHOWN])
            ]
        described = [(one.column.name, *one.outline()) for one in made]
        rest = len(self.encoder.columns) - len(made)
        return described + ([(f"and {rest} more", "", [], "")] if rest else [])


def canonical_orders(variables: int, orders: int) -> list[CanonicalOrder]:
    """So many orders, fixed in advance: the same for scores and for samples."""
    return fixed_orders(variables, whole_number("orders", orders, 1))


def below_levels(seed: int, number: int = 0) -> np.random.Generator:
    """For values that the model does not tell apart."""
    return np.random.default_rng((abs(seed), number))


def tell_of_y(y: Any) -> None:
    """A table holds all there is to learn."""
    if y is not None:
        warnings.warn("fit ignores y: put the target into the table, as a column, and name it in predict.", stacklevel=4)


def describe_columns(encoder: TableEncoder) -> Document:
    return {"columns": [describe_column(column) for column in encoder.columns], "left_out": dict(encoder.left_out)}


def describe_column(column: Column) -> Document:
    about: Document = {"name": column.name, "kind": kind_of_column(column)}
    if isinstance(column, CategoryColumn):
        return {**about, "levels": [plain(column, level) for level in column.levels]}
    return {**about, **precision(column)} if isinstance(column, NumberColumn) else about


def precision(column: NumberColumn) -> Document:
    """How finely the column was written down; a spacing of instants is in seconds."""
    spacing = column.spacing / 1000 if column.unit == "instant" else column.spacing
    about: Document = {"precision": spacing, "values_that_stand_out": len(column.atoms)}
    if isinstance(column, LogNumberColumn):
        about["scale"] = "logarithmic"
    if not column.knots:
        return about
    ends = np.array([column.place(end) for end in (column.knots[0], column.knots[-1])])
    low, high = (plain(column, value) for value in column.decode(ends))
    return {**about, "low": low, "high": high}
