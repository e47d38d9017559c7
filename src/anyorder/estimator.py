"""The face for tables: scikit-learn's conventions around one model. Translate, call one function, translate back."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .data import TableEncoder
from .data.columns import CategoryColumn, NumberColumn
from .data.table import as_frame
from .errors import FormatError, InputError
from .heads import DiscreteLaw, Law, RecordedNumber, default_head
from .inference import fixed_orders, mixture_log_prob, path_terms, sample, seeded
from .model import build_model
from .schema import Recorded
from .subsets import CanonicalOrder, Question, ask
from .training import Check, Recipe, ardm, fit, load_model_and_more, mac_all_edges, mixture, save_model
from .training.edges import EdgeSampler

Frame = Any
STEPS, ROWS_PER_CALL = 3000, 2048


@final
class AnyOrder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One model of a table; then any question about it.

    Parameters
    ----------
    effort: how long to train; 1 is a fraction of a minute on a small table, more is slower and better.
    orders: how many fixed orders are mixed when scoring.
    kinds: overrules the kinds found, as {column: "category" | "number" | "leave out"}.
    callback: called at every check of the training with the state of the run.
    random_state: seed of everything random.
    device: where to compute; "auto" takes an accelerator if there is one.
    """

    def __init__(
        self,
        effort: float = 1.0,
        orders: int = 4,
        kinds: Mapping[str, str] | None = None,
        callback: Callable[[Check], None] | None = None,
        random_state: int = 0,
        device: str = "auto",
    ) -> None:
        self.effort = effort
        self.orders = orders
        self.kinds = kinds
        self.callback = callback
        self.random_state = random_state
        self.device = device

    def fit(self, X: Frame, y: None = None) -> "AnyOrder":
        """Learn the table as it is: gaps, categories, dates, integers."""
        if not self.effort > 0 or self.orders < 1:
            raise InputError(f"Got effort={self.effort}, orders={self.orders}; expected a positive number and at least 1.")
        self.encoder_ = TableEncoder.learn(X, self.kinds)
        self.schema_ = self.encoder_.schema
        self.n_features_in_ = len(self.encoder_.names)
        self.feature_names_in_ = np.array(self.encoder_.names, dtype=object)
        self.like_ = as_frame(X).head(0).to_native() if not isinstance(X, np.ndarray) else X[:0]
        x, present = self.encoder_.encode(X)
        room = max([len(v.domain.atoms) for v in self.schema_ if isinstance(v.domain, Recorded)], default=0)
        heads = [RecordedNumber(room) if isinstance(v.domain, Recorded) else default_head(v.domain) for v in self.schema_]
        model = build_model(self.schema_, heads, seed=self.random_state)
        steps = max(1, round(STEPS * self.effort))
        recipe = Recipe(law=table_law(), steps=steps, check_every=max(1, steps // 30), seed=self.random_state, device=self.device)
        fitted = fit(model, x, present, recipe, progress=self.callback)
        self.model_, self.history_ = fitted.model.cpu(), fitted.history
        return self

    def score_samples(self, X: Frame, target: Iterable[str] | None = None, given: Iterable[str] = ()) -> NDArray[np.float64]:
        """log p(target | given) of each row in nats, as the mass of the recorded values; columns in neither are marginalised."""
        x, present = self._encode(X)
        question = ask(self.schema_, present, target, given)
        return mixture_log_prob(self.model_, x, question, self._orders()).double().numpy()

    def score(self, X: Frame, y: None = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def transform(self, X: Frame) -> Frame:
        """X with its gaps filled: the mean of a number, the likeliest category, given the rest of the row."""
        x, present = self._encode(X)
        return self.encoder_.fill(X, self._best_guess(x, present), ~present)

    def impute(self, X: Frame, draws: int = 20) -> list[Frame]:
        """`draws` tables with the gaps drawn together from p(gaps | rest of the row): honest uncertainty."""
        x, present = self._encode(X)
        filled = x.repeat(draws, 1, 1)  # (draw, row, variable)
        holes = (~present).any(-1).nonzero().squeeze(-1)
        rng = seeded(self.random_state)
        for rows in holes.split(max(1, ROWS_PER_CALL // draws)):
            known = present[rows].repeat(draws, 1)
            drawn = sample(self.model_, x[rows].repeat(draws, 1), Question(known, ~known), rng)
            filled[:, rows] = drawn.unflatten(0, (draws, len(rows)))
        return [self.encoder_.fill(X, one, ~present) for one in filled]

    def sample(self, n: int = 1, given: Mapping[str, Any] | None = None) -> Frame:
        """New rows, given the values of some columns."""
        check_is_fitted(self)
        x, known = self._row(given or {})
        x, known = x.expand(n, -1), known.expand(n, -1)
        drawn = sample(self.model_, x, Question(known, ~known), seeded(self.random_state))
        return self.encoder_.frame(drawn, self.like_)

    def conditional(self, row: Mapping[str, Any], target: str) -> "Answer":
        """The law of one column given the other values of a row."""
        check_is_fitted(self)
        place = self.schema_.index(target)
        x, known = self._row({name: value for name, value in row.items() if name != target})
        with torch.no_grad():
            return Answer(self.model_(x, known).law(place), self.encoder_.columns[place])

    def predict(self, X: Frame, target: str) -> list[Any]:
        """The best guess of one column given all others: the mean of a number, the likeliest category."""
        place, x, known = self._all_but(X, target)
        return self.encoder_.columns[place].decode(self._best_guess(x, known)[:, place].double().numpy())

    def predict_proba(self, X: Frame, target: str) -> NDArray[np.float64]:
        """The probability of every level of a category given all other columns; levels in the order of `levels`."""
        place, x, known = self._all_but(X, target)
        self.levels(target)
        with torch.no_grad():
            laws = [self.model_(x[rows], known[rows]).law(place) for rows in in_chunks(len(x))]
        return np.concatenate([law.pmf().double().numpy() for law in laws if isinstance(law, DiscreteLaw)])

    def levels(self, target: str) -> tuple[Any, ...]:
        """The values of a category, in the order of `predict_proba`."""
        check_is_fitted(self)
        column = self.encoder_.columns[self.schema_.index(target)]
        if not isinstance(column, CategoryColumn):
            raise InputError(f"Column {target!r} is a number and has no levels. Use predict, or conditional(row, {target!r}).")
        return column.levels

    def anomalies(self, X: Frame) -> "Anomalies":
        """How surprising every row is, and every cell given the rest of its row, in nats."""
        x, present = self._encode(X)
        rows = -mixture_log_prob(self.model_, x, Question.joint(present), self._orders()).double().numpy()
        cells = np.full(x.shape, np.nan)
        for i in range(x.shape[1]):
            alone = torch.zeros_like(present)
            alone[:, i] = present[:, i]
            if alone.any():
                terms = path_terms(self.model_, x, Question(present & ~alone, alone), [CanonicalOrder()])[0]
                cells[:, i] = torch.where(alone, -terms, torch.nan)[:, i].numpy()
        return Anomalies(rows, cells, [column.name for column in self.encoder_.columns])

    def save(self, path: str | Path) -> None:
        """The whole model in one file."""
        check_is_fitted(self)
        save_model(self.model_, path, table=self.encoder_.to_json(), orders=self.orders)

    @classmethod
    def load(cls, path: str | Path) -> "AnyOrder":
        """The model that `save` wrote; new rows come as pandas or what is there."""
        model, about = load_model_and_more(path)
        if "table" not in about:
            raise FormatError(f"{Path(path).name} holds a model, but not one of a table.")
        face = cls(orders=int(about.get("orders", 4)))
        face.encoder_ = TableEncoder.from_json(about["table"])
        face.schema_, face.model_, face.history_ = model.schema, model, []
        face.n_features_in_, face.feature_names_in_ = len(face.encoder_.names), np.array(face.encoder_.names, dtype=object)
        face.like_ = as_frame(np.zeros((0, len(face.encoder_.names)))).to_native()
        return face

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        check_is_fitted(self)
        return self.feature_names_in_

    def _encode(self, X: Frame) -> tuple[Tensor, Tensor]:
        check_is_fitted(self)
        return self.encoder_.encode(X)

    def _orders(self) -> list[CanonicalOrder]:
        return fixed_orders(len(self.schema_), self.orders)

    def _all_but(self, X: Frame, target: str) -> tuple[int, Tensor, Tensor]:
        x, present = self._encode(X)
        place = self.schema_.index(target)
        known = present.clone()
        known[:, place] = False
        return place, x, known

    def _row(self, values: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """One row of known values, the rest unknown."""
        x = torch.full((1, len(self.schema_)), torch.nan)
        for name, value in values.items():
            place = self.schema_.index(name)
            column = self.encoder_.columns[place]
            frame = as_frame(np.array([[value]], dtype=object if isinstance(column, CategoryColumn) else None))
            x[0, place] = float(column.encode(frame["x0"])[0])
            if torch.isnan(x[0, place]):
                known = f"its levels are {list(column.levels)}" if isinstance(column, CategoryColumn) else "expected a number"
                raise InputError(f"{name}={value!r} is no value of column {name!r}; {known}.")
        return x, x.isfinite()

    @torch.no_grad()
    def _best_guess(self, x: Tensor, known: Tensor) -> Tensor:
        """Means of numbers and likeliest categories, given what is known."""
        out = torch.empty_like(x)
        codes = [i for i, column in enumerate(self.encoder_.columns) if isinstance(column, CategoryColumn)]
        for rows in in_chunks(len(x)):
            laws = self.model_(x[rows], known[rows])
            out[rows] = laws.mean()
            for i in codes:
                law = laws.law(i)
                out[rows, i] = law.log_pmf().argmax(-1).float() if isinstance(law, DiscreteLaw) else out[rows, i]
        return out


class Anomalies(NamedTuple):
    """Nats of surprise: per row, and per cell given the rest of its row (NaN for gaps)."""

    rows: NDArray[np.float64]
    cells: NDArray[np.float64]
    columns: list[str]


class Answer(NamedTuple):
    """The law of one cell, in the column's own unit."""

    law: Law
    column: Any

    def mean(self) -> Any:
        if not isinstance(self.column, NumberColumn):
            raise InputError(f"Column {self.column.name!r} is a category and has no mean. Use mode() or pmf().")
        return self.column.decode(self.law.mean().double().numpy())[0]

    def mode(self) -> Any:
        """The likeliest category."""
        if not isinstance(self.law, DiscreteLaw):
            return self.quantile(0.5)
        return self.column.decode(self.law.log_pmf().argmax(-1).double().numpy())[0]

    def pmf(self) -> dict[Any, float]:
        """The probability of every category."""
        if not isinstance(self.law, DiscreteLaw):
            raise InputError(f"Column {self.column.name!r} is a number: use quantile(q) or interval(0.9).")
        return dict(zip(self.column.levels, self.law.pmf()[0].tolist(), strict=False))

    def quantile(self, q: float) -> Any:
        if not 0 < q < 1:
            raise InputError(f"quantile got q={q}; expected a number between 0 and 1.")
        return self.column.decode(self.law.quantile(torch.full((1,), q)).double().numpy())[0]

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """The middle `level` of the probability."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)


def in_chunks(rows: int) -> Iterator[slice]:
    for start in range(0, max(rows, 1), ROWS_PER_CALL):
        yield slice(start, start + ROWS_PER_CALL)


def table_law() -> EdgeSampler:
    """Half any subset, half the paths of marginal questions: good for conditionals and hardly worse for the joint."""
    return mixture(ardm(), mac_all_edges())
