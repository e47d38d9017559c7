"""Blocks of archives that hold rows of a table: coded columns in the stream, all other texts in the rest, under zstd."""

import csv
import io
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd

from ....archives import Codec, Done, Lost, OpenArchive, Source
from ....archives.blocks import MODELLED, MOST_REST, PLAIN, Content, crc, shorter
from ....coding import Integers
from ....errors import AnyOrderError, FormatError, InputError
from ....models.trained import BAD_CONTENT
from .arrow import Table, arrow_table, arrow_texts, broken, exactly_equal, parquet_bytes, parquet_table
from .cell_formats import ODD
from .frame_texts import frame_of, frame_texts
from .table_codec import TableCodec, Texts, fit_own_table_codec, objects

MOST_BLOCK_CELLS = 2**24  # of a block
LENGTH = np.dtype("<u4")


def pack_table(codec: TableCodec | None, texts: Sequence[Texts]) -> Content:
    """Some rows of all columns; without a codec, or where it does not help, all of it is in the rest."""
    parts = [joined_texts(column) for column in texts]
    plain = Content(PLAIN, {"raw": [len(part) for part in parts]}, b"", b"".join(parts))
    if codec is None or len(codec.columns) != len(texts) or not len(texts[0]):
        return plain
    cells = codec.read(texts)
    stream, spent = codec.encode(cells)
    odd = [joined_texts(texts[place][cells.kind[:, k] == ODD]) for k, (place, _) in enumerate(codec.coded)]
    raw = [part for part, column in zip(parts, codec.columns, strict=True) if column is None]
    notes: dict[str, Any] = {"bits": [round(bits) for bits in spent], "raw": [len(part) for part in raw]}
    if any(len(part) for part in odd):
        notes["odd"] = [len(part) for part in odd]
    return shorter(Content(MODELLED, notes, stream, b"".join([*odd, *raw]), crc(*parts)), plain)


def unpack_table(codec: TableCodec | None, content: Content, rows: int, columns: int) -> list[Texts]:
    """The texts of all columns."""
    if rows * columns > MOST_BLOCK_CELLS:
        raise FormatError(f"A block claims to hold {rows} rows of {columns} columns; that is too many for one block.")
    if content.method == PLAIN:
        return checked_rows([separated(part, rows) for part in cut_lengths(content.rest, lengths(content, "raw", columns))], rows)
    if codec is None or len(codec.columns) != columns:
        raise FormatError("A block was coded by a model of other columns than the archive names.")
    coded = codec.coded
    odd_lengths = lengths(content, "odd", len(coded)) if "odd" in content.notes else [0] * len(coded)
    parts = cut_lengths(content.rest, [*odd_lengths, *lengths(content, "raw", columns - len(coded))])
    odd = [[str(text) for text in separated(part, rows)] for part in parts[: len(coded)]]
    written = codec.written(codec.decode(content.stream, rows), odd)
    raw = iter([separated(part, rows) for part in parts[len(coded) :]])
    found = dict(zip((place for place, _ in coded), written, strict=True))
    texts = checked_rows([found[place] if place in found else next(raw) for place in range(columns)], rows)
    content.checked(*map(joined_texts, texts))
    return texts


def checked_rows(parts: list[Texts], rows: int) -> list[Texts]:
    if any(len(part) != rows for part in parts):
        raise FormatError(f"A column of a block does not have {rows} cells.")
    return parts


def lengths(content: Content, key: str, count: int) -> list[int]:
    found = content.notes.get(key)
    if not isinstance(found, list) or len(found) != count or not all(type(n) is int and n >= 0 for n in found):
        raise FormatError("The notes of a block do not fit what is in it.")
    return found


def cut_lengths(rest: bytes, sizes: Sequence[int]) -> list[bytes]:
    ends = np.cumsum([0, *sizes]).tolist()
    if ends[-1] != len(rest):
        raise FormatError("The notes of a block do not fit what is in it.")
    return [rest[a:b] for a, b in pairwise(ends)]


def joined_texts(texts: Texts) -> bytes:
    """Texts as bytes: their number, how long each is (0: there is none), all of them one after the other."""
    if not len(texts):
        return b""
    raw = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = np.array([0 if part is None else len(part) + 1 for part in raw], dtype=LENGTH)
    planes = sizes.view(np.uint8).reshape(-1, 4).T.tobytes()
    return np.array([len(raw)], dtype=LENGTH).tobytes() + planes + b"".join(part for part in raw if part is not None)


