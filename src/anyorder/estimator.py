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

from .answers import Anomalies, Answer, Consistency
from .arguments import RandomState, ask_table, by_name, check_positive, check_share, seed_of, whole_number
from .compression import CompressionVerbs, attached_codec, fit_codec, fit_codec_of_table
from .data import TableEncoder, looks_like_images
from .data.columns import CategoryColumn, NumberColumn
from .data.frames import as_frame, given_back
from .errors import FormatError, InputError
from .evidence import as_given, known_of, law_given, only_values, read_evidence, rows_within
from .heads import DiscreteLaw
from .images import ImageModel, ImageVerbs, fit_image_array
from .inference import (
    best_guess,
    drawn_together,
    fixed_orders,
    interval,
    leave_one_out,
    mixture_log_prob,
    path_terms,
    sample,
    seeded,
)
from .measuring import MeasuringVerbs
from .shipped import model_file
from .subsets import CanonicalOrder, MixtureOfOrders, Question
from .tables import fit_table
from .trained import Trained, parts_of, rows_in
from .training import Check, load_model_and_more, save_model
from .training.fit import choose_device

Frame = Any
Label = object  # the name of a column; those of pandas need not be text
Row = Any  # a mapping of labels to values, such as a row of a pandas table
ROWS_PER_CALL = 512


