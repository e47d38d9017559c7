"""What is in a block of an archive: what the model coded, and whatever the model does not know as it is, under zstd.

    block = method:u8 lengths:3 x u32 notes stream rest        (little-endian)

`notes` is JSON under zstd, and empty if there is nothing to say; `stream` is the range coder's; `rest` is under zstd. The
method is 1 if the stream comes from the model, 0 if there is no stream because zstd alone was shorter.
"""

import json
import struct
from itertools import pairwise
from typing import Any, NamedTuple, final

import zstandard

from ..errors import FormatError

HEAD = struct.Struct("<BIII")
PLAIN, MODELLED = 0, 1
LEVEL = 19
MOST_REST = 2**31  # bytes that a block may unpack to


@final
class Content(NamedTuple):
    """The parts of a block."""

    method: int
    notes: dict[str, Any]
    stream: bytes
    rest: bytes


def pack(content: Content) -> bytes:
    notes = squeezed(json.dumps(content.notes, ensure_ascii=False, separators=(",", ":")).encode()) if content.notes else b""
    rest = squeezed(content.rest) if content.rest else b""
    head = HEAD.pack(content.method, len(notes), len(content.stream), len(rest))
    return head + notes + content.stream + rest


def shorter(modelled: Content, plain: Content) -> Content:
    """What the model made of a block, unless zstd alone does better; a hasty zstd tells whether it is worth asking."""
    size = len(modelled.stream) + (len(squeezed(modelled.rest)) if modelled.rest else 0)
    if len(zstandard.ZstdCompressor(level=1).compress(plain.rest)) > 4 * size:
        return modelled
    return plain if len(squeezed(plain.rest)) <= size else modelled


def unpack(raw: bytes) -> Content:
    """The parts of a block; nothing larger than a block may be is made, whatever it claims."""
    if len(raw) < HEAD.size:
        raise FormatError(f"A block of {len(raw)} bytes has no head.")
    method, *lengths = HEAD.unpack(raw[: HEAD.size])
    if method not in (PLAIN, MODELLED) or HEAD.size + sum(lengths) != len(raw):
        raise FormatError(f"A block of {len(raw)} bytes with method {method} claims parts of {lengths} bytes.")
    ends = [HEAD.size + sum(lengths[:k]) for k in range(4)]
    notes, stream, rest = (raw[a:b] for a, b in pairwise(ends))
    try:
        said = json.loads(unsqueezed(notes, MOST_REST)) if notes else {}
    except (ValueError, RecursionError) as error:
        raise FormatError(f"The notes of a block cannot be read ({error}).") from error
    if not isinstance(said, dict):
        raise FormatError("The notes of a block are no object.")
    return Content(method, said, stream, unsqueezed(rest, MOST_REST) if rest else b"")


def squeezed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=LEVEL).compress(data)


def unsqueezed(data: bytes, most: int) -> bytes:
    """What was squeezed, if it is not larger than `most`."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= most:
            raise FormatError(f"A part of a block claims to hold {size} bytes; at most {most} are possible here.")
        return zstandard.ZstdDecompressor(max_window_size=2**27).decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise FormatError(f"A part of a block cannot be unpacked ({error}).") from error
