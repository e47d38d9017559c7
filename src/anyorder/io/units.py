"""A data set larger than memory as a list of units: the row groups of its Parquet files, and chunks of its text files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from ..errors import FormatError, InputError

CHUNKED = (".csv", ".tsv")  # text files that are read some rows at a time
ROWS_OF_CHUNK = 2**16
WILD = re.compile(r"[*?\[]")


class File(NamedTuple):
    """One file of a data set; its `name` is its place below the folder that was named, wherever that folder lies."""

    path: Path
    name: str


@final
@dataclass(frozen=True)
class Unit:
    """So many rows of one file that are read, answered and written together: a row group, or a chunk of a text file."""

    file: File
    number: int = 0  # of the unit in its file
    count: int = 1  # units of the file
    first: int = 0  # the number of its first row in the file
    rows: int = -1  # -1: not known before it is read
    start: int = 0  # where its lines begin in a text file, in bytes
    end: int = -1  # where they end; -1: the file is read as a whole

    def __str__(self) -> str:
        whole = self.count == 1 and self.end < 0 and self.rows < 0
        return self.file.name if whole else f"{self.file.name}, row group {self.number + 1} of {self.count}"


def is_pattern(path: Path) -> bool:
    """Whether a path names many files by * ? or [ ]."""
    return bool(WILD.search(str(path))) and not path.exists()


def files_of(path: Path, suffixes: tuple[str, ...]) -> list[File]:
    """The files that a pattern, a folder or the name of a file stands for, by name; hidden files and those with _ are none.

    >>> [file.name for file in files_of(Path("data/nothing-*.parquet"), (".parquet",))]
    Traceback (most recent call last):
    anyorder.errors.InputError: There is no file 'data/nothing-*.parquet'...
    """
    if path.is_file():
        return [File(path, path.name)]
    if is_pattern(path):
        root = Path(*path.parts[: next(i for i, part in enumerate(path.parts) if WILD.search(part))])
        found = list(root.glob(str(path.relative_to(root))))
    else:
        root, found = path, list(path.rglob("*")) if path.is_dir() else []
    named = sorted((one.relative_to(root).as_posix(), one) for one in found)
    chosen = [File(one, name) for name, one in named if holds_data(one, name, suffixes)]
    if not chosen:
        expected = f"Expected names that end with {', '.join(suffixes)}, each also with .gz."
        raise InputError(f"{'No data' if named else 'There is no file'} {'in ' if named else ''}{str(path)!r}. {expected}")
    return chosen


def holds_data(path: Path, name: str, suffixes: tuple[str, ...]) -> bool:
    return (
        not any(part.startswith((".", "_")) for part in Path(name).parts)
        and Path(name.lower().removesuffix(".gz")).suffix in suffixes
        and path.is_file()
    )


def units_of(file: File, rows: int = ROWS_OF_CHUNK) -> list[Unit]:
    """The units of a file: they depend on nothing but the file. A text file is passed once to find where its rows begin."""
    suffix = Path(file.name.lower()).suffix
    if suffix == ".parquet":
        return row_groups_of(file)
    return chunks_of(file, rows) if suffix in CHUNKED else [Unit(file)]


def row_groups_of(file: File) -> list[Unit]:
    with reading(file.name, "its footer"), opened(file) as parquet:
        sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.metadata.num_row_groups)]
    return [Unit(file, group, len(sizes), sum(sizes[:group]), size) for group, size in enumerate(sizes)]


def opened(file: File) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise InputError(f"Reading {file.name} needs pyarrow, which is not installed: pip install pyarrow.") from error
    return ParquetFile(file.path)


def row_group(unit: Unit) -> Any:
    """The rows of a unit of a Parquet file, as a pyarrow table."""
    with reading(str(unit), "its data"), opened(unit.file) as parquet:
        if unit.number >= parquet.metadata.num_row_groups:
            return parquet.schema_arrow.empty_table()
        return parquet.read_row_group(unit.number, use_threads=False)


def types_in(file: File) -> Any:
    """The columns of a Parquet file and their types, as a pyarrow schema."""
    with reading(file.name, "its footer"), opened(file) as parquet:
        return parquet.schema_arrow


class reading:
    """What keeps a file from being read, in one sentence that names it."""

    def __init__(self, name: str, part: str) -> None:
        self.name, self.part = name, part

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | ValueError) and not isinstance(error, InputError | FormatError):
            why = str(error).strip().splitlines()[0].rstrip(".")
            raise FormatError(f"{self.name} is damaged or no Parquet file: {self.part} cannot be read ({why}).") from error


def chunks_of(file: File, rows: int) -> list[Unit]:
    """Chunks of a text file of so many rows each. A row ends with a line break outside of quotes; empty lines are none."""
    begins, first, count = list[int](), list[int](), 0
    with open(file.path, "rb") as content:
        if content.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return [Unit(file)]  # in UTF-16 a line break is not a byte
        content.seek(0)
        end = len(row_in(content))  # the header
        for length, empty in rows_in(content):
            if not empty and count % rows == 0:
                begins.append(end)
                first.append(count)
            count, end = count + (not empty), end + length
    if len(begins) < 2:
        return [Unit(file, rows=count)]
    ends = [*begins[1:], end]
    sizes = [last - start for start, last in zip(first, [*first[1:], count], strict=True)]
    return [Unit(file, number, len(begins), *of) for number, of in enumerate(zip(first, sizes, begins, ends, strict=True))]


def rows_in(content: Any) -> Iterator[tuple[int, bool]]:
    """How long every row is in bytes, and whether it is an empty line."""
    while row := row_in(content):
        yield len(row), not row.strip()


def row_in(content: Any) -> bytes:
    row = bytes(content.readline())
    while row.count(b'"') % 2 and (more := content.readline()):
        row += more
    return row


def lines(unit: Unit) -> bytes:
    """The header and the lines of a chunk of a text file."""
    with open(unit.file.path, "rb") as content:
        header = row_in(content)
        content.seek(unit.start)
        return header + content.read(unit.end - unit.start)
