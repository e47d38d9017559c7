"""AnyOrder: scikit-learn's conventions around one model of whatever it was given. It finds the kind of data and forwards."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .archives import Codec, to_bytes
from .errors import FormatError, InputError, UnavailableError
from .io.shipped import model_file
from .modalities.base import ESTIMATORS_OWN, MODALITIES, Fitted, Training, ask, check_settings, listed, named
from .modalities.compression import CODEC, attached_codec, compress_with, unpacked
from .modalities.registry import modality_of, modality_reading, names_files
from .modalities.tables.acquisition import Acquired, Asked
from .modalities.tables.answers import Answer, Consistency
from .modalities.tables.preview import OnClassToo
from .modalities.tables.report import Report
from .models.trained import BAD_CONTENT, Trained
from .schema import Schema
from .subsets import Order, Planned, Schedule
from .training import Check, Objective, load_model_and_more, save_model
from .training.checkpoint import history_of
from .training.loop import choose_device
from .validation import RandomState, check_positive, seed_of, up_to, whole_number

Frame = Any  # a table of any dataframe library
Row = Any  # a mapping of labels to values, such as a row of a pandas table
ColumnLabel = object  # the name of a column; those of pandas need not be text
FOR_ALL = {"effort", "orders", "codec", "callback", "random_state", "device"}  # settings of every kind of data
MOST_ORDERS = 100_000  # that a file may ask for


@final
class AnyOrder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One model of a table, of images or of text; then any question about it.

    What it is fitted to decides which questions it answers; a question or an option that is for another kind of data is
    refused in one sentence. The trained model is `fitted_`.

    Parameters
    ----------
    effort: how long to train; 1 is a fraction of a minute on a small table, more is slower and better.
    size: the network for images: small, fine (for shades), medium, large, or one of the papers', such as sfarm-cifar10.
    orders: how many fixed orders are mixed when scoring.
    kinds: of a table: overrules the kinds found, as {column: "category" | "number" | "log" | "linear" | "leave out"}: "log"
        learns a number on the scale of its logarithm, "linear" never does, "number" finds out. `preview` shows what is
        found, and why.
    na: of a table: values that stand for gaps, such as 999 or "unknown": one, several, or {column: one or several}. They
        are filled as gaps.
    keep_rows: of a table: whether the model may keep the training rows. It counts those that match a question, and small
        tables lean on them; a model that keeps rows shows them to whoever gets its file, so say False if they are private.
    objective: what to train for, such as `mac()`: train for what you will ask. Without it, any subset alike.
    base: of images: values are learned digit by digit in this base, the most significant first (upscaling); 0 is off.
    codec: whether to train a codec beside the model, so that it can `compress`.
    callback: called at every check of the training with the state of the run.
    random_state: seed of everything random; a numpy RandomState draws one at every call, None takes another one every time.
    device: where to compute; "auto" takes an accelerator if there is one.
    """

    fitted_: Any  # a `Fitted`: what it is depends on the kind of data
    codec_: Codec | None
    name_: str  # of a model that comes with the package

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
        objective: Objective | None = None,
        base: int = 0,
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
        self.objective = objective
        self.base = base

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "AnyOrder":
        """Learn a table as it is: gaps, categories, dates, integers; or an array of images, y their classes, if any.

        A table holds all there is to learn: a y beside it is ignored, with a warning. A `sample_weight` of 3 counts as three such
        rows, 0 as none; fractions are relative, and rounded to whole copies at random.

        X may be the name of a file, a folder or a pattern such as "data/*.parquet", too: what is larger than memory is read in
        parts, and a model is learned from a uniform sample of its rows.
        """
        check_positive("effort", self.effort)
        whole_number("orders", self.orders, 1)
        choose_device(self.device)
        if names_files(X):
            X, found, sample_weight = read_files(Path(X), sample_weight)
            y = found if y is None else y
        modality = modality_of(X)
        settings = {name: getattr(self, name) for name in self._own_settings()}
        if sample_weight is not None:
            if self.codec:
                raise InputError("sample_weight is not for a codec, which stores every row once. Leave one of them out.")
            settings["sample_weight"] = sample_weight
        check_settings(modality, {name: f"{name}=" for name in settings})
        training = Training(float(self.effort), seed_of(self.random_state), self.device, self.callback)
        codec = modality.fit_codec(X, training) if self.codec else None
        self._take(modality.fit(X, y, training, **settings), codec)
        return self

    @OnClassToo
    def preview(self, X: Any) -> Any:
        """What `fit` would take every column of a table for, and why; nothing is trained.

        `AnyOrder.preview(table)`, or with settings `AnyOrder(kinds=..., na=...).preview(table)`.
        """
        modality = modality_of(X)
        settings = {name: getattr(self, name) for name in self._own_settings()}
        return modality.preview(X, **{name: value for name, value in settings.items() if name in named(modality.preview)})

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, then `transform`. Pipelines hand y to every step; one that fills gaps has no use for it."""
        return self.fit(X).transform(X)

    # What was learned

    @property
    def model_(self) -> Trained:
        """The model itself, for the functions of the engine."""
        return self._fitted.model

    @property
    def history_(self) -> list[Check]:
        """Every check of the training."""
        return self._fitted.history

    @property
    def schema_(self) -> Schema:
        """The variables of the model."""
        return self._fitted.model.schema

    @property
    def encoder_(self) -> Any:
        """How the data were written, and how they become numbers."""
        return self._fitted.encoder  # type: ignore[attr-defined]

    @property
    def keeps_rows_(self) -> int:
        """How many training rows the model holds, and its file will hold."""
        return self.model_.rows_held

    @property
    def parts_(self) -> list[str]:
        """What kinds of model it is made of."""
        return self.model_.parts

    # Questions

    def score_samples(
        self,
        X: Any,
        target: Any = None,
        given: Iterable[Any] | None = None,
        *,
        label: Any = None,
        mode: str | None = None,
        order: Order | None = None,
        steps: int | None = None,
        schedule: Schedule | None = None,
    ) -> NDArray[np.float64]:
        """log p(target | given) of each row in nats, as the mass of the recorded values; columns in neither are marginalised.

        Of images: log p(target | rest), with `target` a mask of pixels; of whole images without. `label` is the class that
        they are told to be of: one for all, or one each. Scores are mixed over several orders fixed in advance, or taken
        along one `order`. `steps` or a `schedule` score several variables in one network call, as if they did not know each
        other: what `sample` with the same schedule draws from.
        """
        options = {"given": given, "label": label, "mode": mode, "order": order, "steps": steps, "schedule": schedule}
        return self._ask("score_samples", X, target=target, **options)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def plan(self, X: Any, steps: int) -> Planned:
        """The `schedule` of so many steps that costs data like X the fewest nats, for `sample` and `score_samples`.

        It is found by dynamic programming from what a value costs when so many others are known, measured on X: give rows or
        images that were held out of `fit`.
        """
        return self._ask("plan", X, steps)

    def transform(self, X: Frame) -> Frame:
        """X with its gaps filled: the mean of a number, the likeliest category, given the rest of the row.

        A number that has few values is filled with the one of them that is nearest to the mean.
        """
        return self._ask("transform", X)

    def impute(self, X: Frame, draws: int = 20) -> list[Frame]:
        """`draws` tables with the gaps drawn together from p(gaps | rest of the row): honest uncertainty."""
        return self._ask("impute", X, draws)

    def intervals(self, X: Frame, level: float = 0.9) -> tuple[Frame, Frame]:
        """Two tables in which the gaps of number columns hold the ends of an interval that has `level` of the probability.

        The ends are exact quantiles of the distribution of each cell given the rest of its row. Gaps of categories stay gaps.
        """
        return self._ask("intervals", X, level)

    def sample(
        self,
        n: int = 1,
        given: Any = None,
        *,
        steps: int | None = None,
        schedule: Schedule | None = None,
        order: Order | None = None,
        temperature: float | None = None,
        label: Any = None,
        mode: str | None = None,
    ) -> Any:
        """New rows, given the values of some columns, or ranges (`Between`) or sets (`OneOf`) that they lie in.

        With `steps`, several variables are drawn at once in each of so many steps: faster, but those of one step do not know
        each other; a `schedule` says how many in which step. Of images: new ones, of the class `label`. A `temperature` below
        1 keeps to what is likely.
        """
        options = {"steps": steps, "schedule": schedule, "order": order, "temperature": temperature, "label": label, "mode": mode}
        return self._ask("sample", n, given=given, **options)

    def inpaint(
        self,
        images: Any,
        mask: Any,
        draws: int = 1,
        *,
        steps: int | None = None,
        schedule: Schedule | None = None,
        temperature: float | None = None,
        label: Any = None,
        mode: str | None = None,
    ) -> NDArray[Any]:
        """Completions of images, as (draw, image, height, width, ...): what the mask marks is drawn given all other pixels.

        No known pixel is touched. The mask is non-zero where a pixel is missing: one for all images, or one each. `steps`
        network calls fill an image: fewer are faster, None is one for every value and exact.
        """
        options = {"steps": steps, "schedule": schedule, "temperature": temperature, "label": label, "mode": mode}
        return self._ask("inpaint", images, mask, draws, **options)

    def restore(
        self,
        texts: Any,
        draws: int | None = None,
        *,
        missing: Any = None,
        gap: str | None = None,
        alternatives: int | None = None,
    ) -> Any:
        """Texts with their gaps filled: the likeliest filling, alternatives with probabilities, and `draws` of all gaps together.

        A gap has one mark, `gap` ("_"), for every missing character; or `missing` is an array of booleans for every text.

        >>> model.restore("the q____ brown fox", draws=3)  # doctest: +SKIP
        """
        return self._ask("restore", texts, draws=draws, missing=missing, gap=gap, alternatives=alternatives)

    def conditional(self, row: Row, target: ColumnLabel) -> Answer:
        """The distribution of one column given the other values of a row; they may be ranges (`Between`) or sets (`OneOf`).

        The answer also says how many training rows match (`rows`, `share`), and what every condition did (`explain`).
        """
        return self._ask("conditional", row, target)

    def probability(self, event: Row, given: Row | None = None) -> float:
        """How likely it is that all of several columns have these values, or lie in these ranges or sets, given others.

        >>> model.probability({"income": ">50K", "sex": "Female"}, {"age": Between(60, None)})  # doctest: +SKIP
        """
        return self._ask("probability", event, given=given)

    def predict(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[Any]:
        """The best guess of one column (the last, if none is named) given all others: a number's mean, the likeliest category.

        The mean is not rounded to the values of the column, as in `transform`; of dates and of numbers that have few values it
        is, to the nearest that occurs. `predict_mean` never rounds.
        """
        return self._ask("predict", X, target=target)

    def predict_mean(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[np.float64]:
        """The mean of one column (the last, if none is named) given all others; of categories, too, if they are numbers."""
        return self._ask("predict_mean", X, target=target)

    def predict_proba(self, X: Frame, target: ColumnLabel | None = None) -> NDArray[np.float64]:
        """The probability of every level of a category (the last column, if none is named) given all others, as in `levels`."""
        return self._ask("predict_proba", X, target=target)

    def levels(self, target: ColumnLabel) -> tuple[Any, ...]:
        """The values of a category, in the order of `predict_proba`."""
        return self._ask("levels", target)

    def anomalies(self, X: Any) -> Any:  # Anomalies of a table, TextAnomalies of text
        """How odd every cell is given the rest of its row, and every row; `.to_frame()` lists odd cells, `.plot()` draws them.

        Of text: how surprising every character is given all others, and what it should be; `.lines()` lists the oddest.
        Training rows may be among the rows: what the model counts and remembers of a row does not speak for it.
        """
        return self._ask("anomalies", X)

    def report(self, X: Frame) -> Report:
        """How good the model is on rows that were held out of fit, column by column; `.save("report.html")` writes it to a file.

        Every column is asked given all others, and compared with asking it alone and with ridge or logistic regression on the
        training rows. Calibration, coverage of intervals, gaps and time stand beside.
        """
        return self._ask("report", X)

    def consistency(self, X: Frame) -> Consistency:
        """How much the log-probability of every row varies with the order its columns are visited in.

        Any-order models are trained, not forced, to agree between orders; `spread` says how far apart they are.
        """
        return self._ask("consistency", X)

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
    ) -> Frame:
        """What to measure next in every row to learn most about the target: a table, the advised measurement of a row first.

        `gain` is how many nats the measurement is expected to tell about the target, with the standard error of its draws: how
        well the model knows the joint is not in it. `costs` names
        what can be measured and its price (without it, every other column costs 1); `groups` = {"panel": [columns]} are
        measured together and have a price of their own. `worth` is what a nat is worth, in the unit of the prices: where no
        gain is worth its cost, or the `budget` is too small, nothing is advised. With `ahead`=2, pairs are weighed too: two
        columns may tell much together and nothing alone. X is a table with gaps, or one record as a mapping.
        """
        options = {"costs": costs, "groups": groups, "budget": budget, "worth": worth, "ahead": ahead, "draws": draws}
        return self._ask("next_best", X, target, **options)

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
    ) -> Acquired:
        """Measure, look, choose again, every row on its own path until it stops: see `next_best` for the arguments.

        `oracle` knows the values: a table of the true rows, in which a gap cannot be measured, or a function of the number of
        a row and the names of columns that returns {name: value}. A row stops when its target has at most `certain` nats of
        entropy, after `steps` measurements, or when nothing affordable is worth its cost.
        """
        limits = {"budget": budget, "worth": worth, "certain": certain, "steps": steps, "ahead": ahead, "draws": draws}
        return self._ask("acquire", X, target, oracle, costs=costs, groups=groups, **limits)

    # Archives and files

    def compress(self, X: Any, verify: bool = True) -> bytes:
        """An archive of a table, or of an array of images; `decompress` gives back every value, all labels and types.

        What the codec does not know (another size, other values) is stored all the same, only not as small.
        """
        codec = self.known_codec_
        modality = next((one for one in MODALITIES if one.codec is type(codec)), None) or modality_of(X)
        return compress_with(codec, self.name_, modality.source(X, verify), verify)

    def decompress(self, archive: bytes) -> Any:
        """What `compress` made an archive of. An archive that was damaged is refused."""
        return unpacked(archive, lambda about: self.known_codec_)

    @property
    def known_codec_(self) -> Codec:
        """The codec trained beside the model."""
        if self._fitted is None or self.codec_ is None:
            raise UnavailableError("This model was fitted without a codec: AnyOrder(codec=True).fit(...).")
        return self.codec_

    def save(self, path: str | Path, half: bool = False) -> None:
        """The whole model in one file; the same data and seed give the same bytes, so times are not in it.

        `half` keeps 16 bits of every number: a file of half the size that answers nearly the same.
        """
        up_to("orders", self.orders, MOST_ORDERS)
        fitted = self._fitted
        history = [list(check._replace(seconds=0.0)) for check in fitted.history]
        attached = {} if self.codec_ is None else {CODEC: to_bytes(self.codec_)}
        save_model(fitted.model, path, half, attached, orders=self.orders, history=history, **fitted.about())

    @classmethod
    def load(cls, path: str | Path) -> "AnyOrder":
        """The model that `save` wrote, or by its name one that comes with the package: digits, mnist, fashion-mnist.

        New rows of a table come as pandas or what is there.
        """
        model, about = load_model_and_more(model_file(path))
        modality = next((one for one in MODALITIES if one.name in about), None)
        if modality is None:
            raise FormatError(
                f"{Path(path).name} holds a model, but of no kind of data that is known: "
                f"{listed(one.plural for one in MODALITIES)}."
            )
        try:
            face = cls(orders=up_to("orders", about.get("orders", 4), MOST_ORDERS))
            fitted = modality.rebuild(model, about, history_of(about.get("history", [])))
        except FormatError:
            raise
        except BAD_CONTENT as error:
            raise FormatError(f"{Path(path).name} is damaged: what it says of its training cannot be read ({error}).") from error
        face._take(fitted, attached_codec(about, path), "" if model_file(path) == Path(path) else str(path))
        return face

    @classmethod
    def of(cls, fitted: Fitted, codec: Codec | None = None) -> "AnyOrder":
        """An estimator around a model that was trained by other means."""
        face = cls()
        face._take(fitted, codec)
        return face

    # scikit-learn's conventions

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        check_is_fitted(self)
        return self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        head = str(super().__repr__(N_CHAR_MAX))
        return "\n".join([head, *self.fitted_.outline()]) if "fitted_" in vars(self) else head

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram, and below it what was learned."""
        diagram = str(super()._repr_html_inner())
        return diagram + self.fitted_.outline_html() if "fitted_" in vars(self) else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = dict(super()._repr_mimebundle_(**kwargs))
        return {**bundle, "text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    # One place for all questions

    @property
    def _fitted(self) -> Fitted:
        if "fitted_" not in vars(self):
            raise NotFittedError("This AnyOrder is not fitted yet: call fit with a table or with images first.")
        return self.fitted_

    def _take(self, fitted: Fitted, codec: Codec | None, name: str = "") -> None:
        self.fitted_, self.codec_, self.name_ = fitted, codec, name
        names = fitted.feature_names()
        if names is not None:
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)

    def _own_settings(self) -> list[str]:
        """Those settings that are not for every kind of data, and were made."""
        usual = {name: one.default for name, one in signature(type(self).__init__).parameters.items()}
        return [name for name in usual if name not in FOR_ALL | {"self"} and not unchanged(getattr(self, name), usual[name])]

    def _ask(self, verb: str, *arguments: Any, **options: Any) -> Any:
        """The answer of the fitted model; its seed and its number of orders are those of this estimator."""
        method = ask(self._fitted, verb, options)
        made = {name: value for name, value in options.items() if value is not None}
        for name, setting in ESTIMATORS_OWN.items():
            if name in named(method):
                value = getattr(self, setting)
                made[name] = seed_of(value) if name == "seed" else whole_number(name, value, 1)
        return method(*arguments, **made)


def read_files(path: Path, sample_weight: Any) -> tuple[Any, Any, Any]:
    """What a file, a folder or a pattern holds."""
    X, y, weight = modality_reading(path).read(path)
    return X, y, weight if sample_weight is None else sample_weight


def unchanged(value: Any, usual: Any) -> bool:
    """Whether a setting is as it was: other types are other values, and arrays are never compared."""
    return value is usual or (type(value) is type(usual) and isinstance(value, str | bool | int | float) and value == usual)
