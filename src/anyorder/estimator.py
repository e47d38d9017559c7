"""The face for tables: scikit-learn's conventions around one model. Translate, call one function, translate back."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor

from .distributions import DiscreteDistribution
from .errors import FormatError, InputError, UnavailableError
from .inference import best_guess, drawn_together, fixed_orders, interval, mixture_log_prob, path_terms, sample, seeded
from .io.shipped import model_file
from .modalities.compression import CompressionVerbs, attached_codec, fit_codec, fit_codec_of_table
from .modalities.displays import columns, shorten, sparkline, table, tag, text_grid
from .modalities.images.image_model import ImageModel, ImageVerbs, fit_image_array
from .modalities.images.pixels import looks_like_images
from .modalities.tables.acquisition import MeasuringVerbs
from .modalities.tables.anomalies import Anomalies, find_anomalies
from .modalities.tables.answers import Answer, Consistency
from .modalities.tables.columns import CategoryColumn, NumberColumn
from .modalities.tables.dataframes import Sentinels, as_frame, given_back, rows_of
from .modalities.tables.encoder import TableEncoder, look_at, tell_of_gaps
from .modalities.tables.evidence import (
    as_given,
    ask_table,
    distribution_given,
    known_of,
    narrowed,
    only_values,
    read_evidence,
    rows_within,
)
from .modalities.tables.preview import OnClassToo, Preview
from .modalities.tables.report import Report, report_of
from .modalities.tables.table_model import copies_of, fit_table
from .models.trained import Trained, parts_of, rows_in
from .subsets import CanonicalOrder, Even, MixtureOfOrders, OneByOne, Question
from .training import Check, load_model_and_more, save_model
from .training.checkpoint import checked_number, history_of
from .training.loop import choose_device
from .validation import RandomState, by_name, check_positive, check_share, seed_of, up_to, whole_number

Frame = Any
ColumnLabel = object  # the name of a column; those of pandas need not be text
Row = Any  # a mapping of labels to values, such as a row of a pandas table
BEST_GUESS_ROWS_PER_CALL = 512
MOST_SHOWN = 30  # columns of a model that is displayed


MOST_ORDERS = 100_000  # that a file may ask for


def training_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of how its model was fitted: numbers, by name."""
    return {str(name): checked_number(value, type(value)) for name, value in about.items()}


