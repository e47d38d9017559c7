"""Whole archives: written block by block in constant memory and checked on the way, read whole or in parts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..coding import Archive, ArchiveWriter, Writable
from ..errors import AnyOrderError, FormatError, InputError
from ..files import write_bytes
from ..training.description import BAD_CONTENT
from .blocks import MOST_REST, Content, pack, squeezed, unpack, unsqueezed
from .files import fingerprint, from_bytes, to_bytes
from .frames import frame_of
from .image_blocks import file_of, unpack_array, unpack_files
from .sources import Codec, Source, image_codec
from .table import Texts
from .table_blocks import unpack_table
from .table_sources import csv_bytes, table_codec

MOST_PER_BLOCK = 2**17
MOST_MODEL = 2**28  # bytes
MOST_BYTES = 2**28  # of the images in a block
KINDS = {"images": ("array", "folder"), "table": ("frame", "csv", "bytes")}
Done = Callable[[int, int], None]  # how many of how many are done
Find = Callable[[dict[str, Any]], Codec]  # from what an archive says of its model to the model
Pixels = NDArray[Any]


class Lost(NamedTuple):
    """What could not be read, and why."""

    block: int
    items: range
    why: str


@final
@dataclass(frozen=True)
class Keeper:
    """A codec, if there is one, and its name in archives; `inside`: archives carry it with them."""

    codec: Codec | None = None
    name: str = ""
    inside: bool = False

    def about(self) -> dict[str, Any] | None:
        if self.codec is None:
            return None
        return {"fingerprint": fingerprint(self.codec), "name": self.name, "inside": self.inside}


# Writing


def compress(
    keeper: Keeper,
    source: Source,
    file: Writable,
    per_block: int | None = None,
    verify: bool = True,
    done: Done | None = None,
) -> int:
    """Write an archive, one block after the other; how many bytes it has. Of large items fewer go into a block."""
    if keeper.codec is not None and not isinstance(keeper.codec, source.wants):
        raise InputError(f"The model was not made for what is compressed here: expected one of {source.what}.")
    per_block = source.per_block if per_block is None else per_block
    if source.item_bytes > MOST_REST:
        raise InputError(f"An item has {source.item_bytes} bytes; at most {MOST_REST} fit into a block.")
    per_block = min(per_block, max(1, MOST_BYTES // max(source.item_bytes, 1)))
    with ArchiveWriter(file, described(keeper, source, per_block)) as archive:
        if keeper.inside and keeper.codec is not None:
            archive.add(squeezed(to_bytes(keeper.codec)))
        for some in spans(source.count, per_block):
            raw = pack(source.pack(keeper.codec, some))
            if verify and not source.same(keeper.codec, some, unpack(raw)):
                raise AnyOrderError(
                    f"Items {some.start} to {some.stop - 1} did not come back as they were: nothing was written. "
                    "This is a fault of anyorder or of this machine; please report it."
                )
            archive.add(raw)
            if done is not None:
                done(some.stop, source.count)
    return archive.at


def described(keeper: Keeper, source: Source, per_block: int) -> dict[str, Any]:
    if not 1 <= per_block <= MOST_PER_BLOCK:
        raise InputError(f"per_block={per_block}; expected 1 to {MOST_PER_BLOCK} items in a block.")
    return {"what": source.what, "form": source.form, "count": source.count, "per_block": per_block, "model": keeper.about()}


def spans(count: int, per_block: int) -> Iterator[range]:
    for start in range(0, count, per_block):
        yield range(start, min(start + per_block, count))


# Reading


@final
class OpenArchive:
    """An archive, opened with the model it was made with."""

    def __init__(self, archive: Archive, find: Find | None = None) -> None:
        self.archive = archive
        try:
            about = archive.about
            self.form, self.count, self.per_block = dict(about["form"]), int(about["count"]), int(about["per_block"])
            self.model = None if about["model"] is None else dict(about["model"])
            self.what = str(about["what"])
            if self.form["kind"] not in KINDS.get(self.what, ()):
                raise FormatError(f"The archive holds {self.what!r} as {self.form['kind']!r}; this version knows no such thing.")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"The description of the archive cannot be read ({error!r}).") from error
        self.skip = 1 if self.model and self.model.get("inside") else 0
        blocks = self.skip + -(-self.count // self.per_block) if self.per_block > 0 else -1
        lost_end = bool(archive.damage) and len(archive) < blocks
        if self.count < 0 or self.per_block > MOST_PER_BLOCK or (len(archive) != blocks and not lost_end):
            raise FormatError(f"The archive has {len(archive)} blocks, but claims {self.count} items, {self.per_block} in each.")
        self.there = min(self.count, self.per_block * (len(archive) - self.skip))  # items whose blocks are there, damaged or not
        self.codec = self._codec(find)

    @property
    def items(self) -> str:
        """What is counted."""
        return "images" if self.what == "images" else "rows"

    def _codec(self, find: Find | None) -> Codec | None:
        if self.model is None:
            return None
        name, wanted = self.model.get("name") or "of a file", self.model.get("fingerprint")
        if self.skip:
            block = self.archive.block(0)
            if block.content is None:
                raise FormatError(f"The model inside the archive is lost ({block.damage}): nothing can be decoded.")
            codec = from_bytes(unsqueezed(block.content, MOST_MODEL), "The model inside the archive")
        elif find is None:
            raise InputError(f"The archive was made with the model {name!r}: name it.")
        else:
            codec = find(self.model)
        found = fingerprint(codec)
        if found != wanted:
            raise InputError(
                f"The archive was made with the model {name!r} of fingerprint {wanted}, this one has {found}. "
                "Name the model it was made with."
            )
        return codec

    def contents(self, wanted: range | None = None) -> Iterator[tuple[range, Content | Lost]]:
        """Block by block: which items it holds, and what is in it or why that is lost; only blocks with wanted items."""
        asked = range(self.count) if wanted is None else wanted
        for number, some in enumerate(spans(self.there, self.per_block)):
            if max(some.start, asked.start) < min(some.stop, asked.stop):
                yield some, self._content(number, some)
        if max(self.there, asked.start) < min(self.count, asked.stop):
            yield range(self.there, self.count), Lost(-1, range(self.there, self.count), "the archive ends before them")

    def _content(self, number: int, some: range) -> Content | Lost:
        block = self.archive.block(number + self.skip)
        if block.content is None:
            return Lost(number, some, block.damage)
        try:
            return unpack(block.content)
        except FormatError as error:
            return Lost(number, some, str(error))


def decompress_array(archive: OpenArchive, rows: range | None = None) -> tuple[Pixels, list[Lost]]:
    """The array, zeros where blocks are damaged, and what is lost; of some rows only their blocks are read."""
    if archive.form["kind"] != "array":
        raise InputError(f"The archive holds a {archive.form['kind']}, not an array: decompress it with `anyorder decompress`.")
    try:
        shape, dtype = tuple(int(n) for n in archive.form["shape"]), np.dtype(archive.form["dtype"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"The description of the archive cannot be read ({error!r}).") from error
    if dtype.hasobject or not shape or shape[0] != archive.count or min(shape) < 0:
        raise FormatError(f"The archive claims to hold an array of {dtype} of shape {shape}.")
    item = int(np.prod(shape[1:], dtype=object)) * dtype.itemsize
    if item > MOST_REST or (archive.per_block > 1 and item * archive.per_block > MOST_BYTES):
        raise FormatError(f"The archive claims to hold {archive.per_block} images of shape {shape[1:]} in a block: too many.")
    wanted = range(archive.count) if rows is None else rows
    parts, lost = list[Pixels](), list[Lost]()
    for some, content in archive.contents(wanted):
        size = (len(some), *shape[1:])
        try:
            if isinstance(content, Content):
                pixels = unpack_array(image_codec(archive.codec), content, size, dtype)
        except FormatError as error:
            content = Lost(some.start // archive.per_block, some, str(error))
        if isinstance(content, Lost):
            lost.append(content)
            pixels = np.zeros(size if some.start < archive.there else (0, *shape[1:]), dtype)
        parts.append(pixels[max(wanted.start - some.start, 0) : wanted.stop - some.start])
    return np.concatenate(parts) if parts else np.zeros((0, *shape[1:]), dtype), lost


def decompress_folder(archive: OpenArchive, folder: Path, done: Done | None = None) -> list[Lost]:
    """All files into a folder; what is lost is left out and told."""
    if archive.form["kind"] != "folder":
        raise InputError(f"The archive holds a {archive.form['kind']}, not a folder of images.")
    lost = []
    for some, content in archive.contents():
        try:
            if isinstance(content, Lost):
                lost.append(content)
                continue
            for name, found in unpack_files(image_codec(archive.codec), content):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(path, file_of(name, found))
        except FormatError as error:
            lost.append(Lost(some.start // archive.per_block, some, str(error)))
        if done is not None:
            done(some.stop, archive.count)
    return lost


def decompress_table(archive: OpenArchive, rows: range | None = None) -> tuple[pd.DataFrame | bytes, list[Lost]]:
    """The frame, or the content of the file, and what is lost: rows of damaged blocks are left out."""
    if archive.what != "table":
        raise InputError("The archive holds images, not a table.")
    wanted = range(archive.count) if rows is None else rows
    try:
        kind = archive.form["kind"]
        columns = {"csv": ("header",), "frame": ("columns",)}.get(kind, ())
        width = sum(len(archive.form[key]) for key in columns) + (len(archive.form["index"]["kinds"]) if kind == "frame" else 0)
        parts, kept, lost = list[list[Texts]](), [np.zeros(0, dtype=np.int64)], list[Lost]()
        for some, content in archive.contents(wanted):
            if isinstance(content, Lost):
                lost.append(content)
                continue
            if kind == "bytes":
                return content.rest, lost
            try:
                cells = unpack_table(table_codec(archive.codec), content, len(some), width)
            except FormatError as error:
                lost.append(Lost(some.start // archive.per_block, some, str(error)))
                continue
            inside = range(max(some.start, wanted.start), min(some.stop, wanted.stop))
            parts.append([column[inside.start - some.start : inside.stop - some.start] for column in cells])
            kept.append(np.arange(inside.start, inside.stop))
        whole = [np.concatenate([*(part[k] for part in parts), np.zeros(0, dtype=object)]) for k in range(width)]
        if kind == "bytes":
            return b"", lost
        return (csv_bytes(archive.form, whole) if kind == "csv" else frame_of(archive.form, whole, np.concatenate(kept))), lost
    except (*BAD_CONTENT, ArithmeticError, MemoryError) as error:
        if isinstance(error, AnyOrderError):
            raise
        raise FormatError(f"The description of the archive does not fit what is in it ({error!r:.200}).") from error
