"""Tables larger than memory: one pass over their units keeps a uniform sample, and the rows that the sample must not miss."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...io.units import File, Unit, files_of, is_pattern, row_group, row_groups_of, units_of
from .as_known import content_of
from .as_written import read_texts
from .dataframes import Frame, shortlist
from .kinds import LEAVE_OUT
from .table_files import MORE_SUFFIXES, TABLE_SUFFIXES, Dialect, checked_frame, delimited, is_delimited, pandas, table_in

SAMPLED_CELLS = 4_000_000  # of the sample: what bounds memory, whatever the size of the data
STREAMED_BYTES = 2**28  # of one file, from which it is read unit by unit
MOST_LEVELS_SEEN = 1000  # a column with more values has no witness for each of them
Keys = NDArray[np.float64]


@final
@dataclass
class StreamedTable:
    """What is kept of a data set: a uniform sample of its rows, and `witnesses` of what the sample may lack.

    If all rows are in the sample it is the table itself, in order. `rising` are columns of whole numbers that count up through
    all rows, as identifiers do.
    """

    sample: Frame
    witnesses: Frame
    rows: int
    rising: list[str]

    def __len__(self) -> int:
        return self.rows

    @property
    def is_whole(self) -> bool:
        return len(self.sample) == self.rows

    def for_encoder(self) -> Frame:
        """The rows that the encoder learns from: every level and the ends of every number are among them."""
        return self.sample if self.is_whole else pandas().concat([self.sample, self.witnesses], ignore_index=True)

    def kinds(self, said: dict[str, str]) -> dict[str, str]:
        """The kinds that were said, and that identifiers are left out: in a sample they look like any numbers."""
        return said if self.is_whole else {**dict.fromkeys(self.rising, LEAVE_OUT), **said}


class Reservoir:
    """The rows with the smallest keys: uniform over all rows, the same whoever passes them and in whatever order."""

    def __init__(self, most: int, joined: Callable[[list[Any]], Any]) -> None:
        self.most, self.joined = most, joined
        self.parts, self.keys, self.limit = list[Any](), list[Keys](), np.inf

    def add(self, frame: Any, keys: Keys, some: Callable[[Any, NDArray[np.int64]], Any]) -> None:
        below = np.flatnonzero(keys < self.limit)
        if len(below):
            self.parts.append(some(frame, below))
            self.keys.append(keys[below])
        if sum(map(len, self.keys)) > 2 * self.most:
            self.cut(some)

    def cut(self, some: Callable[[Any, NDArray[np.int64]], Any]) -> None:
        """Keep so many, in the order they came."""
        keys, frame = np.concatenate(self.keys), self.joined(self.parts)
        if len(keys) > self.most:
            kept = np.sort(np.argpartition(keys, self.most - 1)[: self.most])
            self.limit, keys, frame = float(keys[kept].max()), keys[kept], some(frame, kept)
        self.parts, self.keys = [frame], [keys]


@final
@dataclass
class Witnesses:
    """For every column the rows with its least and greatest number, and one row of every value, if they are not too many."""

    ends: dict[str, tuple[float, float]] = field(default_factory=dict)
    levels: dict[str, set[Any]] = field(default_factory=dict)
    many: set[str] = field(default_factory=set)  # columns with too many values
    last: dict[str, float] = field(default_factory=dict)  # the last number of a column that counts up so far
    first: dict[str, float] = field(default_factory=dict)
    kept: dict[tuple[str, str], list[Frame]] = field(default_factory=dict)  # by column and kind of witness

    def see(self, frame: Frame) -> None:
        pd = pandas()
        for name in frame:
            column = frame[name]
            self._see_levels(frame, name, column)
            moments = pd.api.types.is_datetime64_any_dtype(column)
            if moments or (pd.api.types.is_numeric_dtype(column) and column.dtype != bool):
                values = column.astype("int64").where(column.notna()) if moments else column
                self._see_numbers(frame, name, values.to_numpy(dtype=np.float64, na_value=np.nan))

    def _see_levels(self, frame: Frame, name: str, column: Any) -> None:
        if name in self.many:
            return
        known, here = self.levels.setdefault(name, set()), column.dropna().drop_duplicates()
        new = here[~here.isin(list(known))] if known else here
        if len(known) + len(new) > MOST_LEVELS_SEEN:
            self.many.add(name)
            self.kept.pop((name, "levels"), None)
            known.clear()
        elif len(new):
            known.update(new.tolist())
            self.kept.setdefault((name, "levels"), []).append(frame.loc[new.index])

    def _see_numbers(self, frame: Frame, name: str, values: Keys) -> None:
        rising = len(values) > 0 and (self.first.setdefault(name, values[0]) == values[0] or name in self.last)
        rising = rising and values[0] > self.last.get(name, -np.inf) and bool((np.diff(values) > 0).all())
        whole = rising and bool((values == np.round(values)).all())
        self.last[name] = float(values[-1]) if whole else np.inf
        if np.isnan(values).all():
            return
        low, high = self.ends.get(name, (np.inf, -np.inf))
        for end, place in ((low, int(np.nanargmin(values))), (high, int(np.nanargmax(values)))):
            is_low = end == low
            if (values[place] < low) if is_low else (values[place] > high):
                self.kept[name, "least" if is_low else "greatest"] = [frame.iloc[[place]]]
        self.ends[name] = min(low, float(np.nanmin(values))), max(high, float(np.nanmax(values)))

    def rising(self, rows: int) -> list[str]:
        return [name for name, last in self.last.items() if np.isfinite(last) and last - self.first[name] < 2 * rows]

    def rows(self) -> list[Frame]:
        return [frame for frames in self.kept.values() for frame in frames]


class Source(NamedTuple):
    """How units of a kind of file are read, joined, picked from and made a table."""

    read: Callable[[Unit], Any]
    joined: Callable[[list[Any]], Any]
    some: Callable[[Any, NDArray[np.int64]], Any]
    typed: Callable[[Any], Frame]  # as a table in memory would be read


def holds_tables(path: Path) -> bool:
    """Whether a folder holds Parquet files; text files may stand beside images, and are named by a pattern."""
    return any(path.rglob("*.parquet"))


def is_streamed(path: Path, stream: bool | None) -> bool:
    """Whether a file, a folder or a pattern is read unit by unit."""
    if is_pattern(path) or path.is_dir():
        return True
    streamable = str(path) != "-" and path.suffix.lower() in (".parquet", ".csv", ".tsv")
    if stream and not streamable:
        raise InputError(f"--stream is for .parquet, .csv and .tsv files, and folders of them; {path.name} is none.")
    return streamable and (bool(stream) or (stream is None and path.is_file() and path.stat().st_size > STREAMED_BYTES))


def read_stream(path: Path, dialect: Dialect, stream: bool | None = None, seed: int = 0) -> StreamedTable:
    """One pass over the files: what a model of them is to be fitted to. Without `stream` all rows are kept."""
    files = files_of(path, TABLE_SUFFIXES + MORE_SUFFIXES)
    if len({streamed_kind(file) for file in files} | {""}) > 2:
        raise InputError(f"{str(path)!r} has files of several kinds. Name one kind, as in '*.csv'.")
    if streamed_kind(files[0]) == "other":
        raise InputError(f"{files[0].name} is not read in parts. Save such files as .parquet or .csv, or name one file.")
    if streamed_kind(files[0]) == "parquet":
        dialect.refuse(files[0].name)
        units: Iterable[Unit] = (unit for file in files for unit in row_groups_of(file))
        source = parquet_source_of(files)
    else:
        units = (unit for file in files for unit in units_of(file))
        source = text_source_of(files, dialect)
    return passed(units, source, None if stream is False else SAMPLED_CELLS, seed)


def streamed_kind(file: File) -> str:
    if is_delimited(file.path):
        return "text"
    return "parquet" if file.name.lower().endswith(".parquet") else "other"


def passed(units: Iterable[Unit], source: Source, most_cells: int | None, seed: int) -> StreamedTable:
    """The sample and the witnesses of one pass, of which no more than a unit and the sample are in memory."""
    reservoir, witnesses, rows = Reservoir(2**62, source.joined), Witnesses(), 0
    names: list[str] = []
    for unit in units:
        frame = source.read(unit)
        if not names:
            names = list(frame.columns if hasattr(frame, "iloc") else frame.column_names)
            reservoir.most = 2**62 if most_cells is None else max(1, most_cells // max(1, len(names)))
        check_names(unit, frame, names)
        keys = np.random.default_rng([seed % 2**32, *unit.file.name.encode(), unit.number]).random(len(frame))
        reservoir.add(frame, keys, source.some)
        rows += len(frame)
        if most_cells is not None:
            witnesses.see(source.typed(frame) if len(frame) else source.typed(frame)[:0])
    if not rows:
        raise InputError("The files have no rows.")
    reservoir.cut(source.some)
    sample = source.typed(reservoir.parts[0])
    found = witnesses.rows()
    if rows > len(sample):
        warnings.warn(f"Of {rows:,} rows a uniform sample of {len(sample):,} is learned from.", stacklevel=5)
    lacking = pandas().concat(found, ignore_index=True) if found and rows > len(sample) else sample[:0]
    return StreamedTable(sample, lacking, rows, witnesses.rising(rows))


def check_names(unit: Unit, frame: Any, names: list[str]) -> None:
    found = list(frame.columns if hasattr(frame, "iloc") else frame.column_names)
    if set(found) != set(names):
        other = sorted(set(found) ^ set(names))
        what = "lacks" if other[0] in names else "has"
        raise InputError(f"{unit} {what} the column {other[0]!r}, unlike the first file, whose columns are {shortlist(names)}.")


def parquet_source_of(files: list[File]) -> Source:
    import pyarrow as pa

    def joined(parts: list[Any]) -> Any:
        try:
            return pa.concat_tables(parts, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(f"The files have a column of several types ({error}). Convert them to one.") from error

    def typed(table: Any) -> Frame:
        frame = table.to_pandas()
        return checked_frame(files[0].name, frame) if len(frame) else frame

    return Source(row_group, joined, lambda table, rows: table.take(rows), typed)


def text_source_of(files: list[File], dialect: Dialect) -> Source:
    """Cells stay texts until the sample is complete: only then can be told what a column holds."""
    with open(files[0].path, "rb") as file:
        head = file.read(2**20)
    whole = files[0].path.suffix.lower() == ".gz" or head[:2] in (b"\xff\xfe", b"\xfe\xff")
    written = dialect.of(content_of(Unit(files[0])) if whole else head[: head.rfind(b"\n") + 1] or head, files[0].path)
    told = Dialect(written.sep, written.decimal, written.encoding)

    def typed(texts: Frame) -> Frame:
        content = delimited(texts, written.sep).encode(written.encoding)
        return table_in(content, files[0].path, None, told) if len(texts) else texts

    return Source(
        lambda unit: read_texts(content_of(unit), written),
        lambda parts: pandas().concat(parts, ignore_index=True),
        lambda texts, rows: texts.iloc[rows],
        typed,
    )