@final
class AnyOrder(ImageVerbs, CompressionVerbs, MeasuringVerbs, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One model of a table, or of images; then any question about it.

    Parameters
    ----------
    effort: how long to train; 1 is a fraction of a minute on a small table, more is slower and better.
    size: the network for images: small, fine (for shades), medium, large, or one of the papers', such as sfarm-cifar10.
    orders: how many fixed orders are mixed when scoring.
    kinds: overrules the kinds found, as {column: "category" | "number" | "log" | "linear" | "leave out"}: "log" learns a number
        on the scale of its logarithm, "linear" never does, "number" finds out. `preview` shows what is found, and why.
    na: values that stand for gaps, such as 999 or "unknown": one, several, or {column: one or several}. They are filled as gaps.
    keep_rows: whether the model may keep the training rows. It counts those that match a question, and small tables lean on
        them; a model that keeps rows shows them to whoever gets its file, so say False if they are private.
    codec: whether to train a codec beside the model, so that it can `compress`.
    callback: called at every check of the training with the state of the run.
    random_state: seed of everything random; a numpy RandomState draws one at every call, None takes another one every time.
    device: where to compute; "auto" takes an accelerator if there is one.
    """

    def __init__(
        self,
        effort: float = 1.0,
        size: str = "small",
        orders: int = 4,
        kinds: Mapping[Any, str] | None = None,
        keep_rows: bool = True,
        codec: bool = False,
        callback: Callable[[Check], None] | None = None,
        random_state: RandomState = 0,
        device: str = "auto",
        na: Any = None,
    ) -> None:
        self.effort = effort
        self.size = size
        self.orders = orders
        self.kinds = kinds
        self.keep_rows = keep_rows
        self.codec = codec
        self.callback = callback
        self.random_state = random_state
        self.device = device
        self.na = na

    def fit(self, X: Frame, y: Any = None, sample_weight: Any = None) -> "AnyOrder":
        """Learn the table as it is: gaps, categories, dates, integers; or an array of images, y their classes, if any.

        A table holds all there is to learn: a y beside it is ignored, with a warning. A `sample_weight` of 3 counts as three such
        rows, 0 as none; fractions are relative, and rounded to whole copies at random (see `sample_weights.py`).
        """
        check_positive("effort", self.effort)
        whole_number("orders", self.orders, 1)
        choose_device(self.device)
        kinds, seed = by_name("kinds", self.kinds), seed_of(self.random_state)
        if sample_weight is not None and (self.codec or looks_like_images(X)):
            what = "a codec, which stores every row once" if self.codec else "images"
            raise InputError(f"sample_weight is for tables, not for {what}. Leave it out.")
        if looks_like_images(X):
            images = fit_image_array(X, y, self.size, self.effort, seed, self.device, self.callback)
            self.images_, self.history_ = images, images.history
            self.model_: Trained = images.model
            encoded = images.encoder.encode(X) if self.codec else None
            self.codec_ = None if encoded is None else fit_codec(images, encoded, self.effort, seed)
            self.name_ = ""
            return self
        if self.size != "small":
            raise InputError(f"size={self.size!r} is for images; a table's network has one size.")
        if y is not None:
            warnings.warn("fit ignores y: put the target into the table, as a column, and name it in predict.", stacklevel=2)
        codec = fit_codec_of_table(X, self.effort, seed) if self.codec else None
        copies = None if sample_weight is None else copies_of(sample_weight, len(as_frame(X)), seed)
        if copies is not None:
            X, copies = rows_of(X, copies > 0), copies[copies > 0]
        encoder = self._look_at(X, kinds)
        x, present = encoder.encode(X)
        fitted = fit_table(
            encoder.schema, x, present, self.effort, self.keep_rows, seed, self.device, progress=self.callback, copies=copies
        )
        self.encoder_, self.schema_ = encoder, encoder.schema
        self.n_features_in_ = len(encoder.names)
        self.feature_names_in_ = np.array(encoder.names, dtype=object)
        self.template_ = X[:0] if isinstance(X, np.ndarray) else given_back(as_frame(X).head(0), X)
        self.model_, self.history_, self.images_ = fitted.model.cpu(), fitted.history, None
        self.fit_info_ = {"rows": len(x), "effort": self.effort}
        self.codec_, self.name_ = codec, ""
        return self

    @OnClassToo
    def preview(self, X: Frame) -> Preview:
        """What `fit` would take every column of a table for, and why; nothing is trained.

        `AnyOrder.preview(table)`, or with settings `AnyOrder(kinds=..., na=...).preview(table)`.
        """
        return Preview.of(X, by_name("kinds", self.kinds), self.na)

    def fit_transform(self, X: Frame, y: Any = None) -> Frame:
        """`fit`, then `transform`. Pipelines hand y to every step; one that fills gaps has no use for it."""
        return self.fit(X).transform(X)

    @property
    def keeps_rows_(self) -> int:
        """How many training rows the model holds, and its file will hold."""
        check_is_fitted(self)
        return rows_in(self.model_)

    @property
    def parts_(self) -> list[str]:
        """What kinds of model it is made of."""
        check_is_fitted(self)
        return parts_of(self.model_)

    def score_samples(self, X: Frame, target: Any = None, given: Iterable[Any] = ()) -> NDArray[np.float64]:
        """log p(target | given) of each row in nats, as the mass of the recorded values; columns in neither are marginalised.

        Of images: log p(target | rest), with `target` a mask of pixels; of whole images without.
        """
        if self.of_images_:
            return self.image_model_.score_samples(X, target, whole_number("orders", self.orders, 1))
        x, present = self._encode(X)
        question = ask_table(self.encoder_, X, present, target, given)
        shares = (self.encoder_.log_shares(X) * question.target.numpy()).sum(-1)
        return mixture_log_prob(self.model_, x, question, self._orders()).double().numpy() + shares

    def score(self, X: Frame, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def transform(self, X: Frame) -> Frame:
        """X with its gaps filled: the mean of a number, the likeliest category, given the rest of the row.

        A number that has few values is filled with the one of them that is nearest to the mean.
        """
        x, present = self._encode(X)
        filled = self.encoder_.fill(X, self._best(x, present), ~present)
        tell_of_gaps(self.encoder_, filled)
        return filled

    def impute(self, X: Frame, draws: int = 20) -> list[Frame]:
        """`draws` tables with the gaps drawn together from p(gaps | rest of the row): honest uncertainty."""
        draws = whole_number("draws", draws, 1)
        x, present = self._encode(X)
        filled = drawn_together(self.model_, x, present, draws, self._rng(), MixtureOfOrders(self._orders()))
        tables = [self.encoder_.fill(X, one, ~present, self._numpy_rng(draw)) for draw, one in enumerate(filled)]
        tell_of_gaps(self.encoder_, tables[0])
        return tables

    def intervals(self, X: Frame, level: float = 0.9) -> tuple[Frame, Frame]:
        """Two tables in which the gaps of number columns hold the ends of an interval that has `level` of the probability.

        The ends are exact quantiles of the distribution of each cell given the rest of its row. Gaps of categories stay gaps.
        """
        check_share("level", level)
        x, present = self._encode(X)
        numbers = torch.tensor([isinstance(column, NumberColumn) for column in self.encoder_.columns])
        ends = interval(self.model_, x, present, level, numbers)
        low, high = (self.encoder_.fill(X, end, ~present & numbers) for end in ends)
        return low, high

    def sample(
        self,
        n: int = 1,
        given: Mapping[Any, Any] | None = None,
        *,
        steps: int | None = None,
        temperature: float = 1.0,
        label: int | str | None = None,
    ) -> Frame:
        """New rows, given the values of some columns, or ranges (`Between`) or sets (`OneOf`) that they lie in.

        With `steps`, several columns are drawn at once in each of so many steps: faster, but columns of one step do not know
        each other. Of images: new ones, of the class `label`. A `temperature` below 1 keeps to what is likely.
        """
        if self.of_images_:
            return self.image_model_.sample(n, steps, temperature, label, seed_of(self.random_state))
        self._check(label=label)
        n, values, rng = whole_number("n", n, 0), by_name("given", given), self._rng()
        schedule = OneByOne() if steps is None else Even(whole_number("steps", steps, 1))
        x, known = rows_within(self.model_, read_evidence(self.encoder_, values), n, rng)
        orders = MixtureOfOrders(self._orders())  # the same as those that are scored
        drawn = sample(self.model_, x, Question(known, ~known), rng, order=orders, schedule=schedule, temperature=temperature)
        exactly = as_given(self.encoder_, values)
        return narrowed(self.encoder_, values).frame(drawn, self.template_, exactly, self._numpy_rng())

    def conditional(self, row: Row, target: ColumnLabel) -> Answer:
        """The distribution of one column given the other values of a row; they may be ranges (`Between`) or sets (`OneOf`).

        The answer also says how many training rows match (`rows`, `share`), and what every condition did (`explain`).
        """
        self._check()
        place = self.schema_.index(target)
        given = known_of(self.encoder_, by_name("row", row), str(target))
        found = distribution_given(self.model_, read_evidence(self.encoder_, given), place, self._rng())
        return Answer(*found, self.encoder_.columns[place], given, lambda other: self.conditional(other, target))

    def probability(self, event: Row, given: Row | None = None) -> float:
        """How likely it is that all of several columns have these values, or lie in these ranges or sets, given others.

        >>> model.probability({"income": ">50K", "sex": "Female"}, {"age": Between(60, None)})  # doctest: +SKIP
        """
        self._check()
        known, result = dict(by_name("given", given or {})), 1.0
        for name, what in by_name("event", event).items():
            if name in known:
                raise InputError(f"{name!r} is both asked for and given. Name every column once.")
            result *= self.conditional(known, name).prob(what)
            known[name] = what
        return result

    def predict(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[Any]:
        """The best guess of one column (the last, if none is named) given all others: a number's mean, the likeliest category.

        The mean is not rounded to the values of the column, as in `transform`; of dates and of numbers that have few values it
        is, to the nearest that occurs. `predict_mean` never rounds.
        """
        place, x, known = self._all_but(X, target)
        return self.encoder_.columns[place].best_guess(self._best(x, known)[:, place].double().numpy())

    def predict_mean(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[np.float64]:
        """The mean of one column (the last, if none is named) given all others; of categories, too, if they are numbers."""
        place, x, known = self._all_but(X, target)
        column = self.encoder_.columns[place]
        if isinstance(column, NumberColumn) and not column.is_moment:
            return column.number(best_guess(self.model_, x, known)[:, place].double().numpy())
        if not isinstance(column, CategoryColumn) or not column.holds_numbers:
            raise InputError(f"Column {column.name!r} {column.says()}: no numbers, so it has no mean. Use predict.")
        return self.predict_proba(X, column.name) @ np.array(column.levels, dtype=np.float64)

    def predict_proba(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[np.float64]:
        """The probability of every level of a category (the last column, if none is named) given all others, as in `levels`."""
        place, x, known = self._all_but(X, target)
        self.levels(self.schema_.names[place])
        with torch.no_grad():
            distributions = [
                self.model_(x[rows], known[rows]).distribution(place)
                for rows in torch.arange(len(x)).split(BEST_GUESS_ROWS_PER_CALL)
            ]
        table = np.concatenate(
            [
                distribution.pmf().double().numpy()
                for distribution in distributions
                if isinstance(distribution, DiscreteDistribution)
            ]
        )
        column = self.encoder_.columns[place]
        assert isinstance(column, CategoryColumn)
        return column.spread(table)

    def levels(self, target: ColumnLabel) -> tuple[Any, ...]:
        """The values of a category, in the order of `predict_proba`."""
        self._check()
        column = self.encoder_.columns[self.schema_.index(target)]
        if not isinstance(column, CategoryColumn):
            raise InputError(f"Column {target!r} is a number and has no levels. Use predict, or conditional(row, {target!r}).")
        return column.levels

    def anomalies(self, X: Frame) -> Anomalies:
        """How odd every cell is given the rest of its row, and every row; `.to_frame()` lists odd cells, `.plot()` draws them.

        Training rows may be among the rows: what the model counts and remembers of a row does not speak for it.
        """
        x, present = self._encode(X)
        question, orders = Question.joint(present), self._orders()
        rows = lambda own: -mixture_log_prob(self.model_, x, question, orders, context=context_or_none(own))  # noqa: E731
        return find_anomalies(self.model_, self.encoder_, X, x, present, rows)

    def report(self, X: Frame) -> Report:
        """How good the model is on rows that were held out of fit, column by column; `.save("report.html")` writes it to a file.

        Every column is asked given all others, and compared with asking it alone and with ridge or logistic regression on the
        training rows. Calibration, coverage of intervals, gaps and time stand beside.
        """
        x, present = self._encode(X)
        return report_of(self.model_, self.encoder_, x, present)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        head = str(super().__repr__(N_CHAR_MAX))
        if not hasattr(self, "model_"):
            return head
        if self.images_ is not None:
            return f"{head}\n{self.images_!r}"
        body = [[name, kind, sparkline(heights), values] for name, kind, heights, values in self._described()]
        return "\n".join([head, self._learned(), *text_grid(["column", "kind", "shape", "values"], body)])

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram, and below it what was learned."""
        diagram = str(super()._repr_html_inner())
        if not hasattr(self, "model_"):
            return diagram
        if self.images_ is not None:
            return diagram + tag("p", repr(self.images_))
        rows: list[list[object]] = [[name, kind, columns(heights), values] for name, kind, heights, values in self._described()]
        return diagram + tag("div", tag("p", self._learned()), table(["column", "kind", "", "values"], rows))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = dict(super()._repr_mimebundle_(**kwargs))
        return {**bundle, "text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    def _learned(self) -> str:
        """What it was learned from, in a line."""
        about, left_out = self.fit_info_, self.encoder_.left_out
        rows = f"learned from {about['rows']:,} rows: " if about.get("rows") else ""
        without = f", left out: {shorten(', '.join(left_out), 60)}" if left_out else ""
        return f"{rows}{len(self.encoder_.columns)} columns{without}"

    def _described(self) -> list[tuple[str, str, list[float], str]]:
        """Of the first columns name, kind, the shape of the values with nothing known, and which they are."""
        with torch.no_grad():
            nothing = torch.zeros(1, len(self.schema_))
            distributions = self.model_(nothing, nothing.bool())
            made = [
                Answer(distributions.distribution(i), torch.ones(1), None, c)
                for i, c in enumerate(self.encoder_.columns[:MOST_SHOWN])
            ]
        described = [(one.column.name, *one.outline()) for one in made]
        rest = len(self.encoder_.columns) - len(made)
        return described + ([(f"and {rest} more", "", [], "")] if rest else [])

    def consistency(self, X: Frame) -> Consistency:
        """How much the log-probability of every row varies with the order its columns are visited in.

        Any-order models are trained, not forced, to agree between orders; `spread` says how far apart they are.
        """
        x, present = self._encode(X)
        terms = path_terms(self.model_, x, Question.joint(present), self._orders())
        return Consistency(terms.sum(-1).double().numpy() + self.encoder_.log_shares(X).sum(-1))

    def save(self, path: str | Path) -> None:
        """The whole model in one file; the same data and seed give the same bytes, so times are not in it."""
        up_to("orders", self.orders, MOST_ORDERS)
        if self.of_images_:
            self.image_model_.save(path, attached=self.attached_(), orders=self.orders)
            return
        history = [list(check._replace(seconds=0.0)) for check in self.history_]
        table, attached = self.encoder_.to_json(), self.attached_()
        save_model(self.model_, path, attached=attached, table=table, orders=self.orders, history=history, fit=self.fit_info_)

    @classmethod
    def load(cls, path: str | Path) -> "AnyOrder":
        """The model that `save` wrote, or by its name one that comes with the package: digits, mnist, fashion-mnist.

        New rows of a table come as pandas or what is there.
        """
        model, about = load_model_and_more(model_file(path))
        try:
            face = cls(orders=up_to("orders", about.get("orders", 4), MOST_ORDERS))
            history, face.fit_info_ = history_of(about.get("history", [])), training_of(about.get("fit", {}))
        except (TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
            raise FormatError(f"{Path(path).name} is damaged: what it says of its training cannot be read ({error}).") from error
        face.codec_, face.name_ = attached_codec(about, path), "" if model_file(path) == Path(path) else str(path)
        if "images" in about:
            face.images_ = ImageModel.rebuilt(model, about["images"], history, about.get("classes", ()))
            face.model_, face.history_ = face.images_.model, history
            return face
        if "table" not in about:
            raise FormatError(f"{Path(path).name} holds a model, but not one of a table or of images.")
        face.images_, face.history_ = None, history
        face.encoder_ = TableEncoder.from_json(about["table"])
        face.schema_, face.model_ = model.schema, model
        face.n_features_in_, face.feature_names_in_ = len(face.encoder_.names), np.array(face.encoder_.names, dtype=object)
        face.template_ = as_frame(np.zeros((0, 0))).to_native()
        return face

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        self._check()
        return self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _check(self, **for_images: Any) -> None:
        """Of a table, and fitted; what is for images alone was not asked for."""
        if self.of_images_:
            raise UnavailableError(
                "This is a model of images, the question is one about tables. Use inpaint, sample or score_samples."
            )
        for name, value in for_images.items():
            if value is not None:
                raise InputError(f"{name!r} is an option for images; this is a model of a table.")

    def _encode(self, X: Frame) -> tuple[Tensor, Tensor]:
        self._check()
        return self.encoder_.encode(X)

    def _records(self, X: Frame | Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """The rows of a table, or one record of known values."""
        self._check()
        return only_values(self.encoder_, X) if isinstance(X, Mapping) else self._encode(X)

    def _look_at(self, X: Frame, kinds: Mapping[str, str]) -> TableEncoder:
        """The encoder of a table; what it does not model is said."""
        found, sentinels = look_at(X, kinds, self.na), Sentinels.of(self.na)
        encoder = TableEncoder.of(found, len(as_frame(X)), sentinels)
        for note in filter(None, (one.note() for one in found)):
            warnings.warn(note, stacklevel=3)
        return encoder

    def _best(self, x: Tensor, known: Tensor) -> Tensor:
        """Best guesses; where all rare levels of a category together are the likeliest code, the likeliest level."""
        guess = best_guess(self.model_, x, known)
        for place, column in enumerate(self.encoder_.columns):
            own = len(column.common) if isinstance(column, CategoryColumn) and column.rare else None
            rows = (~known[:, place] & (guess[:, place] == own)).nonzero().squeeze(-1) if own else x.new_empty(0)
            for some in rows.long().split(BEST_GUESS_ROWS_PER_CALL) if len(rows) else ():
                with torch.no_grad():
                    distribution = self.model_(x[some], known[some]).distribution(place)
                assert isinstance(distribution, DiscreteDistribution)
                assert isinstance(column, CategoryColumn)
                levels = column.spread(distribution.pmf().double().numpy())
                guess[some, place] = torch.tensor(levels.argmax(-1).clip(max=own)).to(guess.dtype)
        return guess

    def _rng(self) -> Generator:
        return seeded(seed_of(self.random_state))

    def _numpy_rng(self, number: int = 0) -> np.random.Generator:
        """For values that the model does not tell apart."""
        return np.random.default_rng((abs(seed_of(self.random_state)), number))

    def _orders(self) -> list[CanonicalOrder]:
        return fixed_orders(len(self.schema_), whole_number("orders", self.orders, 1))

    def _all_but(self, X: Frame, target: ColumnLabel | None) -> tuple[int, Tensor, Tensor]:
        x, present = self._encode(X)
        place = len(self.schema_) - 1 if target is None else self.schema_.index(target)
        known = present.clone()
        known[:, place] = False
        return place, x, known


def context_or_none(own: Tensor) -> Tensor | None:
    """Which training row every row is, as the context of a model; None if none is."""
    return own[:, None] if (own >= 0).any() else None
