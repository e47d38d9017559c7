"""Tables in files: read by suffix with every fault named, written by suffix as a whole or not at all."""

import csv
import gzip
import io
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import FormatError, InputError
from ..files import write_whole

Frame = Any  # a pandas frame
SUFFIXES = (".csv", ".tsv", ".parquet")
ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"
ZONE = r"(?:Z|[+-]\d{2}:?\d{2})"


def read_table(path: Path, texts: Collection[str] = ()) -> Frame:
    """The table in a file, or on standard input for "-"; columns in `texts` stay text whatever they look like."""
    return table_in(read_bytes(path), path, texts)


def table_in(content: bytes, path: Path, texts: Collection[str] = ()) -> Frame:
    """The table in the content of a file of this name."""
    separator = separator_of(path)
    return read_csv(path.name, content, separator, texts) if separator else read_parquet(path.name, content)


def separator_of(path: Path) -> str:
    """What is between the cells of a text file, nothing in a parquet file; standard input is a .csv file."""
    return {".csv": ",", ".tsv": "\t", ".parquet": ""}[".csv" if str(path) == "-" else suffix_of(path)]


def suffix_of(path: Path) -> str:
    """.csv, .tsv or .parquet; a .gz behind it does not count."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in SUFFIXES:
        raise InputError(f"{path.name} ends with no suffix of a table; expected {', '.join(SUFFIXES)}, each also with .gz.")
    return suffix


def read_bytes(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read()
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; expected a file.")
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"There is no file {str(path)!r}.") from error
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    if path.suffix.lower() != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{path.name} is no whole gzip file ({error}). Copy it again, or name it without .gz.") from error


def read_csv(name: str, content: bytes, separator: str, texts: Collection[str]) -> Frame:
    pd = pandas()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        remedy = "Save it as UTF-8, for example: iconv -f latin1 -t utf-8 old.csv > new.csv"
        raise FormatError(f"{name} is not UTF-8 text: byte {content[error.start]:#x} in line {line}. {remedy}.") from error
    header = check_shape(name, text, separator)
    as_text = {column: str for column in header if column in texts}
    try:
        frame = pd.read_csv(io.StringIO(text), sep=separator, dtype=as_text, low_memory=False)
    except pd.errors.ParserError as error:
        raise FormatError(f"{name} cannot be read as a table: {error}.") from error
    return pd.DataFrame({column: frame[column] if column in as_text else tidy(frame[column]) for column in frame})


def check_shape(name: str, text: str, separator: str) -> list[str]:
    """The header, if every row has as many cells as it has."""
    header: list[str] = []
    rows = 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for cells in filter(None, reader):
            if not header:
                header = check_header(name, cells, separator)
            elif len(cells) != len(header):
                what = f"line {reader.line_num} of {name} has {len(cells)} cells, its header {len(header)}"
                raise FormatError(f"Ragged table: {what}. Correct the line; a cell with a comma inside must be in quotes.")
            else:
                rows += 1
    except csv.Error as error:
        raise FormatError(f"{name} cannot be read as a table: line {reader.line_num}: {error}.") from error
    if not rows:
        raise InputError(f"{name} has a header but no rows." if header else f"{name} is empty; expected a header line and rows.")
    return header


def check_header(name: str, header: list[str], separator: str) -> list[str]:
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice:
        raise InputError(f"{name} has {header.count(twice[0])} columns named {twice[0]!r}. Give every column its own name.")
    other = next((mark for mark in ";\t," if mark != separator and mark in header[0]), None)
    if len(header) == 1 and other:
        wanted = {";": "Save it with commas", "\t": "Name it .tsv", ",": "Name it .csv"}[other]
        raise FormatError(f"{name} seems to be separated by {other!r}: its only column would be {header[0][:60]!r}. {wanted}.")
    return header


def untouched_parquet(name: str, content: bytes) -> Frame:
    """The table with the types, labels and index that the file has."""
    try:
        return pandas().read_parquet(io.BytesIO(content))
    except ImportError as error:
        raise InputError(f"Reading {name} needs pyarrow, which is not installed: pip install pyarrow.") from error
    except (ValueError, OSError) as error:
        raise FormatError(f"{name} is not a parquet file, or not a whole one ({first_line(error)}).") from error


def same_types(frame: Frame, content: bytes) -> bool:
    """Whether a frame has the types of the parquet file it was read from: whole numbers beside gaps, say, have none in pandas."""
    import pyarrow as pa
    from pyarrow import parquet

    def plain(kind: Any) -> Any:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return pa.large_string() if pa.types.is_string(kind) else kind

    def types(schema: Any) -> dict[str, Any]:
        return {field.name: plain(field.type) for field in schema}

    try:
        return types(parquet.read_schema(io.BytesIO(content))) == types(pa.Table.from_pandas(frame).schema)
    except (pa.ArrowException, ValueError, TypeError):
        return False


def read_parquet(name: str, content: bytes) -> Frame:
    pd, frame = pandas(), untouched_parquet(name, content)
    if not len(frame):
        raise InputError(f"{name} has no rows.")
    for column in frame:
        if frame[column].dtype == object and not frame[column].map(lambda cell: isinstance(cell, Hashable)).all():
            raise InputError(
                f"Column {column!r} of {name} holds lists or records; a cell must be one value. Leave it out or flatten it."
            )
    return pd.DataFrame({str(column): tidy(frame[column]) for column in frame})


def tidy(column: Any) -> Any:
    """Whole numbers stay whole beside gaps, and ISO dates become dates."""
    pd = pandas()
    present = column.dropna()
    if not len(present):
        return column
    if pd.api.types.is_float_dtype(column) and len(present) < len(column):
        whole = (present == present.round()).all() and (present.abs() < 2**53).all()
        return column.astype("Int64") if whole else column
    text = pd.api.types.is_string_dtype(column) or column.dtype == object
    for form, zoned in ((ISO_DATE, False), (ISO_DATE + ZONE, True)):
        if text and present.astype(str).str.fullmatch(form).all():
            dates = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=zoned)
            return dates if dates.notna().sum() == len(present) else column  # the 30th of February stays text
    return column


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse, before any work is done, what could not be written at the end."""
    if path.suffix.lower() == ".ao":
        raise InputError(f"{path.name} is a name for models; name the table *.csv, *.tsv or *.parquet.")
    suffix_of(path)
    check_place(path, *inputs)