@final
class AnyOrder(ImageVerbs, CompressionVerbs, MeasuringVerbs, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One model of a table, or of images; then any question about it.

    Parameters
    ----------
    effort: how long to train; 1 is a fraction of a minute on a small table, more is slower and better.
    size: the network for images: small, fine (for shades), medium, large, or one of the papers', such as sfarm-cifar10.
    orders: how many fixed orders are mixed when scoring.
    kinds: overrules the kinds found, as {column: "category" | "number" | "leave out"}.
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

    def fit(self, X: Frame, y: Any = None) -> "AnyOrder":
        """Learn the table as it is: gaps, categories, dates, integers; or an array of images, y their classes, if any.

        A table holds all there is to learn: a y beside it is ignored, with a warning.
        """
        check_positive("effort", self.effort)
        whole_number("orders", self.orders, 1)
        choose_device(self.device)
        kinds, seed = by_name("kinds", self.kinds), seed_of(self.random_state)
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
        encoder = TableEncoder.learn(X, kinds)
        x, present = encoder.encode(X)
        fitted = fit_table(encoder.schema, x, present, self.effort, self.keep_rows, seed, self.device, progress=self.callback)
        self.encoder_, self.schema_ = encoder, encoder.schema
        self.n_features_in_ = len(encoder.names)
        self.feature_names_in_ = np.array(encoder.names, dtype=object)
        self.like_ = X[:0] if isinstance(X, np.ndarray) else given_back(as_frame(X).head(0), X)
        self.model_, self.history_, self.images_ = fitted.model.cpu(), fitted.history, None
        self.about_ = {"rows": len(x), "effort": self.effort}
        self.codec_, self.name_ = codec, ""
        return self

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
        return mixture_log_prob(self.model_, x, question, self._orders()).double().numpy()

    def score(self, X: Frame, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def transform(self, X: Frame) -> Frame:
        """X with its gaps filled: the mean of a number, the likeliest category, given the rest of the row."""
        x, present = self._encode(X)
        return self.encoder_.fill(X, best_guess(self.model_, x, present), ~present)

    def impute(self, X: Frame, draws: int = 20) -> list[Frame]:
        """`draws` tables with the gaps drawn together from p(gaps | rest of the row): honest uncertainty."""
        draws = whole_number("draws", draws, 1)
        x, present = self._encode(X)
        filled = drawn_together(self.model_, x, present, draws, self._rng(), MixtureOfOrders(self._orders()))
        return [self.encoder_.fill(X, one, ~present) for one in filled]

    def intervals(self, X: Frame, level: float = 0.9) -> tuple[Frame, Frame]:
        """Two tables in which the gaps of number columns hold the ends of an interval that has `level` of the probability.

        The ends are exact quantiles of the law of each cell given the rest of its row. Gaps of categories stay gaps.
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
        label: int | None = None,
    ) -> Frame:
        """New rows, given the values of some columns, or ranges (`Between`) or sets (`OneOf`) that they lie in.

        Of images: new ones, in so many `steps`, of the class `label`. A `temperature` below 1 keeps to what is likely.
        """
        if self.of_images_:
            return self.image_model_.sample(n, steps, temperature, label, seed_of(self.random_state))
        self._check(steps=steps, label=label)
        n, values, rng = whole_number("n", n, 0), by_name("given", given), self._rng()
        x, known = rows_within(self.model_, read_evidence(self.encoder_, values), n, rng)
        orders = MixtureOfOrders(self._orders())  # the same as those that are scored
        drawn = sample(self.model_, x, Question(known, ~known), rng, order=orders, temperature=temperature)
        return self.encoder_.frame(drawn, self.like_, exactly=as_given(self.encoder_, values))

    def conditional(self, row: Row, target: Label) -> Answer:
        """The law of one column given the other values of a row; they may be ranges (`Between`) or sets (`OneOf`).

        The answer also says how many training rows match (`rows`, `share`), and what every condition did (`explain`).
        """
        self._check()
        place = self.schema_.index(target)
        given = known_of(self.encoder_, by_name("row", row), str(target))
        found = law_given(self.model_, read_evidence(self.encoder_, given), place, self._rng())
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

    def predict(self, X: Frame, target: Label | None = None) -> NDArray[Any]:
        """The best guess of one column (the last, if none is named) given all others: a number's mean, the likeliest category.

        The mean is not rounded to the values of the column, as in `transform`; of dates it is.
        """
        place, x, known = self._all_but(X, target)
        return self.encoder_.columns[place].best_guess(best_guess(self.model_, x, known)[:, place].double().numpy())

    def predict_proba(self, X: Frame, target: Label) -> NDArray[np.float64]:
        """The probability of every level of a category given all other columns; levels in the order of `levels`."""
        place, x, known = self._all_but(X, target)
        self.levels(target)
        with torch.no_grad():
            laws = [self.model_(x[rows], known[rows]).law(place) for rows in torch.arange(len(x)).split(ROWS_PER_CALL)]
        return np.concatenate([law.pmf().double().numpy() for law in laws if isinstance(law, DiscreteLaw)])

    def levels(self, target: Label) -> tuple[Any, ...]:
        """The values of a category, in the order of `predict_proba`."""
        self._check()
        column = self.encoder_.columns[self.schema_.index(target)]
        if not isinstance(column, CategoryColumn):
            raise InputError(f"Column {target!r} is a number and has no levels. Use predict, or conditional(row, {target!r}).")
        return column.levels

    def anomalies(self, X: Frame) -> "Anomalies":
        """How surprising every row is, and every cell given the rest of its row, in nats."""
        x, present = self._encode(X)
        rows = -mixture_log_prob(self.model_, x, Question.joint(present), self._orders()).double().numpy()
        cells = -leave_one_out(self.model_, x, present).double().numpy()
        return Anomalies(rows, cells, [column.name for column in self.encoder_.columns])

    def consistency(self, X: Frame) -> Consistency:
        """How much the log-probability of every row varies with the order its columns are visited in.

        Any-order models are trained, not forced, to agree between orders; `spread` says how far apart they are.
        """
        x, present = self._encode(X)
        terms = path_terms(self.model_, x, Question.joint(present), self._orders())
        return Consistency(terms.sum(-1).double().numpy())

    def save(self, path: str | Path) -> None:
        """The whole model in one file; the same data and seed give the same bytes, so times are not in it."""
        if self.of_images_:
            self.image_model_.save(path, attached=self.attached_(), orders=self.orders)
            return
        history = [list(check._replace(seconds=0.0)) for check in self.history_]
        table, attached = self.encoder_.to_json(), self.attached_()
        save_model(self.model_, path, attached=attached, table=table, orders=self.orders, history=history, fit=self.about_)

    @classmethod
    def load(cls, path: str | Path) -> "AnyOrder":
        """The model that `save` wrote, or by its name one that comes with the package: digits, mnist, fashion-mnist.

        New rows of a table come as pandas or what is there.
        """
        model, about = load_model_and_more(model_file(path))
        try:
            face = cls(orders=int(about.get("orders", 4)))
            history, face.about_ = [Check(*check) for check in about.get("history", [])], dict(about.get("fit", {}))
        except (TypeError, ValueError) as error:
            raise FormatError(f"{Path(path).name} is damaged: what it says of its training cannot be read ({error}).") from error
        face.codec_, face.name_ = attached_codec(about, path), "" if model_file(path) == Path(path) else str(path)
        if "images" in about:
            face.images_ = ImageModel.rebuilt(model, about["images"], history)
            face.model_, face.history_ = face.images_.model, history
            return face
        if "table" not in about:
            raise FormatError(f"{Path(path).name} holds a model, but not one of a table or of images.")
        face.images_, face.history_ = None, history
        face.encoder_ = TableEncoder.from_json(about["table"])
        face.schema_, face.model_ = model.schema, model
        face.n_features_in_, face.feature_names_in_ = len(face.encoder_.names), np.array(face.encoder_.names, dtype=object)
        face.like_ = as_frame(np.zeros((0, 0))).to_native()
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
            raise InputError("This is a model of images, the question is one about tables. Use inpaint, sample or score_samples.")
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

    def _rng(self) -> Generator:
        return seeded(seed_of(self.random_state))

    def _orders(self) -> list[CanonicalOrder]:
        return fixed_orders(len(self.schema_), whole_number("orders", self.orders, 1))

    def _all_but(self, X: Frame, target: Label | None) -> tuple[int, Tensor, Tensor]:
        x, present = self._encode(X)
        place = len(self.schema_) - 1 if target is None else self.schema_.index(target)
        known = present.clone()
        known[:, place] = False
        return place, x, known
