"""How a text file with a table is written: its encoding, what is between its cells, its decimal mark. Sniffed, or as told."""

import csv
import gzip
import io
import json
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

from ...errors import AnyOrderError, FormatError, InputError
from ...io.atomic import check_place, write_bytes

SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
SNIFFED_ROWS = 200
POINTS = r"(?![+-]?\d{1,3}(?:\.\d{3})+$)[+-]?\d+\.\d+"  # 1.234 may be a thousand
BYTE_ORDER = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


class WrittenNumbers(NamedTuple):
    """How a file is written, with nothing left open."""

    encoding: str
    sep: str
    decimal: str

    def decoded(self, content: bytes) -> str:
        return content.decode(self.encoding)


@final
@dataclass(frozen=True)
class Dialect:
    """What was said of it; what is None is sniffed."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None and len(SEPARATORS.get(self.sep, self.sep)) != 1:
            raise InputError(
                f"--sep {self.sep!r} is not understood; expected one character, or tab, comma, semicolon, pipe or space."
            )
        if self.decimal not in (None, ".", ","):
            raise InputError(f"--decimal {self.decimal!r} is not understood; expected . or a comma.")

    def refuse(self, name: str) -> None:
        """For files that are no text."""
        for option in ("sep", "decimal", "encoding"):
            if getattr(self, option) is not None:
                raise InputError(f"--{option} is for .csv and .tsv files; {name} is none.")

    def of(self, content: bytes, path: Path) -> WrittenNumbers:
        """How this file is written; what is not the plain case is said, if nobody asked for it."""
        own = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
        encoding = self.encoding or encoding_of(path.name, content)
        text = decode(path.name, content, encoding)
        sep = SEPARATORS.get(self.sep, self.sep) if self.sep else separator_in(text, own)
        decimal = self.decimal or decimal_in(text, sep)
        said = [f"in the encoding {encoding}"] if self.encoding is None and encoding != "utf-8-sig" else []
        said += [f"separated by {sep!r}"] if self.sep is None and sep != own else []
        said += ["with decimal commas"] if self.decimal is None and decimal != "." else []
        if said:
            remedy = "If that is wrong, say --encoding, --sep or --decimal."
            warnings.warn(f"{path.name} is read as a table {', '.join(said)}. {remedy}", stacklevel=4)
        return WrittenNumbers(encoding, sep, decimal)


def encoding_of(name: str, content: bytes) -> str:
    """UTF-8 if it can be; with the mark of UTF-16 that; else the encoding of Windows in western Europe."""
    if content[:2] in BYTE_ORDER:
        return BYTE_ORDER[content[:2]]
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" not in text:
            return "cp1252"
        line = content[: error.start].count(b"\n") + 1
        remedy = "Say --encoding, or save it as UTF-8"
        raise FormatError(f"{name} is not UTF-8 text: byte {content[error.start]:#x} in line {line}. {remedy}.") from error
    return "utf-8-sig"


def decode(name: str, content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except LookupError as error:
        raise InputError(f"--encoding {encoding!r} is not known; expected a name such as utf-8, latin1 or cp1252.") from error
    except UnicodeError as error:
        raise FormatError(f"{name} cannot be read in the encoding {encoding} ({error}). Say another --encoding.") from error


def separator_in(text: str, own: str) -> str:
    """The first mark under which all rows at the top have as many cells as the header, and more than one; else its own."""
    for mark in (own, *(mark for mark in ",;\t|" if mark != own)):
        try:
            widths = {len(row) for row in sniffed_rows(text, mark)}
        except csv.Error:
            continue
        if len(widths) == 1 and widths != {1}:
            return mark
    return own


def decimal_in(text: str, separator: str) -> str:
    """A comma, if it is not between cells and more numbers have it than a point."""
    if separator == ",":
        return "."
    try:
        cells = [cell.strip() for row in sniffed_rows(text, separator) for cell in row]
    except csv.Error:
        return "."
    commas, points = (sum(re.fullmatch(form, cell) is not None for cell in cells) for form in (r"[+-]?\d[\d.]*,\d+", POINTS))
    return "," if commas > points else "."


def sniffed_rows(text: str, mark: str) -> Iterable[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    return islice(filter(None, reader), SNIFFED_ROWS)


Frame = Any  # a pandas frame
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")  # of tables that archives can hold
MORE_SUFFIXES = (".xlsx", ".jsonl", ".ndjson")
LONGEST_LINE, MOST_FLOWING = 2**24, 2**32  # bytes out of a pipe
ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"
ZONE = r"(?:Z|[+-]\d{2}:?\d{2})"


def read_table(path: Path, texts: Collection[str] | None = None, dialect: Dialect = Dialect()) -> Frame:
    """The table in a file, or on standard input for "-"; columns in `texts` stay text whatever they look like.

    If none are named, columns of codes with leading zeros, such as 01008, stay text.
    """
    return table_in(read_bytes(path), path, texts, dialect)


def table_in(content: bytes, path: Path, texts: Collection[str] | None = None, dialect: Dialect = Dialect()) -> Frame:
    """The table in the content of a file of this name."""
    suffix = ".csv" if str(path) == "-" else table_suffix(path)
    if suffix in (".csv", ".tsv"):
        return read_csv(path.name, content, texts, dialect.of(content, path))
    dialect.refuse(path.name)
    readers: dict[str, Callable[[str, bytes], Frame]] = {".parquet": read_parquet, ".xlsx": read_excel}
    return readers.get(suffix, read_json_lines)(path.name, content)


def is_delimited(path: Path) -> bool:
    """Whether a file of this name is text with marks between its cells; standard input is a .csv file."""
    return str(path) == "-" or table_suffix(path) in (".csv", ".tsv")


def suffix_of(path: Path) -> str:
    """.csv, .tsv or .parquet; a .gz behind it does not count."""
    return suffix_among(TABLE_SUFFIXES, path)


def table_suffix(path: Path) -> str:
    """That of any table that can be read or written."""
    return suffix_among(TABLE_SUFFIXES + MORE_SUFFIXES, path)


def suffix_among(suffixes: tuple[str, ...], path: Path) -> str:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in suffixes:
        raise InputError(f"{path.name} ends with no suffix of a table; expected {', '.join(suffixes)}, each also with .gz.")
    return suffix


def read_bytes(path: Path) -> bytes:
    if str(path) == "-":
        return flowing(sys.stdin.buffer, "Standard input")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; expected a file.")
    try:
        if path.is_char_device() or path.is_block_device():
            raise InputError(f"{str(path)!r} is a device, not a regular file; expected a file or a pipe.")
        with open(path, "rb") as file:
            content = file.read() if path.is_file() else flowing(file, str(path))
    except FileNotFoundError as error:
        raise InputError(f"There is no file {str(path)!r}.") from error
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    if path.suffix.lower() != ".gz":
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            return flowing(file, path.name, lines=True)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FormatError(f"{path.name} is no whole gzip file ({error}). Copy it again, or name it without .gz.") from error


def flowing(stream: Any, name: str, lines: bool = False) -> bytes:
    """All that comes out of a pipe, if it ends, and is a table unless `lines` says that no line ends are needed."""
    parts, size = list[bytes](), 0
    while part := stream.read(2**20):
        parts.append(part)
        size, lines = size + len(part), lines or b"\n" in part
        if not lines and size > LONGEST_LINE:
            raise InputError(f"{name} has a line of more than {LONGEST_LINE >> 20} MB; expected rows of a table, one a line.")
        if size > MOST_FLOWING:
            raise InputError(f"{name} does not end after {MOST_FLOWING >> 30} GB. Save it to a file, and name that.")
    return b"".join(parts)


def read_csv(name: str, content: bytes, texts: Collection[str] | None, dialect: WrittenNumbers) -> Frame:
    pd, text = pandas(), dialect.decoded(content)
    header, codes = check_shape(name, text, dialect.sep)
    as_text = {column: str for column in header if column in (codes if texts is None else texts)}
    try:
        frame = pd.read_csv(io.StringIO(text), sep=dialect.sep, dtype=as_text, decimal=dialect.decimal, low_memory=False)
    except pd.errors.ParserError as error:
        raise FormatError(f"{name} cannot be read as a table: {error}.") from error
    made = {column: frame[column] if column in as_text else tidy(frame[column]) for column in frame}
    if dialect.decimal == ",":
        made = {column: cells if column in as_text else with_thousands(cells) for column, cells in made.items()}
    return pd.DataFrame(made)


@dataclass
class MaybeCode:
    """Whether the cells of a column are codes such as 01008: digits, all of one length, some with a leading 0."""

    length: int = 0  # -1 if they are none
    zero: bool = False

    def see(self, cell: str) -> None:
        if self.length < 0:
            return
        length = len(cell) if cell.isdecimal() else -1
        self.length = length if self.length in (0, length) else -1
        self.zero |= length > 1 and cell[0] == "0"

    @property
    def is_code(self) -> bool:
        return self.length > 1 and self.zero


def check_shape(name: str, text: str, separator: str) -> tuple[list[str], list[str]]:
    """The header, if every row has as many cells as it has; and which of the columns hold codes."""
    from .written_cells import is_blank

    header: list[str] = []
    columns: list[MaybeCode] = []
    rows = 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for cells in filter(None, reader):
            if not header:
                header = check_header(name, cells, separator)
                columns = [MaybeCode() for _ in header]
            elif len(cells) != len(header):
                what = f"line {reader.line_num} of {name} has {len(cells)} cells, its header {len(header)}"
                raise FormatError(f"Ragged table: {what}. Correct the line; a cell with a comma inside must be in quotes.")
            else:
                rows += 1
                for column, cell in zip(columns, cells, strict=True):
                    if not is_blank(cell):
                        column.see(cell)
    except csv.Error as error:
        raise FormatError(f"{name} cannot be read as a table: line {reader.line_num}: {error}.") from error
    if not rows:
        raise InputError(f"{name} has a header but no rows." if header else f"{name} is empty; expected a header line and rows.")
    return header, [one for one, column in zip(header, columns, strict=True) if column.is_code]


def check_header(name: str, header: list[str], separator: str) -> list[str]:
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice:
        raise InputError(f"{name} has {header.count(twice[0])} columns named {twice[0]!r}. Give every column its own name.")
    other = next((mark for mark in ";\t," if mark != separator and mark in header[0]), None)
    if len(header) == 1 and other:
        wanted = f"Say --sep {other!r}" if other != "\t" else "Say --sep tab"
        raise FormatError(f"{name} seems to be separated by {other!r}: its only column would be {header[0][:60]!r}. {wanted}.")
    return header


@contextmanager
def unread_parquet(name: str) -> Iterator[None]:
    """What keeps a parquet file from being read, in a sentence."""
    try:
        yield
    except ImportError as error:
        raise InputError(f"Reading {name} needs pyarrow, which is not installed: pip install pyarrow.") from error
    except AnyOrderError:
        raise
    except Exception as error:  # what a damaged file leads to in another library is for it to choose
        raise FormatError(f"{name} is not a parquet file, or not a whole one ({first_line(error)}).") from error


def read_excel(name: str, content: bytes) -> Frame:
    """The first sheet of a workbook."""
    pd = pandas()
    try:
        sheets = pd.ExcelFile(io.BytesIO(content), engine="openpyxl")
        frame = pd.read_excel(sheets, sheet_name=0)
    except ImportError as error:
        raise InputError(f"Reading {name} needs openpyxl, which is not installed: pip install 'anyorder[excel]'.") from error
    except Exception as error:  # as with parquet
        raise FormatError(f"{name} is not an Excel workbook, or not a whole one ({first_line(error)}).") from error
    if len(sheets.sheet_names) > 1:
        others = ", ".join(map(repr, sheets.sheet_names[1:]))
        warnings.warn(
            f"{name} has {len(sheets.sheet_names)} sheets: read is {sheets.sheet_names[0]!r}, not {others}.", stacklevel=4
        )
    return checked_frame(name, frame)


def read_json_lines(name: str, content: bytes) -> Frame:
    """One object a line, whose names are the columns; a name that is missing is a gap."""
    rows = []
    for number, line in enumerate(content.decode("utf-8-sig", errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"Line {number} of {name} is no JSON ({error}). Expected one object a line.") from error
        if not isinstance(row, dict):
            raise FormatError(
                f'Line {number} of {name} holds {line.strip()[:40]!r}; expected one object a line, such as {{"a": 1}}.'
            )
        rows.append(row)
    return checked_frame(name, pandas().DataFrame(rows))


def read_parquet(name: str, content: bytes) -> Frame:
    pd = pandas()
    with unread_parquet(name):
        frame = pd.read_parquet(io.BytesIO(content))
    return checked_frame(name, frame)


def checked_frame(name: str, frame: Frame) -> Frame:
    """The table with tidy columns, if every cell is one value."""
    pd = pandas()
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


def with_thousands(column: Any) -> Any:
    """Numbers that are written as 1.234 or 1.234,5, where the decimal mark is a comma; any other column as it is."""
    import narwhals as nw

    from .written_cells import find_form, is_text, read_cells

    pd = pandas()
    series = nw.from_native(column, series_only=True)
    form = find_form(series, decimal=",") if is_text(series) else None
    if form is None or form.date:
        return column
    found = read_cells(series, form)
    return column if found.strays else tidy(pd.Series(found.series.to_numpy(), name=column.name))


def check_output(path: Path, *inputs: Path) -> None:
    """Refuse, before any work is done, what could not be written at the end."""
    if path.suffix.lower() == ".ao":
        raise InputError(f"{path.name} is a name for models; name the table *.csv, *.tsv or *.parquet.")
    table_suffix(path)
    check_place(path, *inputs)


def check_model_output(path: Path, *inputs: Path) -> None:
    if path.name.lower().removesuffix(".gz").endswith(TABLE_SUFFIXES + MORE_SUFFIXES) and path not in inputs:
        raise InputError(f"{path.name} is a name for tables; name the model {path.name.split('.')[0]}.ao.")
    check_place(path, *inputs)


def write_table(frame: Frame, path: Path, index: bool = False, otherwise: str = "Try .csv", sep: str = ",") -> None:
    """First beside the file, then in its place: a failure leaves what was there. With its index, if that is wanted."""
    write_content(in_bytes(frame, path, index, otherwise, sep), path)


def write_content(content: bytes, path: Path) -> None:
    """Under gzip if the name says so."""
    write_bytes(path, gzip.compress(content, mtime=0) if path.suffix.lower() == ".gz" else content)


def in_bytes(frame: Frame, path: Path, index: bool = False, otherwise: str = "Try .csv", sep: str = ",") -> bytes:
    """The table as the content of a file of this name, before gzip; `sep` is between the cells of a .csv file."""
    makers: dict[str, Callable[[], bytes]] = {
        ".csv": lambda: delimited(frame, sep).encode(),
        ".tsv": lambda: delimited(frame, "\t").encode(),
        ".parquet": lambda: frame.to_parquet(index=None if index else False),
        ".xlsx": lambda: workbook(frame),
    }
    suffix = table_suffix(path)
    try:
        return makers.get(suffix, lambda: json_lines(frame))()
    except ImportError as error:
        library, remedy = ("openpyxl", "'anyorder[excel]'") if suffix == ".xlsx" else ("pyarrow", "pyarrow")
        raise InputError(f"Writing {path.name} needs {library}, which is not installed: pip install {remedy}.") from error
    except (ValueError, TypeError, NotImplementedError) as error:
        raise InputError(f"This table cannot be written to {path.name} ({first_line(error)}). {otherwise}.") from error


def workbook(frame: Frame) -> bytes:
    out = io.BytesIO()
    frame.to_excel(out, index=False, engine="openpyxl")
    return out.getvalue()


def json_lines(frame: Frame) -> bytes:
    """An object a line, null for gaps, dates in ISO form."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return "".join(json.dumps(row, ensure_ascii=False, default=json_value) + "\n" for row in rows).encode()


def json_value(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value.item() if hasattr(value, "item") else str(value)


def delimited(frame: Frame, separator: str, header: bool = True) -> str:
    """The table as text; all cells are in quotes if one holds a carriage return, which Python before 3.13 leaves without."""
    write = partial(frame.to_csv, index=False, lineterminator="\n", sep=separator, header=header)
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


def is_table(path: Path) -> bool:
    """Whether a file of this name holds a table."""
    return Path(path.name.lower().removesuffix(".gz")).suffix in TABLE_SUFFIXES + MORE_SUFFIXES


def without_weights(frame: Frame, name: str | None) -> tuple[Frame, Any]:
    """The table without the column of weights, and the weights; NaN where there is none."""
    if name is None:
        return frame, None
    from ...validation import near, some

    names = list(frame)
    if name not in names:
        raise InputError(f"--weight: the table has no column {name!r}. {near(name, names)}Its columns: {some(names)}.")
    try:
        return frame.drop(columns=name), frame[name].to_numpy(dtype=float, na_value=float("nan"))
    except (TypeError, ValueError) as error:
        raise InputError(f"--weight {name}: the column holds what is no number ({error}). Name a column of numbers.") from error
