"""Images out of archives: what is damaged is told, all else comes back."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import AnyOrderError, FormatError, InputError, WriteError
from ...files import write_bytes
from ...training.description import BAD_CONTENT
from ..archives import MOST_BYTES, ClosedArchive, Lost, OpenArchive
from ..blocks import MOST_REST, Content
from ..sources import Done
from .blocks import Pixels, file_of, unpack_array, unpack_files
from .sources import image_codec

BROKEN = (*BAD_CONTENT, ArithmeticError, MemoryError)  # whatever a forged block may lead to


def decompress_array(archive: OpenArchive, rows: range | None = None, done: Done | None = None) -> tuple[Pixels, list[Lost]]:
    """The array, zeros where blocks are damaged, and what is lost; of some rows only their blocks are read."""
    if archive.form["kind"] != "array":
        raise InputError(f"The archive holds a {archive.form['kind']}, not an array: decompress it with `anyorder decompress`.")
    shape, dtype = shape_and_dtype(archive)
    wanted = range(archive.count) if rows is None else rows
    parts, lost = list[Pixels](), list[Lost]()
    for some, content in archive.contents(wanted):
        size = (len(some), *shape[1:])
        try:
            if isinstance(content, Content):
                pixels = unpack_array(image_codec(archive.codec), content, size, dtype)
        except BROKEN as error:
            content = Lost(some.start // archive.per_block, some, told(error))
        if isinstance(content, Lost):
            lost.append(content)
            pixels = np.zeros(size if some.start < archive.there else (0, *shape[1:]), dtype)
        parts.append(pixels[max(wanted.start - some.start, 0) : wanted.stop - some.start])
        if done is not None:
            done(some.stop, wanted.stop)
    whole = np.concatenate(parts) if parts else np.zeros((0, *shape[1:]), dtype)
    return whole.astype(dtype, copy=False), lost  # in its byte order


def told(error: BaseException) -> str:
    return str(error) if isinstance(error, AnyOrderError) else f"it cannot be read ({error!r:.200})"


def shape_and_dtype(archive: ClosedArchive) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """As the archive claims, if there can be such an array."""
    try:
        shape, dtype = tuple(int(n) for n in archive.form["shape"]), np.dtype(str(archive.form["dtype"]))
        np.zeros((0, *shape[1:]), dtype)
    except (KeyError, TypeError, ValueError, OverflowError, SyntaxError) as error:
        raise FormatError(f"The description of the archive cannot be read ({error!r}).") from error
    if dtype.hasobject or not dtype.itemsize or not shape or shape[0] != archive.count or min(shape) < 0:
        raise FormatError(f"The archive claims to hold an array of {dtype} of shape {shape}.")
    item = int(np.prod(shape[1:], dtype=object)) * dtype.itemsize
    if item > MOST_REST or (archive.per_block > 1 and item * archive.per_block > MOST_BYTES):
        raise FormatError(f"The archive claims to hold {archive.per_block} images of shape {shape[1:]} in a block: too many.")
    return shape, dtype


def decompress_folder(archive: OpenArchive, folder: Path, done: Done | None = None) -> list[Lost]:
    """All files into a folder; what is lost, or cannot be written there, is left out and told."""
    if archive.form["kind"] != "folder":
        raise InputError(f"The archive holds a {archive.form['kind']}, not a folder of images.")
    folder.mkdir(parents=True, exist_ok=True)
    lost = []
    for some, content in archive.contents():
        try:
            if isinstance(content, Lost):
                lost.append(content)
            else:
                lost.extend(write_files(archive, folder, some, content))
        except BROKEN as error:
            lost.append(Lost(some.start // archive.per_block, some, told(error)))
        if done is not None:
            done(some.stop, archive.count)
    return lost


def write_files(archive: OpenArchive, folder: Path, some: range, content: Content) -> Iterator[Lost]:
    """All files of a block; those that cannot be written are told."""
    for number, (name, found) in enumerate(unpack_files(image_codec(archive.codec), content, len(some)), some.start):
        path = folder / name
        try:
            if os.path.lexists(path):  # also a name that differs by case only, where that makes no difference
                raise FileExistsError(0, "it is there already")
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, file_of(name, found))
        except OSError as error:
            why = str(error) if isinstance(error, WriteError) else f"{name!r} cannot be written ({error.strerror})"
            yield Lost(some.start // archive.per_block, range(number, number + 1), why)
