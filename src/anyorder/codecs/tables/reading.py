"""Tables out of archives: rows of damaged blocks are told, all others come back."""

import struct
from typing import Any

import numpy as np
import pandas as pd

from ...coding import Integers
from ...errors import AnyOrderError, FormatError, InputError
from ...training.description import BAD_CONTENT
from ..archives import Lost, OpenArchive
from ..blocks import Content
from .arrow import Table, arrow_table
from .blocks import unpack_table
from .codec import Texts
from .frames import frame_of
from .sources import csv_bytes, table_codec


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
