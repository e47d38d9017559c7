"""Lossless compression of data of any kind: every bit comes back, on any machine."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..archives import ArchiveModel, Codec, ModelSizeError, OpenArchive, Source, from_bytes
from ..archives import compress as write_archive
from ..coding import Archive, Writable
from ..errors import FormatError, InputError
from ..validation import check_positive
from .registry import modality_named, modality_of

CODEC = "codec"  # what a file of a model calls the codec attached to it
Write = Callable[[ArchiveModel, Writable], None]


def compress(X: Any, effort: float = 1.0, verify: bool = True) -> bytes:
    """An archive of a table or of an array of images; `decompress` gives back every value, all labels and types.

    A model is learned from X and kept in the archive, if that makes it smaller; `effort` says how long it may take.

    >>> import pandas as pd
    >>> from anyorder import compress, decompress
    >>> table = pd.DataFrame({"age": [31, 45], "city": ["Oslo", "Bergen"]})
    >>> decompress(compress(table)).equals(table)
    True
    """
    check_positive("effort", effort)
    source = modality_of(X).source(X, verify)

    def write(model: ArchiveModel, file: Writable) -> None:
        write_archive(model, source, file, verify=verify)

    plain = in_memory(write, ArchiveModel())
    codec = source.own_codec(len(plain), effort, nothing_shown)
    return plain if codec is None else smaller(plain, codec, write)


def smaller(plain: bytes, codec: Codec, write: Write) -> bytes:
    """The archive without a model, or with one inside if that is smaller."""
    try:
        own = in_memory(write, ArchiveModel(codec, inside=True))
    except ModelSizeError:
        return plain
    return min(plain, own, key=len)


def decompress(archive: bytes) -> Any:
    """What `compress` made an archive of. An archive that was damaged is refused, or one whose model is not inside."""
    return unpacked(archive, refuse_to_find)


def compress_with(codec: Codec, name: str, source: Source, verify: bool) -> bytes:
    """With a codec that whoever decompresses must have."""

    def write(model: ArchiveModel, file: Writable) -> None:
        write_archive(model, source, file, verify=verify)

    return in_memory(write, ArchiveModel(codec, name))


def unpacked(archive: bytes, find: Callable[[dict[str, Any]], Codec]) -> Any:
    """The data in an archive, whole; FormatError if anything of them is lost."""
    if not isinstance(archive, bytes | bytearray | memoryview):
        raise InputError(f"decompress got {type(archive).__name__}; expected the bytes that compress made.")
    opened = OpenArchive(Archive(bytes(archive)), find)
    modality = modality_named(opened.what)
    if modality is None:
        raise FormatError(f"The archive holds {opened.what!r}; this version knows no such thing.")
    found, lost = modality.unpack(opened)
    if lost:
        first = lost[0]
        raise FormatError(
            f"The archive is damaged: {opened.items} {first.items.start} to {first.items.stop - 1} are lost ({first.why})"
            f"{f' and {len(lost) - 1} other blocks' if len(lost) > 1 else ''}. `anyorder decompress` saves the others."
        )
    return found


def refuse_to_find(about: dict[str, Any]) -> Codec:
    name = f"the model {about['name']!r}" if about.get("name") else "a model of a file"
    raise InputError(f"The archive was made with {name}: use the decompress of that model, AnyOrder.load(...).decompress.")


def in_memory(write: Write, model: ArchiveModel) -> bytes:
    file = io.BytesIO()
    write(model, file)
    return file.getvalue()


def nothing_shown(done: int, of: int) -> None:
    """For work that nobody watches."""


def attached_codec(about: Mapping[str, Any], path: str | Path) -> Codec | None:
    """The codec in the file of a model, if there is one."""
    content = about.get("attached", {}).get(CODEC)
    return None if content is None else from_bytes(content, Path(path).name)
