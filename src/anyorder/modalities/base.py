"""What a kind of data is: what it accepts, how a model of it is fitted and kept, and which questions such a model answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ..archives import ClosedArchive, Codec, Done, Lost, OpenArchive, Source
from ..errors import InputError, UnavailableError
from ..models.trained import Trained
from ..subsets import OneByOne, Schedule
from ..training import Check
from ..validation import is_whole

Document = dict[str, Any]  # plain JSON
ESTIMATORS_OWN = {"seed": "random_state", "orders": "orders"}  # arguments of verbs that the estimator fills in


class Training(NamedTuple):
    """How long, from which seed and on which device to train, whatever the data are."""

    effort: float = 1.0
    seed: int = 0
    device: str = "auto"
    progress: Callable[[Check], None] | None = None


class DataFile(NamedTuple):
    """What a file or a folder holds: the data, and what `fit` may be told beside them."""

    X: Any
    y: Any = None
    sample_weight: Any = None


class Fitted(ABC):
    """A trained model of one kind of data. Its public methods are the verbs it has; their arguments are the options.

    A verb that draws has an argument `seed`, one that mixes orders has `orders`: the estimator fills in its own.
    """

    what: ClassVar[str]  # as in "a model of ...": "a table"
    model: Trained
    history: list[Check]

    @abstractmethod
    def about(self) -> Document:
        """What its file says besides the model, one entry under the name of the modality."""

    @abstractmethod
    def describe(self) -> Document:
        """What it is, for `anyorder info`: at least `what`, and whatever else is worth knowing."""

    def outline(self) -> list[str]:
        """What it is, as lines of text for `repr`."""
        return [f"a model of {self.what}: {', '.join(self.model.parts)}"]

    def outline_html(self) -> str:
        """The same for a notebook."""
        from html import escape

        return "".join(f"<p>{escape(line)}</p>" for line in self.outline())

    def feature_names(self) -> tuple[str, ...] | None:
        """scikit-learn's `feature_names_in_`, if the data have columns."""
        return None

    @classmethod
    def verbs(cls) -> list[str]:
        """The questions that it answers."""
        own = [name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name))]
        return [name for name in own if not hasattr(Fitted, name)]


class Modality(ABC):
    """A kind of data. The keyword arguments of its `fit` are the settings that it understands besides `Training`."""

    name: ClassVar[str]  # what files and archives call it
    what: ClassVar[str]  # one of it, as in "this is ...": "a table"
    plural: ClassVar[str]  # "tables"
    fitted: ClassVar[type[Fitted]]
    counted: ClassVar[str] = "rows"  # what there are so many of
    codec: ClassVar[type[Codec] | None] = None  # what codes such data
    fit: Callable[..., Fitted]  # fit(X, y, training, **settings)

    @abstractmethod
    def accepts(self, X: Any) -> bool:
        """Whether X is data of this kind."""

    @abstractmethod
    def rebuild(self, model: Trained, about: Mapping[str, Any], history: list[Check]) -> Fitted:
        """From the model in a file and what the file says (`Fitted.about`); FormatError if they contradict each other."""

    def reads(self, path: Path) -> bool:
        """Whether a file or folder of this name holds such data."""
        return False

    def read(self, path: Path) -> DataFile:
        """What the file or folder holds; keyword arguments of a subclass say how it is written."""
        raise UnavailableError(f"{self.plural.capitalize()} are not read from files.")

    def preview(self, X: Any) -> Any:
        """What `fit` would make of X, before any training."""
        raise UnavailableError(f"There is nothing to preview of {self.plural}.")

    def source(self, X: Any, verify: bool = True) -> Source:
        """X as items of an archive; without `verify` what is made of it is not compared with X."""
        raise UnavailableError(f"{self.plural.capitalize()} cannot be compressed.")

    def fit_codec(self, X: Any, training: Training) -> Codec:
        """A codec trained on X, to be attached to its model."""
        raise UnavailableError(f"{self.plural.capitalize()} have no codec.")

    def unpack(self, archive: OpenArchive) -> tuple[Any, list[Lost]]:
        """What `source` was made from, and what is lost."""
        raise UnavailableError(f"{self.plural.capitalize()} cannot be decompressed.")

    def file_source(self, path: Path) -> Source:
        """A file or folder as items of an archive, byte for byte where it can be."""
        return self.source(self.read(path).X)

    def file_codec(self, path: Path, training: Training) -> Codec:
        """A codec trained on what a file or folder holds, as it is written there."""
        return self.fit_codec(self.read(path).X, training)

    def unpack_to(self, archive: OpenArchive, name: str, output: Path, done: Done | None = None) -> list[Lost]:
        """What `file_source` was made from, at another place; what is lost. `name` is that of the archive."""
        raise UnavailableError(f"{self.plural.capitalize()} cannot be decompressed.")

    def values_in(self, archive: ClosedArchive, codec: Codec | None) -> int:
        """How many values an archive holds, to tell bits a value; 0 where that would say little."""
        return 0


MODALITIES: list[Modality] = []  # the first that accepts data has them


def register(modality: Modality) -> Modality:
    """From now on data that it accepts are of this kind, whatever was registered before."""
    MODALITIES.insert(0, modality)
    return modality


def named(function: Callable[..., Any]) -> set[str]:
    """The names of a function's arguments."""
    return {name for name, one in signature(function).parameters.items() if one.kind is not Parameter.VAR_KEYWORD}


def check_settings(modality: Modality, given: Mapping[str, str], function: str = "fit") -> None:
    """Refuse settings that belong to another kind of data; `given` = {setting: as it was written}."""
    for name, written in given.items():
        if name not in named(getattr(modality, function)):
            others = [other.plural for other in MODALITIES if name in named(getattr(other, function))]
            raise InputError(f"{written} is for {listed(others)}; this is {modality.what}. Leave it out.")


def ask(fitted: Fitted, verb: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """The verb of a fitted model; refused if it has none, or none with these options (None: not given)."""
    if verb not in fitted.verbs():
        having = [other.plural for other in MODALITIES if verb in other.fitted.verbs()]
        raise UnavailableError(
            f"This is a model of {fitted.what}, and {verb} is a question about {listed(having)}. "
            f"It answers {', '.join(fitted.verbs())}."
        )
    method = getattr(fitted, verb)
    for name, value in options.items():
        if value is not None and name not in named(method):
            having = [other.plural for other in MODALITIES if name in named(getattr(other.fitted, verb, lambda: None))]
            own = sorted(named(method) - set(ESTIMATORS_OWN))
            raise InputError(
                f"{verb} of a model of {fitted.what} has no option {name!r}, which is for {listed(having)}; "
                f"it has {', '.join(own)}. Leave it out."
            )
    return method


def chosen_schedule(steps: int | None, schedule: Schedule | None, usual: Callable[[int], Schedule]) -> Schedule:
    """How many values are revealed in each network call: as a schedule says, or in so many steps of the usual kind."""
    if schedule is not None and steps is not None:
        raise InputError(f"Got steps={steps!r} and schedule={schedule!r}, which say the same. Give one of them.")
    if steps is not None and (not is_whole(steps) or steps < 1):
        raise InputError(f"Got steps={steps!r}; expected a whole number, 1 or more, or None for one value at a time.")
    return schedule or (OneByOne() if steps is None else usual(int(steps)))


def listed(words: Iterable[str]) -> str:
    """As in a sentence: "tables and images"."""
    *first, last = list(words) or ["nothing here"]
    return f"{', '.join(first)} and {last}" if first else last