def check_model_output(path: Path, *inputs: Path) -> None:
    if path.name.lower().removesuffix(".gz").endswith(SUFFIXES) and path not in inputs:
        raise InputError(f"{path.name} is a name for tables; name the model {path.name.split('.')[0]}.ao.")
    check_place(path, *inputs)


def check_place(path: Path, *inputs: Path) -> None:
    """The folder is there, and neither an input nor anything that is no file would be overwritten."""
    if path.is_dir():
        raise InputError(f"Cannot write {str(path)!r}: it is a folder. Name a file.")
    if path.exists() and not path.is_file():
        raise InputError(f"Cannot write {str(path)!r}: it is no ordinary file. Name one.")
    if not path.parent.is_dir():
        raise InputError(f"Cannot write {path.name}: its folder {str(path.parent)!r} does not exist. Make it first.")
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise InputError(f"{str(path)!r} is an input as well, and would be overwritten. Name another file.")


def write_table(frame: Frame, path: Path, index: bool = False, otherwise: str = "Try .csv") -> None:
    """First beside the file, then in its place: a failure leaves what was there. With its index, if that is wanted."""
    write_content(in_bytes(frame, path, index, otherwise), path)


def write_content(content: bytes, path: Path) -> None:
    """Under gzip if the name says so."""
    content = gzip.compress(content, mtime=0) if path.suffix.lower() == ".gz" else content
    try:
        write_whole(path, partial(put, content))
    except OSError as error:
        raise InputError(f"Cannot write {str(path)!r}: {error.strerror}. What was there is untouched.") from error


def put(content: bytes, place: str) -> None:
    Path(place).write_bytes(content)


def in_bytes(frame: Frame, path: Path, index: bool = False, otherwise: str = "Try .csv") -> bytes:
    """The table as the content of a file of this name, before gzip."""
    makers: dict[str, Callable[[], bytes]] = {
        ".csv": lambda: delimited(frame, ",").encode(),
        ".tsv": lambda: delimited(frame, "\t").encode(),
        ".parquet": lambda: frame.to_parquet(index=None if index else False),
    }
    try:
        return makers[suffix_of(path)]()
    except ImportError as error:
        raise InputError(f"Writing {path.name} needs pyarrow, which is not installed: pip install pyarrow.") from error
    except (ValueError, TypeError, NotImplementedError) as error:
        raise InputError(f"This table cannot be written to {path.name} ({first_line(error)}). {otherwise}.") from error


def delimited(frame: Frame, separator: str) -> str:
    """The table as text; all cells are in quotes if one holds a carriage return, which Python before 3.13 leaves without."""
    write = partial(frame.to_csv, index=False, lineterminator="\n", sep=separator)
    text: str = write()
    return write(quoting=csv.QUOTE_ALL) if "\r" in text else text


def pandas() -> Any:
    """Loaded on first use: `anyorder --help` does not wait for it."""
    try:
        import pandas
    except ImportError as error:
        raise InputError("The command line reads tables with pandas, which is not installed: pip install pandas.") from error
    return pandas


def first_line(error: Exception) -> str:
    return re.split(r"[\r\n]", str(error).strip())[0].rstrip(".")
