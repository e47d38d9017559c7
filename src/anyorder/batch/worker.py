"""A model and a question for units of a data set: the same answer, to the bit, whoever asks it in whatever order."""

import hashlib
import resource
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from ..errors import AnyOrderError
from ..estimator import AnyOrder
from ..io.shipped import model_file
from ..io.units import Unit
from ..modalities.tables.as_known import read_unit
from ..modalities.tables.dataframes import Frame
from ..modalities.tables.table_files import Dialect, delimited, in_bytes, pandas, suffix_of
from ..training.loop import limited_threads
from .questions import Compress, Sample, question_named

ROWS_AT_ONCE = 2**13  # that are answered together: what bounds the memory of an answer, and never depends on who asks


@final
@dataclass(frozen=True)
class Answered:
    """The answer to one unit: a pyarrow table for a Parquet file, bytes for any other; and what it took."""

    unit: Unit
    content: Any
    rows: int
    notes: tuple[str, ...]
    peak: int  # bytes of memory that the process has taken at most


@final
@dataclass(frozen=True)
class Failed:
    """Why a unit has no answer, in a sentence that names it."""

    unit: Unit
    why: str


class Worker:
    """A model in a file, and a question with its options; `worker(unit)` answers a unit of a data set.

    It is a plain value until its first unit, when it loads the model: engines carry it to their processes. Rows of a unit are
    answered some thousand at a time, by one thread, with seeds made of (seed, name of the file, number of the first row):
    neither workers nor shards nor engines change a bit.

    Parameters
    ----------
    model: a model file.
    verb: impute, score, sample, anomalies or compress.
    seed: of everything random.
    dialect: how text files are written, where that is not to be found out.
    options: of the verb, such as draws=5.
    """

    def __init__(self, model: str | Path, verb: str, seed: int = 0, dialect: Dialect = Dialect(), **options: Any) -> None:
        self.path, self.seed, self.dialect = Path(model_file(model)).resolve(), seed, dialect
        self.question = question_named(verb, **options)
        self._model: AnyOrder | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_model": None}

    @property
    def model(self) -> AnyOrder:
        """Loaded on first use."""
        if self._model is None:
            self._model = AnyOrder.load(self.path)
        return self._model

    def check(self) -> None:
        """Refuse, before any work, a question that the model does not answer."""
        self.question.check(self.model)

    def identity(self) -> dict[str, Any]:
        """What the outputs depend on besides the inputs."""
        digest = hashlib.blake2b(self.path.read_bytes(), digest_size=16).hexdigest()
        return {"model": digest, "seed": self.seed, **self.question.options()}

    def __call__(self, unit: Unit) -> Answered | Failed:
        """The answer to a unit; what is wrong with its file is told, not raised."""
        try:
            with limited_threads(1), warnings.catch_warnings(record=True) as notes:
                warnings.simplefilter("always", UserWarning)
                content, rows = self._answer(unit)
        except (AnyOrderError, OSError) as error:
            told = " ".join(str(error).split())
            return Failed(unit, told if unit.file.name in told else f"{unit}: {told}")
        said = dict.fromkeys(str(note.message) for note in notes if issubclass(note.category, UserWarning))
        return Answered(unit, content, rows, tuple(said), peak_memory())

    def frames(self, tables: Iterable[Frame]) -> Iterator[Frame]:
        """The answers to tables of somebody else's engine, in turn, as `mapInPandas` and `map_batches` want it.

        What is drawn is keyed by the number of the table in the stream; how an engine cuts its tables is its own affair.
        """
        for number, table in enumerate(tables):
            yield self._model_at(f"table {number}", 0, lambda model, table=table: self.question.rows(model, table, 0))

    def _answer(self, unit: Unit) -> tuple[Any, int]:
        if isinstance(self.question, Compress):
            return self.question.archive(self.model, unit), max(unit.rows, 0)
        frame = drawn_rows(unit) if isinstance(self.question, Sample) else read_unit(unit, self.model.encoder_, self.dialect)
        made = [self._some(unit, frame, start) for start in range(0, max(1, len(frame)), ROWS_AT_ONCE)]
        return self._written(unit, frame, made), len(frame)

    def _some(self, unit: Unit, frame: Frame, start: int) -> Frame:
        some = frame[start : start + ROWS_AT_ONCE]
        first = max(unit.first, 0) + start
        return self._model_at(unit.file.name, first, lambda model: self.question.rows(model, some, first))

    def _model_at(self, name: str, first: int, answer: Any) -> Frame:
        self.model.model_.clear()
        return answer(self.model.set_params(random_state=seed_at(self.seed, name, first)))

    def _written(self, unit: Unit, frame: Frame, made: list[Frame]) -> Any:
        """The rows as they stand in the output file."""
        name = Path(self.question.output_name(unit.file.name))
        if suffix_of(name) == ".parquet":
            table = as_arrow(made, frame)
            return table.take(by_draw(table["draw"])) if self.question.stacked else table
        table = pandas().concat(made, ignore_index=True)
        table = table.iloc[by_draw(table["draw"])].reset_index(drop=True) if self.question.stacked else table
        table, sep = self.question.restored(table, frame, unit, self.dialect)
        if unit.count == 1:
            return in_bytes(table, name, sep=sep)
        sep = "\t" if suffix_of(name) == ".tsv" else sep
        return delimited(table, sep, header=unit.number == 0).encode()


def as_arrow(made: list[Frame], frame: Frame) -> Any:
    """One pyarrow table; columns that the input has keep its types."""
    import pyarrow as pa

    parts = [one if isinstance(one, pa.Table) else pa.Table.from_pandas(one, preserve_index=False) for one in made]
    table = pa.concat_tables(parts, promote_options="permissive")
    if not isinstance(frame, pa.Table):
        return table.replace_schema_metadata(None)
    known = {field.name: field for field in frame.schema}
    return table.cast(pa.schema([known.get(field.name, field) for field in table.schema])).combine_chunks()


def by_draw(draws: Any) -> Any:
    """The order in which the tables of a unit stand one below the other."""
    return np.argsort(draws.to_numpy(), kind="stable")


def drawn_rows(unit: Unit) -> Frame:
    """As many rows without columns as are to be drawn."""
    return pandas().DataFrame(index=range(unit.rows))


def seed_at(seed: int, name: str, first: int) -> int:
    """The seed of the rows from this one on in the file of this name.

    >>> seed_at(0, "a.parquet", 0) == seed_at(0, "a.parquet", 0), seed_at(0, "a.parquet", 0) == seed_at(0, "a.parquet", 8192)
    (True, False)
    """
    digest = hashlib.blake2b(f"{seed}/{name}/{first}".encode(), digest_size=4).digest()
    return int(np.frombuffer(digest, dtype="<u4")[0]) & 0x7FFFFFFF


def peak_memory() -> int:
    """Bytes of memory that this process has taken at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
