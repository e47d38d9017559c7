"""What is open: tables or images, and models; kept in memory, and trained models in one folder as well."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, final

from ..errors import InputError
from ..estimator import AnyOrder
from ..io.shipped import names as shipped_names
from ..modalities.base import Modality
from .jobs import Job, Jobs

Cell = tuple[int, str]  # the number of a row, the name of a column
MOST_OPEN = 24  # tables, and as many models: then the one that was opened first is closed
UNSAFE = re.compile(r"[^\w. +-]+")


class NotThereError(InputError):
    """What was asked for is not open, or not open any more."""


@final
@dataclass
class Dataset:
    """What a file held, and what was done to it since."""

    id: str
    name: str
    modality: Modality
    X: Any
    y: Any = None
    original: Any = None  # before anything was filled
    filled: dict[Cell, dict[str, Any]] = field(default_factory=dict)
    odd: dict[Cell, dict[str, Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@final
@dataclass
class OpenModel:
    """A model, and under which name a file holds it."""

    id: str
    name: str  # of its file, or of one that comes with the package
    model: AnyOrder
    data: str | None = None  # the id of what it was trained on
    remembered: dict[str, Any] = field(default_factory=dict)  # answers that do not change


T = TypeVar("T", Dataset, OpenModel)


@final
class Workspace:
    """All that is open. `folder` is where trained models are saved, and found again; None keeps them in memory only."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.jobs = Jobs()
        self.datasets: dict[str, Dataset] = {}
        self.models: dict[str, OpenModel] = {}
        self.uploads: dict[str, Any] = {}  # files that wait to be compressed
        self._numbers = count(1)
        self._lock = threading.Lock()

    def add_data(self, name: str, modality: Modality, X: Any, y: Any = None) -> Dataset:
        return self._keep(self.datasets, lambda id: Dataset(f"d{id}", tidy_name(name), modality, X, y, X))

    def add_model(self, name: str, model: AnyOrder, data: str | None = None) -> OpenModel:
        return self._keep(self.models, lambda id: OpenModel(f"m{id}", tidy_name(name), model, data))

    def data(self, id: str) -> Dataset:
        return found(self.datasets, id, "table or images")

    def model(self, id: str) -> OpenModel:
        return found(self.models, id, "model")

    def job(self, id: str) -> Job:
        job = self.jobs.get(id)
        if job is None:
            raise NotThereError(f"There is no job {id!r:.40}. It may have been forgotten: only the last ones are kept.")
        return job

    def save(self, model: AnyOrder, name: str) -> str:
        """The model in the folder, under its name or one with a number, never over another file; the name it got."""
        name = tidy_name(name)
        if self.folder is None:
            return f"{name}.ao"
        self.folder.mkdir(parents=True, exist_ok=True)
        candidates = (f"{name}{'' if k == 1 else f'-{k}'}.ao" for k in count(1))
        free = next(one for one in candidates if not (self.folder / one).exists())
        model.save(self.folder / free)
        return free

    def saved(self) -> list[str]:
        """The names of the models in the folder."""
        if self.folder is None or not self.folder.is_dir():
            return []
        return sorted(path.name for path in self.folder.glob("*.ao") if path.is_file())

    def load(self, name: str) -> OpenModel:
        """A model of the folder, or one that comes with the package; the name must be one of those that are listed."""
        if name in shipped_names():
            return self.add_model(name, AnyOrder.load(name))
        if name not in self.saved() or self.folder is None:
            raise NotThereError(f"No model called {name!r:.60} is listed.")
        try:
            return self.add_model(name, AnyOrder.load(self.folder / name))
        except OSError as error:
            raise InputError(f"{name} cannot be read: {error.strerror}.") from error

    def close(self) -> None:
        self.jobs.close()
        for upload in list(self.uploads.values()):
            upload.remove()

    def _keep(self, where: dict[str, T], make: Callable[[int], T]) -> T:
        with self._lock:
            one = make(next(self._numbers))
            where[one.id] = one
            while len(where) > MOST_OPEN:
                del where[next(iter(where))]
        return one


def found(where: dict[str, T], id: str, what: str) -> T:
    one = where.get(id)
    if one is None:
        raise NotThereError(f"No {what} {id!r:.40} is open. Open it again.")
    return one


def tidy_name(name: str) -> str:
    """A name for a file, from whatever somebody called something."""
    plain = UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).strip(" .")
    return plain[:80] or "unnamed"


def stem(name: str) -> str:
    """people for people.csv.gz."""
    return name.removesuffix(".gz").rsplit(".", 1)[0] or name
