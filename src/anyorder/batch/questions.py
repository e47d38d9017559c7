"""What may be asked of every row of many files: each question turns rows into the rows of an output file."""

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, final

from ..archives import ArchiveModel, compress
from ..errors import InputError
from ..estimator import AnyOrder
from ..io.units import Unit
from ..modalities.base import ask
from ..modalities.displays import value_text
from ..modalities.registry import modality_reading
from ..modalities.tables.anomalies import RARE_SHARE
from ..modalities.tables.as_known import content_of
from ..modalities.tables.as_written import as_written, separator
from ..modalities.tables.dataframes import as_frame
from ..modalities.tables.table_files import Dialect, Frame, is_delimited, pandas

ROW = "row"  # the column that says which row of the input file, counted from 1, as in the commands


@dataclass(frozen=True)
class BatchQuestion(ABC):
    """A question with its options, which must be plain values: they are kept beside the outputs."""

    name: ClassVar[str]
    verb: ClassVar[str]  # of the model
    whole_files: ClassVar[bool] = False  # whether a file must be answered at once

    def check(self, model: AnyOrder) -> None:
        """Refuse what this model cannot answer."""
        ask(model.fitted_, self.verb, {})

    def output_name(self, name: str) -> str:
        """Of the output for the input file of this name."""
        path = Path(name)
        inner = Path(path.name.lower().removesuffix(".gz")).suffix
        return name if inner in (".parquet", ".csv", ".tsv") else str(path.with_suffix(".csv"))

    @abstractmethod
    def rows(self, model: AnyOrder, frame: Frame, first: int) -> Frame:
        """The rows of the output for some rows of a file, of which the first has this number, counted from 0."""

    @property
    def stacked(self) -> bool:
        """Whether an output has several tables one below the other, told apart by a column draw."""
        return False

    def restored(self, made: Frame, frame: Frame, unit: Unit, dialect: Dialect) -> tuple[Frame, str]:
        """What is written into a text file, and the mark between its cells."""
        return made, ","

    def options(self) -> dict[str, Any]:
        return {"question": self.name, **asdict(self)}


@final
@dataclass(frozen=True)
class Impute(BatchQuestion):
    """Gaps filled with best guesses, or `draws` times at random, told apart by a column draw."""

    draws: int | None = None
    name, verb = "impute", "transform"

    @property
    def stacked(self) -> bool:
        return self.draws is not None

    def rows(self, model: AnyOrder, frame: Frame, first: int) -> Frame:
        if self.draws is None:
            return model.transform(frame)
        import narwhals as nw

        if "draw" in as_frame(frame).columns:
            raise InputError('There is a column "draw" already, which is what the number of the draw is called. Rename it.')
        drawn = [nw.from_native(one, eager_only=True) for one in model.impute(frame, self.draws)]
        numbered = [one.select(nw.lit(number, nw.Int64).alias("draw"), nw.all()) for number, one in enumerate(drawn)]
        return nw.concat(numbered).to_native()

    def restored(self, made: Frame, frame: Frame, unit: Unit, dialect: Dialect) -> tuple[Frame, str]:
        """The cells of a text file keep their characters, as `anyorder impute` does with one file."""
        content = content_of(unit)
        if not is_delimited(unit.file.path):
            return made, ","
        output = Path(self.output_name(unit.file.name))
        return as_written(made, frame, unit.file.path, content, output, dialect), separator(unit.file.path, content, dialect)


@final
@dataclass(frozen=True)
class Score(BatchQuestion):
    """log p(target | given) of every row, in nats."""

    target: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    name, verb = "score", "score_samples"

    def check(self, model: AnyOrder) -> None:
        super().check(model)
        for name in (*self.target, *self.given):
            model.schema_.index(name)

    def rows(self, model: AnyOrder, frame: Frame, first: int) -> Frame:
        nats = model.score_samples(frame, list(self.target) or None, list(self.given))
        return pandas().DataFrame({ROW: range(first + 1, first + 1 + len(nats)), "log_prob": nats})


@final
@dataclass(frozen=True)
class FindAnomalies(BatchQuestion):
    """The cells that do not fit the rest of their rows, row by row; `threshold` is how likely a value as odd may be."""

    threshold: float = RARE_SHARE
    name, verb = "anomalies", "anomalies"

    def rows(self, model: AnyOrder, frame: Frame, first: int) -> Frame:
        found = model.anomalies(frame)
        lines = sorted(found.lines(self.threshold), key=lambda line: line["row"])
        pd, texts = pandas(), ("value", "expected", "low", "high")
        made: dict[str, Any] = {ROW: pd.Series([first + 1 + line["row"] for line in lines], dtype="int64")}
        for name, kind in {"column": "str", **dict.fromkeys(texts, "str"), "chance": "float64", "why": "str"}.items():
            cells = [None if line[name] is None else value_text(line[name]) if name in texts else line[name] for line in lines]
            made[name] = pd.Series(cells, dtype="float64" if kind == "float64" else "object")
        return pd.DataFrame(made)


@final
@dataclass(frozen=True)
class Sample(BatchQuestion):
    """New rows, into files of so many each: there is nothing to read."""

    given: Mapping[str, Any] | None = None
    name, verb = "sample", "sample"

    def rows(self, model: AnyOrder, frame: Frame, first: int) -> Frame:
        return model.sample(len(frame), given=self.given)


@final
@dataclass(frozen=True)
class Compress(BatchQuestion):
    """An archive of every file, with the codec of the model; it takes the memory of one file a worker."""

    verify: bool = True
    name, verb = "compress", "describe"
    whole_files = True

    def check(self, model: AnyOrder) -> None:
        _ = model.known_codec_

    def output_name(self, name: str) -> str:
        return f"{name}.aoz"

    def rows(self, model: AnyOrder, frame: Frame, first: int) -> Frame:
        raise AssertionError("files are compressed, not rows")

    def archive(self, model: AnyOrder, unit: Unit) -> bytes:
        source, into = modality_reading(unit.file.path).file_source(unit.file.path), io.BytesIO()
        compress(ArchiveModel(model.known_codec_, model.name_), source, into, None, self.verify)
        return into.getvalue()


QUESTIONS: dict[str, type[BatchQuestion]] = {one.name: one for one in (Impute, Score, FindAnomalies, Sample, Compress)}


def question_named(verb: str, **options: Any) -> BatchQuestion:
    """The question of this verb with these options, refused in one sentence if there is none."""
    if verb not in QUESTIONS:
        raise InputError(f"Got verb={verb!r}; expected one of {', '.join(QUESTIONS)}.")
    try:
        return QUESTIONS[verb](**options)
    except TypeError as error:
        known = ", ".join(field.name for field in fields(QUESTIONS[verb]))
        raise InputError(f"{verb} of many files has the options {known}; got {', '.join(options)}.") from error
