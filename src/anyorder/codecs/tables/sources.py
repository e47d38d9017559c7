"""Tables that archives are made from: data frames, and files of comma-separated values, which come back byte for byte."""

import csv
import io
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import pandas as pd

from ...errors import AnyOrderError, FormatError, InputError
from ...training.description import BAD_CONTENT
from ..blocks import MOST_REST, PLAIN, Content
from ..sources import Codec, Done, Source
from .arrow import Table, arrow_table, arrow_texts, broken, exactly, parquet_bytes, parquet_table
from .blocks import pack_table, unpack_table
from .codec import TableCodec, Texts, objects
from .frames import frame_of, frame_texts
from .learning import fit_own_table_codec

QUOTING: dict[int, Any] = {0: csv.QUOTE_MINIMAL, 1: csv.QUOTE_ALL}
CELL = 16  # bytes that a cell takes while it is coded
DELIMITERS = ",;\t|"


class TableSource(Source):
    """Rows of a table; `texts` has its columns."""

    what = "table"
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
            same = not verify or exactly(arrow_table(form, texts), table)
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
        return source if exactly(again, table) else BytesSource(content)
    except broken():  # a type that has no cells, say, or one that this version of pyarrow does not write
        return BytesSource(content)


@final
class BytesSource(Source):
    """A file of which nothing is known, as it is."""

    what = "table"
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
