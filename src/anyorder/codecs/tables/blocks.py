"""Blocks of archives that hold rows of a table: coded columns in the stream, all other texts in the rest, under zstd."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import FormatError
from ..blocks import MODELLED, PLAIN, Content, crc, shorter
from .codec import TableCodec, Texts
from .columns import ODD

MOST_CELLS = 2**24  # of a block
LENGTH = np.dtype("<u4")


def pack_table(codec: TableCodec | None, texts: Sequence[Texts]) -> Content:
    """Some rows of all columns; without a codec, or where it does not help, all of it is in the rest."""
    parts = [joined(column) for column in texts]
    plain = Content(PLAIN, {"raw": [len(part) for part in parts]}, b"", b"".join(parts))
    if codec is None or len(codec.columns) != len(texts) or not len(texts[0]):
        return plain
    cells = codec.read(texts)
    stream, spent = codec.encode(cells)
    odd = [joined(texts[place][cells.kind[:, k] == ODD]) for k, (place, _) in enumerate(codec.coded)]
    raw = [part for part, column in zip(parts, codec.columns, strict=True) if column is None]
    notes: dict[str, Any] = {"bits": [round(bits) for bits in spent], "raw": [len(part) for part in raw]}
    if any(len(part) for part in odd):
        notes["odd"] = [len(part) for part in odd]
    return shorter(Content(MODELLED, notes, stream, b"".join([*odd, *raw]), crc(*parts)), plain)


def unpack_table(codec: TableCodec | None, content: Content, rows: int, columns: int) -> list[Texts]:
    """The texts of all columns."""
    if rows * columns > MOST_CELLS:
        raise FormatError(f"A block claims to hold {rows} rows of {columns} columns; that is too many for one block.")
    if content.method == PLAIN:
        return checked([separated(part, rows) for part in cut(content.rest, lengths(content, "raw", columns))], rows)
    if codec is None or len(codec.columns) != columns:
        raise FormatError("A block was coded by a model of other columns than the archive names.")
    coded = codec.coded
    odd_lengths = lengths(content, "odd", len(coded)) if "odd" in content.notes else [0] * len(coded)
    parts = cut(content.rest, [*odd_lengths, *lengths(content, "raw", columns - len(coded))])
    odd = [[str(text) for text in separated(part, rows)] for part in parts[: len(coded)]]
    written = codec.written(codec.decode(content.stream, rows), odd)
    raw = iter([separated(part, rows) for part in parts[len(coded) :]])
    found = dict(zip((place for place, _ in coded), written, strict=True))
    texts = checked([found[place] if place in found else next(raw) for place in range(columns)], rows)
    content.checked(*map(joined, texts))
    return texts


def checked(parts: list[Texts], rows: int) -> list[Texts]:
    if any(len(part) != rows for part in parts):
        raise FormatError(f"A column of a block does not have {rows} cells.")
    return parts


def lengths(content: Content, key: str, count: int) -> list[int]:
    found = content.notes.get(key)
    if not isinstance(found, list) or len(found) != count or not all(type(n) is int and n >= 0 for n in found):
        raise FormatError("The notes of a block do not fit what is in it.")
    return found


def cut(rest: bytes, sizes: Sequence[int]) -> list[bytes]:
    ends = np.cumsum([0, *sizes]).tolist()
    if ends[-1] != len(rest):
        raise FormatError("The notes of a block do not fit what is in it.")
    return [rest[a:b] for a, b in pairwise(ends)]


def joined(texts: Texts) -> bytes:
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
