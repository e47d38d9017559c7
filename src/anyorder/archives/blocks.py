"""What is in a block of an archive: what the model coded, and whatever the model does not know as it is, under zstd.

    block = method:u8 lengths:3 x u32 [check:u32] notes stream rest        (little-endian)

`notes` is JSON under zstd, and empty if there is nothing to say; `stream` is the range coder's; `rest` is under zstd. The
method is 0 if there is no stream because zstd alone was shorter, and 2 if the stream comes from the model: then `check` is the
CRC-32 of what must come back. The first archives have method 1 in its place, and no check.
"""

import json
import struct
import zlib
from itertools import pairwise
from typing import Any, NamedTuple, final

import zstandard

from ..errors import FormatError, InputError

BLOCK_HEAD = struct.Struct("<BIII")
BLOCK_CHECK = struct.Struct("<I")
PLAIN, MODELLED, CHECKED = 0, 1, 2  # CHECKED is how MODELLED is written if there is a check
ZSTD_LEVEL = 19
MOST_REST = 2**31  # bytes that a block may unpack to
MOST_NOTES = 2**26  # and its notes
MOST_AT_ONCE = 2**20


@final
class Content(NamedTuple):
    """The parts of a block."""

    method: int
    notes: dict[str, Any]
    stream: bytes
    rest: bytes
    check: int | None = None  # the CRC-32 of what the model must give back

    def checked(self, *parts: bytes) -> None:
        """Refuse what was decoded if it is not what was coded."""
        if self.check is not None and self.check != crc(*parts):
            raise FormatError(
                "What was decoded is not what was coded: this machine computes otherwise, or the model is another one."
            )


def crc(*parts: bytes) -> int:
    found = 0
    for part in parts:
        found = zlib.crc32(part, found)
    return found


def pack_block(content: Content) -> bytes:
    notes = squeezed(json.dumps(content.notes, ensure_ascii=False, separators=(",", ":")).encode()) if content.notes else b""
    rest = squeezed(content.rest) if content.rest else b""
    if content.notes and zstandard.frame_content_size(notes) > MOST_NOTES:
        raise InputError("What is to be said of a block is too much. Put fewer items into a block (--per-block).")
    method, check = (content.method, b"") if content.check is None else (CHECKED, BLOCK_CHECK.pack(content.check))
    return BLOCK_HEAD.pack(method, len(notes), len(content.stream), len(rest)) + check + notes + content.stream + rest


def shorter(modelled: Content, plain: Content) -> Content:
    """What the model made of a block, unless zstd alone does better; a hasty zstd tells whether it is worth asking."""
    size = len(modelled.stream) + (len(squeezed(modelled.rest)) if modelled.rest else 0)
    if len(zstandard.ZstdCompressor(level=1).compress(plain.rest)) > 4 * size:
        return modelled
    return plain if len(squeezed(plain.rest)) <= size else modelled


def unpack_block(raw: bytes) -> Content:
    """The parts of a block; nothing larger than a block may be is made, whatever it claims."""
    if len(raw) < BLOCK_HEAD.size:
        raise FormatError(f"A block of {len(raw)} bytes has no head.")
    method, *lengths = BLOCK_HEAD.unpack(raw[: BLOCK_HEAD.size])
    start = BLOCK_HEAD.size + (BLOCK_CHECK.size if method == CHECKED else 0)
    if method not in (PLAIN, MODELLED, CHECKED) or start + sum(lengths) != len(raw):
        raise FormatError(f"A block of {len(raw)} bytes with method {method} claims parts of {lengths} bytes.")
    check = BLOCK_CHECK.unpack(raw[BLOCK_HEAD.size : start])[0] if method == CHECKED else None
    ends = [start + sum(lengths[:k]) for k in range(4)]
    notes, stream, rest = (raw[a:b] for a, b in pairwise(ends))
    try:
        said = json.loads(unsqueezed(notes, MOST_NOTES)) if notes else {}
    except (ValueError, RecursionError) as error:
        raise FormatError(f"The notes of a block cannot be read ({error}).") from error
    if not isinstance(said, dict):
        raise FormatError("The notes of a block are no object.")
    return Content(MODELLED if method == CHECKED else method, said, stream, unsqueezed(rest, MOST_REST) if rest else b"", check)


def squeezed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)


def unsqueezed(data: bytes, most: int) -> bytes:
    """What was squeezed, if it is not larger than `most`."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= most:
            raise FormatError(f"A part of a block claims to hold {size} bytes; at most {most} are possible here.")
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(data)
        found = b"".join(iter(lambda: reader.read(MOST_AT_ONCE), b""))  # a claim alone takes no memory
    except zstandard.ZstdError as error:
        raise FormatError(f"A part of a block cannot be unpacked ({error}).") from error
    if len(found) != size:
        raise FormatError(f"A part of a block cannot be unpacked (it claims {size} bytes and holds {len(found)}).")
    return found