def separated(data: bytes, most: int) -> Texts:
    """What was joined, if there are not more than `most` texts."""
    if not data:
        return np.zeros(0, dtype=object)
    count = int(np.frombuffer(data[:4], dtype=LENGTH)[0]) if len(data) >= 4 else -1
    if not 1 <= count <= most or len(data) < 4 + 4 * count:
        raise FormatError(f"A column of {len(data)} bytes claims to hold {count} texts.")
    sizes = np.frombuffer(data, np.uint8, 4 * count, 4).reshape(4, count).T.copy().view(LENGTH)[:, 0].astype(np.int64)
    ends = np.cumsum(np.maximum(sizes - 1, 0)) + 4 + 4 * count
    if ends[-1] != len(data):
        raise FormatError(f"A column of {len(data)} bytes claims texts that end at {ends[-1]}.")
    out = np.empty(count, dtype=object)
    try:
        for k, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True)):
            out[k] = None if size == 0 else data[end - size + 1 : end].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise FormatError(f"A column holds bytes that are no text ({error}).") from error
    return out


QUOTING: dict[int, Any] = {0: csv.QUOTE_MINIMAL, 1: csv.QUOTE_ALL}
CELL = 16  # bytes that a cell takes while it is coded
DELIMITERS = ",;\t|"


class TableSource(Source):
    """Rows of a table; `texts` has its columns."""

    what = "table"
    items: ClassVar[dict[str, str]] = {"frame": "rows", "arrow": "rows", "csv": "rows"}
    wants = TableCodec
    per_block = 2**17

    def __init__(self, form: dict[str, Any], names: Sequence[str], texts: list[Texts], count: int) -> None:
        self.form, self.names, self.texts, self.count = form, list(names), texts, count
        sizes = np.full(count, CELL * max(1, len(texts)), dtype=np.int64)
        for column in texts:
            sizes += np.array([0 if text is None else 4 * len(text) for text in column], dtype=np.int64)
        longest = int(sizes.max(initial=1))
        self.item_bytes = longest if longest * min(count, self.per_block) > MOST_REST else int(sizes.sum()) // max(count, 1) + 1

    def pack(self, codec: Codec | None, some: range) -> Content:
        return pack_table(table_codec(codec), [column[some.start : some.stop] for column in self.texts])

    def same(self, codec: Codec | None, some: range, content: Content) -> bool:
        found = unpack_table(table_codec(codec), content, len(some), len(self.texts))
        return all(list(cells) == list(column[some.start : some.stop]) for cells, column in zip(found, self.texts, strict=True))

    def own_codec(self, otherwise: int, effort: float, done: Done) -> Codec | None:
        return fit_own_table_codec(
            self.names, self.texts, otherwise, effort, progress=lambda check: done(check.step, check.steps)
        )


@final
class FrameSource(TableSource):
    """A data frame with its types, labels and index."""

    def __init__(self, frame: pd.DataFrame, verify: bool = True) -> None:
        if type(frame) is not pd.DataFrame:
            raise InputError(
                f"compress got {type(frame).__name__}, which would come back as a plain data frame. "
                "If that is enough: compress(pandas.DataFrame(frame))."
            )
        try:
            about, texts = frame_texts(frame)
            back = frame_of(about, texts)
        except (*BAD_CONTENT, ArithmeticError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"This table cannot be kept exactly: {error!r:.200}.") from error
        if verify:
            check_frame(frame, back)
        super().__init__(about, [str(label) for label in frame.columns], texts, len(frame))
        self.names += ["index"] * (len(texts) - len(self.names))


@final
class ArrowSource(TableSource):
    """A table of pyarrow's, with its schema and all notes in it."""

    def __init__(self, table: Table, verify: bool = True) -> None:
        if not table.num_columns:
            raise InputError("The table has no columns.")
        try:
            form, texts = arrow_texts(table)
            same = not verify or exactly_equal(arrow_table(form, texts), table)
        except broken() as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"This table cannot be kept exactly: {error!r:.200}.") from error
        if not same:
            raise InputError("This table cannot be kept exactly: it would come back with other values or another schema.")
        super().__init__(form, table.column_names, texts, table.num_rows)

    def arrow(self) -> Table:
        """The table as it comes back."""
        return arrow_table(self.form, self.texts)


def parquet_source(content: bytes) -> "ArrowSource | BytesSource":
    """A Parquet file as a table, if the file made from it holds the same table; else the bytes."""
    table = parquet_table(content)
    try:
        source = ArrowSource(table)
        again = parquet_table(parquet_bytes(source.arrow()))
        return source if exactly_equal(again, table) else BytesSource(content)
    except broken():  # a type that has no cells, say, or one that this version of pyarrow does not write
        return BytesSource(content)


@final
class BytesSource(Source):
    """A file of which nothing is known, as it is."""

    what = "table"
    items: ClassVar[dict[str, str]] = {"bytes": "files"}
    wants = TableCodec
    per_block = 1

    def __init__(self, content: bytes) -> None:
        self.content, self.form, self.count, self.item_bytes = content, {"kind": "bytes"}, 1, len(content)

    def pack(self, codec: Codec | None, some: range) -> Content:
        return Content(PLAIN, {}, b"", self.content)

    def same(self, codec: Codec | None, some: range, content: Content) -> bool:
        return content.rest == self.content


def check_frame(frame: pd.DataFrame, back: pd.DataFrame) -> None:
    """Whether a frame comes back from text as it was."""
    try:
        pd.testing.assert_frame_equal(frame, back, check_exact=True, check_freq=True, check_column_type=True)
    except (AssertionError, ArithmeticError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"This table cannot be kept exactly: {reason:.200}.") from error


