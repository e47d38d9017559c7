"""Images out of archives: what is damaged is told, all else comes back."""

from pathlib import Path

import numpy as np

from ...errors import FormatError, InputError
from ...files import write_bytes
from ..archives import MOST_BYTES, Lost, OpenArchive
from ..blocks import MOST_REST, Content
from ..sources import Done
from .blocks import Pixels, file_of, unpack_array, unpack_files
from .sources import image_codec


def decompress_array(archive: OpenArchive, rows: range | None = None, done: Done | None = None) -> tuple[Pixels, list[Lost]]:
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
        if done is not None:
            done(some.stop, wanted.stop)
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