def table_codec(codec: Codec | None) -> TableCodec | None:
    return codec if isinstance(codec, TableCodec) else None


# Comma-separated values


def csv_source(content: bytes) -> TableSource | BytesSource:
    """A file of comma-separated values, if writing its cells gives the same bytes again; else the bytes."""
    for encoding in ("utf-8", "latin-1"):
        try:
            text = content.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    first = text.split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return BytesSource(content)
    if len(rows) < 2 or len({len(row) for row in rows}) != 1:
        return BytesSource(content)
    newline = "\r\n" if first.endswith("\r") else "\n"
    columns = [objects(cell or None for cell in column) for column in zip(*rows[1:], strict=True)]
    form: dict[str, Any] = {"kind": "csv", "encoding": encoding, "delimiter": delimiter, "newline": newline, "header": rows[0]}
    for quoting in QUOTING:
        form |= {"quoting": quoting, "end": text.endswith(newline)}
        try:
            if csv_bytes(form, columns) == content:
                return TableSource(form, rows[0], columns, len(rows) - 1)
        except (csv.Error, AnyOrderError):
            continue
    return BytesSource(content)


def csv_bytes(form: dict[str, Any], columns: Sequence[Texts]) -> bytes:
    """The file again."""
    try:
        delimiter, newline, quoting = str(form["delimiter"]), str(form["newline"]), int(form["quoting"])
        known = newline in ("\n", "\r\n") and form["encoding"] in ("utf-8", "latin-1") and delimiter in list(DELIMITERS)
        if quoting not in QUOTING or not known or len(form["header"]) != len(columns):
            raise FormatError("The archive describes no file of comma-separated values.")
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=delimiter, lineterminator=newline, quoting=QUOTING[quoting])
        writer.writerow([str(label) for label in form["header"]])
        writer.writerows(zip(*([text or "" for text in column] for column in columns), strict=True))
        text = out.getvalue()
        if not form["end"]:
            text = text.removesuffix(newline)
        return text.encode(str(form["encoding"]))
    except (KeyError, TypeError, ValueError, LookupError, csv.Error) as error:
        raise FormatError(f"The archive describes no file of comma-separated values ({error!r}).") from error


def decompress_table(archive: OpenArchive, rows: range | None = None) -> tuple[pd.DataFrame | Table | bytes, list[Lost]]:
    """The frame, pyarrow's table, or the content of the file, and what is lost: rows of damaged blocks are left out."""
    if archive.what != "table":
        raise InputError("The archive holds images, not a table.")
    wanted = range(archive.count) if rows is None else rows
    try:
        if archive.form["kind"] == "bytes":
            return the_bytes(archive)
        columns, kept, lost = read_rows(archive, wanted, width_of(archive.form))
        if archive.form["kind"] == "csv":
            return csv_bytes(archive.form, columns), lost
        if archive.form["kind"] == "arrow":
            return arrow_table(archive.form, columns), lost
        return frame_of(archive.form, columns, kept), lost
    except (*BAD_CONTENT, ArithmeticError, MemoryError, struct.error) as error:
        if isinstance(error, AnyOrderError):
            raise
        raise FormatError(f"The description of the archive does not fit what is in it ({error!r:.200}).") from error


def the_bytes(archive: OpenArchive) -> tuple[bytes, list[Lost]]:
    """A file of which nothing is known: one item in one block."""
    found = [content for _, content in archive.contents()]
    lost = [content for content in found if isinstance(content, Lost)]
    return b"".join(content.rest for content in found if isinstance(content, Content)), lost


def width_of(form: dict[str, Any]) -> int:
    """How many columns of text there are."""
    if form["kind"] == "frame":
        return len(form["columns"]) + len(form["index"]["kinds"])
    return len(form["header" if form["kind"] == "csv" else "words"])


def read_rows(archive: OpenArchive, wanted: range, width: int) -> tuple[list[Texts], Integers, list[Lost]]:
    """The columns of the wanted rows that are there, which rows these are, and what is lost."""
    parts, kept, lost = list[list[Texts]](), [np.zeros(0, dtype=np.int64)], list[Lost]()
    for some, content in archive.contents(wanted):
        try:
            if isinstance(content, Content):
                cells = unpack_table(table_codec(archive.codec), content, len(some), width)
        except FormatError as error:
            content = Lost(some.start // archive.per_block, some, str(error))
        if isinstance(content, Lost):
            lost.append(content)
            continue
        inside = range(max(some.start, wanted.start), min(some.stop, wanted.stop))
        parts.append([column[inside.start - some.start : inside.stop - some.start] for column in cells])
        kept.append(np.arange(inside.start, inside.stop))
    columns = [np.concatenate([*(part[k] for part in parts), np.zeros(0, dtype=object)]) for k in range(width)]
    return columns, np.concatenate(kept), lost
